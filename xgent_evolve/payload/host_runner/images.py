"""What is known of the images of this host: read and tried once, then kept."""

import contextlib
import fcntl
import hashlib
import os
import shutil
import tarfile
import tempfile

from durable import open_durable, remove_leftovers, write_durable
from engine import message_of
from errors import EngineAwayError, StepFailedError
from faults import around
from handover import HANDED_OVER, Handover
from trees import bytes_node, write_tar

LARGEST_PROGRAM = 16 << 20
"""How much of a program of an image is looked at."""
TARS = ("/usr/bin/tar", "/bin/tar")
"""Where an image has the program that unpacks what was staged."""
TAR_MARK = "GNU tar"
"""What it contains; others forget the times of directories and links."""
TRIED = ("/bin/sh", "-c", "[ -O /xgent/ctl ] && ! [ -O /xgent/ctl/tried ] && exit 80")
"""Ends with a status of its own when the bytes are there and their owner is not root."""
TRIAL_S = 30


class ImageTrees:
    """The files of images: read from a container that never starts."""

    def __init__(self, root, engine):
        self.root = root
        self.engine = engine
        self.directory = os.path.join(root, "images")

    def tar(self, image, path):
        """Return the archive of `path` in the image."""
        return self.once(image, path, ".tar", lambda final: self.copy(image, path, final))

    def unpacker(self, image):
        """Return the image's program by which its root unpacks what is staged here, or None."""
        name = self.once(image, TAR_MARK, ".path", lambda final: self.find(image, final))
        with open(name, encoding="utf-8") as stream:
            return stream.read() or None

    def once(self, image, what, ending, read):
        """Return the file that keeps what is known; `read` finds it out, the first time."""
        key = hashlib.sha256(("%s\0%s" % (image, what)).encode("utf-8")).hexdigest()
        os.makedirs(self.directory, mode=0o700, exist_ok=True)
        final = os.path.join(self.directory, key + ending)
        if os.path.exists(final):
            return final
        with open(os.path.join(self.directory, "lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not os.path.exists(final):
                remove_leftovers(self.directory)
                with around("stage.image"):
                    read(final)
        return final

    def copy(self, image, path, final):
        """Keep the archive of `path`; an empty one when it is absent."""
        with self.container(image) as container, open_durable(final, 0o600) as stream:
            if not self.engine.get_archive(container, path + "/.", stream):
                tarfile.open(fileobj=stream, mode="w").close()

    def find(self, image, final):
        """Keep the first of the programs that can unpack; empty when none can."""
        able = (path for path in self.programs(image) if self.unpacks(image, path))
        write_durable(final, next(able, "").encode("utf-8"))

    def programs(self, image):
        """Return the paths of GNU tar in the image."""
        found = []
        with self.container(image) as container:
            for path in TARS:
                with tempfile.TemporaryFile(dir=self.directory) as stream:
                    there = self.engine.get_archive(container, path, stream)
                    stream.seek(0)
                    if there and TAR_MARK.encode("ascii") in stream.read(LARGEST_PROGRAM):
                        found.append(path)
        return found

    def unpacks(self, image, program):
        """Try it: a mount may be closed to containers, by SELinux or by other user numbers."""
        handover = Handover(self.directory, None)
        handover.make()
        try:
            with open_durable(handover.stage, 0o644) as stream:
                write_tar(stream, [(b"", {b"xgent/ctl/tried": bytes_node(b"", owner=12)}, None)])
            more = {
                "User": "0:0",
                "Entrypoint": handover.unpacking(program, TRIED),
                "HostConfig": {
                    "NetworkMode": "none",
                    "SecurityOpt": ["no-new-privileges"],
                    "Mounts": [handover.mount()],
                },
            }
            with self.container(image, more) as container:
                status, _ = self.engine.call("POST", "/containers/%s/start" % container)
                if status != 204:
                    return False
                self.engine.wait_end(container, TRIAL_S, lambda: TRIAL_S)
                found = self.engine.inspect(container)
                return found is not None and found["State"]["ExitCode"] == HANDED_OVER
        finally:
            shutil.rmtree(handover.directory, ignore_errors=True)

    @contextlib.contextmanager
    def container(self, image, more=None):
        """Give a container of the image that is made for this, and remove it."""
        # Two users' roots on one engine must not meet, and a crash must leave no second one.
        root = hashlib.sha256(os.path.realpath(self.root).encode("utf-8")).hexdigest()[:20]
        name = "xg-image-" + root
        self.remove_own(name, root)
        body = {
            "Image": image,
            "Cmd": ["true"],
            "Entrypoint": [],
            "Labels": {"xgent.image": image, "xgent.root": root},
        }
        body.update(more or {})
        status, document = self.engine.call("POST", "/containers/create?name=" + name, body)
        if status == 404:
            raise StepFailedError("create", "image_missing", str(message_of(document)))
        if status != 201:
            raise StepFailedError("workspace", "image_unreadable", str(message_of(document)))
        try:
            yield document["Id"]
        finally:
            with contextlib.suppress(EngineAwayError):  # the next reading removes it
                self.remove_own(name, root)

    def remove_own(self, name, root):
        """Remove a reading container of this root."""
        found = self.engine.inspect(name)
        if found is None:
            return
        if (found["Config"].get("Labels") or {}).get("xgent.root") != root:
            text = "a container named %s exists that is not ours" % name
            raise StepFailedError("workspace", "name_taken", text)
        self.engine.remove_container(found["Id"])
