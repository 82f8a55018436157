"""Removes what executions own: by recorded identity, and residue only by exact name."""

import contextlib
import json
import os
import shutil
import stat
import time
import urllib.parse

from durable import canonical, sync_directory, write_all
from engine import Engine
from errors import DamagedError, GapError, RunnerError
from faults import around
from receipts import Execution, find_kind, is_ended, now_ms

LABEL = "xgent.execution"
KEPT = ("request.json", "receipts.jsonl", "lock", "drive.log")


class Cleaning:
    """Removes things on one host; it touches nothing that does not carry our labels (V7)."""

    def __init__(self, root, socket_path):
        self.root = root
        self.engine = Engine(socket_path)

    # -- after an execution

    def clean(self, uuid):
        """Remove what the receipts own and nothing else; the receipts stay, and are returned."""
        execution = Execution(self.root, uuid)
        lock = execution.lock(5) if os.path.isdir(execution.path) else None
        if lock is None:
            raise RunnerError("E_REMOTE_BUSY", "execution %s is still driven" % uuid)
        try:
            receipts = execution.receipts()
            if find_kind(receipts, "cleaned"):
                return receipts
            if not is_ended(receipts):
                raise RunnerError("E_REMOTE_BUSY", "execution %s has not ended" % uuid)
            removed, foreign = [], []
            with around("clean.container", uuid):
                self.clean_container(execution, receipts, removed, foreign)
            with around("clean.volume", uuid):
                self.clean_volume(execution, removed, foreign)
            with around("clean.files", uuid):
                self.clean_files(execution)
            facts = {"removed": removed, "foreign": foreign}
            if has_secrets(execution):
                # Its copy was in the container's memory; the pipe was the only way in.
                pipe = os.path.join(execution.path, "secret", "credential")
                gone = execution.name not in foreign and not os.path.lexists(pipe)
                facts["credential_destroyed"] = gone
            execution.record("cleaned", **facts)
            return execution.receipts()
        finally:
            os.close(lock)

    def clean_container(self, execution, receipts, removed, foreign):
        """Remove the execution's container, known by its recorded id or by name and labels."""
        found = self.engine.inspect(execution.name)
        if found is None:
            return
        created = find_kind(receipts, "created")
        ours = (found["Config"].get("Labels") or {}).get(LABEL) == execution.uuid
        if not ours or (created and created["container_id"] != found["Id"]):
            foreign.append(execution.name)
            return
        self.engine.remove_container(found["Id"])
        removed.append(found["Id"])

    def clean_volume(self, execution, removed, foreign):
        """Remove the execution's volume."""
        found = self.engine.volume(execution.volume)
        if found is None:
            return
        if (found.get("Labels") or {}).get(LABEL) != execution.uuid:
            foreign.append(execution.volume)
            return
        self.engine.remove_volume(execution.volume)
        removed.append(execution.volume)

    @staticmethod
    def clean_files(execution):
        """Remove everything but the account of what happened."""
        for name in os.listdir(execution.path):
            path = os.path.join(execution.path, name)
            if name in KEPT:
                continue
            if stat.S_ISDIR(os.lstat(path).st_mode):
                shutil.rmtree(path)
            else:
                os.unlink(path)

    # -- residue

    def residue(self):
        """Return every container, volume and directory that carries our label or name."""
        found = [self.container_fact(item) for item in self.containers()]
        found += [self.volume_fact(item) for item in self.volumes()]
        directory = os.path.join(self.root, "executions")
        found += [self.directory_fact(name) for name in sorted(os.listdir(directory))]
        return found

    def containers(self):
        """Return the engine's list of containers with our label or name."""
        known = {}
        for filters in ({"label": [LABEL]}, {"label": ["xgent.image"]}, {"name": ["^/xg-"]}):
            address = "/containers/json?all=1&size=1&filters=" + filter_text(filters)
            for item in self.engine.get(address):
                known[item["Id"]] = item
        return [known[key] for key in sorted(known)]

    def volumes(self):
        """Return the engine's list of volumes with our label or name."""
        known = {}
        for filters in ({"label": [LABEL]}, {"name": ["xg-"]}):
            for item in self.engine.get("/volumes?filters=" + filter_text(filters))["Volumes"]:
                if item["Name"].startswith("xg-") or LABEL in (item.get("Labels") or {}):
                    known[item["Name"]] = item
        return [known[key] for key in sorted(known)]

    def container_fact(self, item):
        """Return one container as residue."""
        labels = item.get("Labels") or {}
        return {
            "kind": "container",
            "name": (item.get("Names") or ["/" + item["Id"]])[0].lstrip("/"),
            "id": item["Id"],
            "run": labels.get("xgent.run"),
            "execution": labels.get(LABEL),
            "state": item["State"],
            "ours": LABEL in labels or "xgent.image" in labels,
            "size_bytes": item.get("SizeRw", 0),
            "age_s": age_s(item["Created"]),
        }

    def volume_fact(self, item):
        """Return one volume as residue; the engine does not know its size for nothing."""
        labels = item.get("Labels") or {}
        return {
            "kind": "volume",
            "name": item["Name"],
            "id": item["Name"],
            "run": labels.get("xgent.run"),
            "execution": labels.get(LABEL),
            "state": "present",
            "ours": LABEL in labels,
            "size_bytes": None,
            "created_at": item.get("CreatedAt"),
        }

    def directory_fact(self, uuid):
        """Return one execution directory as residue."""
        execution = Execution(self.root, uuid)
        run, driven = None, execution.driven()
        try:
            receipts = execution.receipts()
            state = receipts[-1]["kind"] if receipts else "absent"
            run = execution.request()["run_id"] if receipts else None
        except (DamagedError, GapError, OSError):
            state = "damaged"
        return {
            "kind": "execution",
            "name": uuid,
            "id": uuid,
            "run": run,
            "execution": uuid,
            "state": state,
            "driven": driven,
            "ours": True,
            "size_bytes": directory_bytes(execution.path),
            "age_s": age_s(os.stat(execution.path).st_mtime),
        }

    # -- removal of residue

    def remove(self, names):
        """Remove exactly named residue; every name is checked before the first is removed."""
        found = [step for name in names for step in self.removal(name)]
        for kind, name, action in found:
            self.note_removal(kind, name)
            action()
        return [name for _, name, _ in found]

    def removal(self, name):
        """Return what removing a name means; nothing when there is no such thing."""
        steps = []
        container = self.engine.inspect(name)
        if container is not None:
            labels = container["Config"].get("Labels") or {}
            own = LABEL in labels or "xgent.image" in labels
            self.require_ours(name, own and container["Name"] == "/" + name)
            self.require_idle(name, container["State"]["Running"], labels.get(LABEL))
            steps.append(("container", name, lambda: self.engine.remove_container(container["Id"])))
        volume = self.engine.volume(name)
        if volume is not None:
            labels = volume.get("Labels") or {}
            self.require_ours(name, LABEL in labels)
            self.require_idle(name, False, labels.get(LABEL))
            steps.append(("volume", name, lambda: self.engine.remove_volume(name)))
        if "/" not in name and os.path.isdir(os.path.join(self.root, "executions", name)):
            execution = Execution(self.root, name)
            self.require_idle(name, False, name)
            steps.append(("execution", name, lambda: self.remove_directory(execution)))
        return steps

    @staticmethod
    def require_ours(name, ours):
        """Refuse what does not carry our label."""
        if not ours:
            raise RunnerError("E_REMOTE_FOREIGN", "%s does not carry our label" % name)

    def require_idle(self, name, running, uuid):
        """Refuse what is at work."""
        if running or (uuid and Execution(self.root, uuid).driven()):
            raise RunnerError("E_REMOTE_BUSY", "%s is still at work" % name)

    def remove_directory(self, execution):
        """Remove an execution's directory; its receipts go last."""
        lock = execution.lock()
        if lock is None:
            raise RunnerError("E_REMOTE_BUSY", "%s is still at work" % execution.uuid)
        try:
            self.clean_files(execution)
            shutil.rmtree(execution.path)
            sync_directory(os.path.dirname(execution.path))
        finally:
            os.close(lock)

    def note_removal(self, kind, name):
        """Leave a durable line about what is removed by hand, before it is."""
        path = os.path.join(self.root, "removals.jsonl")
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            line = canonical({"at_ms": now_ms(), "kind": kind, "name": name})
            write_all(descriptor, line + b"\n")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def has_secrets(execution):
    """Say whether a credential was meant for an execution; a damaged request counts as yes."""
    try:
        return bool(execution.request()["secrets"])
    except (GapError, OSError):
        return True


def filter_text(filters):
    """Return the engine's filters as a part of an address."""
    return urllib.parse.quote(json.dumps(filters))


def age_s(since):
    """Return how long ago something was made, by the host's own clock."""
    return max(0, int(time.time() - since))


def directory_bytes(path):
    """Return the size of the files below a directory."""
    total = 0
    for parent, _, names in os.walk(path):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                total += os.lstat(os.path.join(parent, name)).st_size
    return total
