"""Verbs may be repeated, come at once or too late; identity and evidence are never lost."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import stat
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

pytestmark = pytest.mark.engine


def refused(call: Any) -> str:
    """Return the code with which the runner refuses."""
    with pytest.raises(Exception, match="E_") as caught:
        call()
    return caught.value.args[0]


def cancel(runner: Any, kit: Any, work: Any) -> str:
    return runner.ask("cancel", uuids=[work.uuid], socket=kit.socket)[work.uuid]


def test_a_request_accepted_twice_is_one_execution(host: Any, kit: Any) -> None:
    work = kit.work("true")
    host.send(work)
    item = {"uuid": work.uuid, "request": work.text()}
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: host.ask("accept", executions=[item]), range(8)))
        list(pool.map(lambda _: host.drive(work), range(4)))
    assert answers == [{work.uuid: "accepted"}] * 8
    assert host.wait(work).kinds.count("accepted") == 1
    assert work.starts() == 1
    host.drive(work)
    assert host.wait(work).state == "exported"
    assert work.starts() == 1


def test_another_request_under_the_same_identity_is_a_conflict(host: Any, kit: Any) -> None:
    work = kit.work("true")
    host.send(work)
    other = {**work.request, "limit_s": 31}
    item = {"uuid": work.uuid, "request": json.dumps(other)}
    assert host.ask("accept", executions=[item]) == {work.uuid: "conflict"}
    assert host.execute(work).record["exit_code"] == 0


def test_of_two_requests_that_race_for_an_identity_one_is_accepted(host: Any, kit: Any) -> None:
    work = kit.work("true")
    items = [
        {"uuid": work.uuid, "request": json.dumps({**work.request, "limit_s": limit})}
        for limit in range(30, 38)
    ]
    with ThreadPoolExecutor(8) as pool:
        asked = pool.map(lambda item: host.ask("accept", executions=[item])[work.uuid], items)
        answers = list(asked)
    assert sorted(answers) == ["accepted"] + ["conflict"] * 7


def test_an_identity_is_no_path(host: Any, kit: Any) -> None:
    item = {"uuid": "../../elsewhere", "request": "{}"}
    assert refused(lambda: host.ask("accept", executions=[item])) == "E_REMOTE_RUNNER"


@pytest.mark.parametrize("damage", ["edited", "dropped", "unreadable", "unknown kind"])
def test_receipts_that_were_tampered_with_stop_everything(host: Any, kit: Any, damage: str) -> None:
    work = kit.work("true")
    host.send(work)
    host.drive(work)
    host.wait(work)
    path = host.root / "executions" / work.uuid / "receipts.jsonl"
    lines = path.read_bytes().split(b"\n")
    match damage:
        case "edited":
            lines[1] = lines[1].replace(b'"created"', b'"staged"')
        case "dropped":
            del lines[2]
        case "unreadable":
            lines[3] = b"{"
        case "unknown kind":
            lines[-2] = lines[-2].replace(b'"exported"', b'"imported"')
    path.write_bytes(b"\n".join(lines))
    assert host.look(work)["state"] == "damaged"
    before = path.read_bytes()
    host.drive(work)
    assert refused(lambda: host.clean(work)) == "E_REMOTE_DAMAGED"
    assert refused(lambda: cancel(host, kit, work)) == "E_REMOTE_DAMAGED"
    time.sleep(0.3)
    assert path.read_bytes() == before
    assert work.starts() == 1
    assert kit.engine("ps", "-aq", "--filter", f"name={work.name}") != ""


def test_a_torn_last_receipt_was_never_written(host: Any, kit: Any) -> None:
    work = kit.work("true")
    host.send(work)
    path = host.root / "executions" / work.uuid / "receipts.jsonl"
    with path.open("ab") as stream:
        stream.write(b'{"kind":"created","seq":1')
    assert host.look(work)["state"] == "accepted"
    assert host.execute(work).state == "exported"


def test_a_changed_request_file_is_a_gap(host: Any, kit: Any) -> None:
    work = kit.work("true")
    host.send(work)
    path = host.root / "executions" / work.uuid / "request.json"
    path.write_text(path.read_text().replace('"limit_s": 30', '"limit_s": 90'))
    assert host.execute(work).state == "gap"
    assert work.starts() == 0


# Cancel.


def test_cancelled_before_it_was_driven_it_never_starts(host: Any, kit: Any) -> None:
    work = kit.work("true")
    host.send(work)
    assert [cancel(host, kit, work) for _ in range(2)] == ["cancelled", "cancelled"]
    host.drive(work)
    time.sleep(0.3)
    result = host.wait(work)
    assert result.kinds == ["accepted", "cancel_requested", "cancelled"]
    assert work.starts() == 0
    assert host.clean(work)["removed"] == []


def test_cancelling_what_has_ended_or_never_was_changes_nothing(host: Any, kit: Any) -> None:
    work = kit.work("true")
    assert cancel(host, kit, work) == "absent"
    kinds = host.execute(work).kinds
    assert cancel(host, kit, work) == "exported"
    assert host.wait(work).kinds == kinds
    host.clean(work)
    assert cancel(host, kit, work) == "cleaned"


def test_cancelled_while_it_runs_it_keeps_what_was_done(host: Any, kit: Any) -> None:
    work = kit.work("echo partial >partial; echo said; trap '' TERM; sleep 60 & wait; sleep 60")
    host.send(work)
    host.drive(work)
    while not work.starts():
        time.sleep(0.02)
    began = time.monotonic()
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(lambda _: cancel(host, kit, work), range(4))) <= {
            "cancel_requested",
            "exported",
        }
    result = host.wait(work)
    assert time.monotonic() - began < 20
    assert result.record["status"] == "cancelled"
    assert result.record["expired"] is False
    assert [item["path"] for item in result.delivery["changes"]] == ["partial"]
    assert host.content(work, result, "stdout") == b"said\n"


def test_cancelled_at_any_moment_it_ends_with_at_most_one_start(host: Any, kit: Any) -> None:
    def ended(delay_s: float) -> tuple[str, int]:
        work = kit.work("sleep 60")
        host.send(work)
        host.drive(work)
        time.sleep(delay_s)
        cancel(host, kit, work)
        result = host.wait(work)
        if result.state == "exported":
            assert (result.record or {"status": "cancelled"})["status"] == "cancelled"
        host.clean(work)
        return result.state, work.starts()

    with ThreadPoolExecutor(4) as pool:
        ends = list(pool.map(ended, [step * 0.05 for step in range(16)]))
    assert all(starts == 0 for state, starts in ends if state == "cancelled")
    assert all(starts <= 1 for _, starts in ends)
    assert {state for state, _ in ends} <= {"cancelled", "exported"}


def test_without_the_credential_only_the_bare_record_of_a_cancelled_one_is_exported(
    host: Any, kit: Any
) -> None:
    secret = b'{"OPENAI_API_KEY": "sk-0123456789abcdef0123456789"}'
    work = kit.work("cat /home/agent/auth.json; sleep 60", secret=secret, user=1000)
    kept = kit.work("cat /home/agent/auth.json", secret=secret, user=1000)
    runner = kit.runner()
    for one in (work, kept):
        runner.send(one)
        runner.drive(one)
        runner.until(one, "started")
        while not one.starts():
            time.sleep(0.02)
    for pid in runner.drivers():
        os.kill(pid, signal.SIGKILL)
    runner = kit.runner(runner.root)
    assert cancel(runner, kit, work) == "cancel_requested"
    runner.ask("drive", uuids=[work.uuid], with_secret=False)
    exported = runner.wait(work, 20).receipt("exported")
    assert exported["withheld"] is True
    assert (exported["record"]["status"], exported["files"]) == ("cancelled", {})

    runner.ask("drive", uuids=[kept.uuid], with_secret=False)
    runner.until(kept, "credential_destroyed")
    time.sleep(0.5)
    assert runner.look(kept)["state"] == "credential_destroyed"
    runner.drive(kept)
    result = runner.wait(kept)
    assert runner.content(kept, result, "stdout") == b"[REDACTED]"


# Blobs.


def frames(content: bytes, part: int, *, offsets: bool = True) -> list[tuple[Any, bytes]]:
    sha256 = hashlib.sha256(content).hexdigest()
    found = []
    for offset in range(0, len(content), part):
        body = content[offset : offset + part]
        item = {"sha256": sha256, "size": len(content), "length": len(body)}
        item["last"] = offset + part >= len(content)
        found.append(({**item, "offset": offset} if offsets else item, body))
    return found


def test_two_requests_may_send_the_same_blob_at_once(host: Any, kit: Any) -> None:
    content = os.urandom(300_000) + bytes(300_000)
    one = frames(content, 100_000)
    for (item, body), (other, second) in zip(one, one, strict=True):
        host.ask("put", body, blobs=[item])
        host.ask("put", second, blobs=[other])
    sha256 = one[0][0]["sha256"]
    assert host.ask("missing", blobs=[{"sha256": sha256, "size": len(content)}]) == []
    assert (host.root / "blobs" / sha256[:2] / sha256[2:]).read_bytes() == content
    assert list((host.root / "blobs" / "incoming").iterdir()) == []


def test_parts_without_an_offset_are_taken_in_order(host: Any, kit: Any) -> None:
    content = os.urandom(250_000)
    for item, body in frames(content, 100_000, offsets=False):
        host.ask("put", body, blobs=[item])
    sha256 = hashlib.sha256(content).hexdigest()
    assert (host.root / "blobs" / sha256[:2] / sha256[2:]).read_bytes() == content


def test_a_damaged_blob_gets_no_name_and_can_be_sent_again(host: Any, kit: Any) -> None:
    content = os.urandom(1000)
    [(item, body)] = frames(content, 1000)
    damaged = bytes([body[0] ^ 1]) + body[1:]
    call = lambda: host.ask("put", damaged, blobs=[item])  # noqa: E731
    assert refused(call) == "E_STORE_REMOTE_MISMATCH"
    assert host.ask("missing", blobs=[item]) == [item["sha256"]]
    host.ask("put", body, blobs=[item])
    assert host.ask("missing", blobs=[item]) == []


def test_a_blob_that_rots_on_the_host_fails_before_the_start(host: Any, kit: Any) -> None:
    work = kit.work("true", files={"input": uuid4().hex.encode()})
    host.send(work)
    entry = work.request["workspace"]["entries"][0]
    path = host.root / "blobs" / entry["sha256"][:2] / entry["sha256"][2:]
    path.chmod(0o600)
    path.write_bytes(b"x" * entry["size"])
    host.drive(work)
    assert host.wait(work).receipt("failed")["cause"] == "blob_damaged"
    assert work.starts() == 0
    assert host.ask("missing", blobs=[entry]) == [entry["sha256"]]
    assert host.execute(work.again()).state == "exported"


def test_forgotten_uploads_are_swept_and_others_are_not(kit: Any) -> None:
    root = kit.directory / "sweep"
    incoming = root / "blobs" / "incoming"
    first = kit.runner(root)
    [*_, (_, _)] = parts = frames(os.urandom(300), 100)
    first.ask("put", parts[0][1], blobs=[parts[0][0]])
    [written] = incoming.iterdir()
    fresh, old = incoming / "fresh", incoming / "old"
    for path in (fresh, old):
        path.write_bytes(b"part")
    for path in (old, written):
        os.utime(path, (time.time() - 4000,) * 2)
    kit.runner(root)
    assert set(incoming.iterdir()) == {fresh, written}
    for item, body in parts[1:]:
        first.ask("put", body, blobs=[item])
    assert set(incoming.iterdir()) == {fresh}


def test_changes_elsewhere_are_named_and_what_was_placed_there_is_not(host: Any, kit: Any) -> None:
    commands = "for n in $(seq 30); do echo >/usr/share/made-$n; done; rm /etc/issue; echo >own"
    work = kit.work(f"{commands}; echo >/tmp/passing; echo changed >>/placed/before", files={})
    work.request["capture"]["outside"] = True
    placed = work.request["inputs"][0] | {"path": "placed/before"}
    work.request["inputs"].append(placed)
    found = host.execute(work).receipt("exported")["outside"]
    assert found["count"] == 31
    assert found["paths"][0] == "/etc/issue"
    assert len(found["paths"]) == 20
    assert all(path.startswith("/usr/share/made-") for path in found["paths"][1:])
    quiet = kit.work("echo >own")
    quiet.request["capture"]["outside"] = True
    assert host.execute(quiet).receipt("exported")["outside"] == {"count": 0, "paths": []}


# Facts, permissions, residue.


def test_the_probe_says_how_full_the_host_is(host: Any, kit: Any) -> None:
    work = kit.work("true")
    host.execute(work)
    found = host.ask("probe", docker_path=kit.docker, socket=kit.socket, images=[kit.image])
    stats = found["stats"]
    assert 0 < stats["disk_free_bytes"] <= stats["disk_total_bytes"]
    assert 0 < stats["inodes_free"] <= stats["inodes_total"]
    assert stats["counts"]["executions"] >= 1
    assert stats["counts"]["blobs"] >= 3


def test_everything_below_the_root_is_closed_to_others(host: Any, kit: Any) -> None:
    work = kit.work("true", secret=b'{"OPENAI_API_KEY": "sk-0123456789abcdef0123456789"}')
    host.execute(work)
    assert stat.S_IMODE(host.root.stat().st_mode) == 0o700
    for name in ("executions", "blobs", "executions/" + work.uuid):
        assert stat.S_IMODE((host.root / name).stat().st_mode) == 0o700
    files = [path for path in (host.root / "executions").rglob("*") if path.is_file()]
    # What a container reads is open below directories that are closed.
    own = [path for path in files if path.name != "stage.tar"]
    assert all(stat.S_IMODE(path.stat().st_mode) & 0o077 == 0 for path in own)


def test_residue_lists_what_is_ours_and_only_that_is_removed_by_name(kit: Any) -> None:
    runner = kit.runner()
    work, busy = kit.work("true"), kit.work("sleep 60")
    runner.execute(work)
    runner.send(busy)
    runner.drive(busy)
    runner.until(busy, "started")
    foreign = f"xg-{uuid4()}"
    kit.engine("create", "--name", foreign, kit.image, "true")
    ask = lambda *names: runner.ask("remove", names=list(names), socket=kit.socket)  # noqa: E731
    try:
        found = runner.ask("residue", socket=kit.socket)
        mine = {item["name"]: item for item in found if work.uuid in item["name"]}
        assert {name: item["kind"] for name, item in mine.items()} == {
            work.name: "container",
            f"{work.name}-work": "volume",
            work.uuid: "execution",
        }
        for item in mine.values():
            assert item["execution"] == work.uuid
            assert item["run"] == work.request["run_id"]
            assert item["ours"] is True
        assert mine[work.name]["state"] == "exited"
        assert mine[work.uuid]["state"] == "exported"
        assert mine[work.uuid]["size_bytes"] > 0
        [other] = [item for item in found if item["name"] == foreign]
        assert other["ours"] is False
        assert refused(lambda: ask(work.name, foreign)) == "E_REMOTE_FOREIGN"
        assert refused(lambda: ask(work.name, busy.name)) == "E_REMOTE_BUSY"
        assert refused(lambda: ask(busy.uuid)) == "E_REMOTE_BUSY"
        assert kit.engine("ps", "-aq", "--filter", f"name={work.name}"), "checked before removal"
        names = [work.name, f"{work.name}-work", work.uuid]
        assert ask(*names) == names
        assert ask(*names) == []
        noted = (runner.root / "removals.jsonl").read_text().splitlines()
        assert [json.loads(line)["name"] for line in noted] == names
        left = [item["name"] for item in runner.ask("residue", socket=kit.socket)]
        assert not any(work.uuid in name for name in left)
    finally:
        kit.engine("rm", "-f", foreign)


def test_cleanup_comes_after_the_end_once_and_spares_the_account(host: Any, kit: Any) -> None:
    work = kit.work("sleep 1")
    host.send(work)
    assert refused(lambda: host.clean(work)) == "E_REMOTE_BUSY"
    host.drive(work)
    host.wait(work)
    assert host.clean(work) == host.clean(work)
    directory = host.root / "executions" / work.uuid
    assert sorted(path.name for path in directory.iterdir()) == [
        "lock",
        "receipts.jsonl",
        "request.json",
    ]
    kit.engine("inspect", work.name, check=False)
    assert kit.engine("ps", "-aq", "--filter", f"name={work.name}") == ""


def test_a_controller_that_leaves_does_not_end_what_it_started(kit: Any) -> None:
    runner = kit.runner()
    work = kit.work("sleep 1; echo done")
    runner.send(work)
    runner.drive(work)
    runner.stop()
    path = Path(runner.root) / "executions" / work.uuid / "receipts.jsonl"
    end = time.monotonic() + 20
    while b'"exported"' not in path.read_bytes() and time.monotonic() < end:
        time.sleep(0.05)
    runner = kit.runner(runner.root)
    assert runner.content(work, runner.wait(work), "stdout") == b"done\n"
