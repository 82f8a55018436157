"""Killed at every step, a store loses nothing that it acknowledged and shows nothing half done.

A child process works through a story and prints a line after each acknowledgement. It is killed
with SIGKILL at its first crash point, then at its second, and so on until a run survives.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from xgent_evolve.canonical import digest_bytes
from xgent_evolve.errors import RefusedError
from xgent_evolve.store.blobs import BlobStore
from xgent_evolve.store.journal import Journal
from xgent_evolve.store.rundir import RunDir

STORIES = {
    "blobs": """
from xgent_evolve.store.blobs import BlobStore
store = BlobStore(Path(sys.argv[1]) / "blobs")
for batch in ([b"one"], [b"two", b"three"], [b"one", b"four"], [b"%d" % n for n in range(20)]):
    store.put_many(batch)
    say([content.decode() for content in batch])
""",
    "journal": """
import asyncio
from xgent_evolve.store.journal import Journal
path = Path(sys.argv[1]) / "journal.jsonl"
journal = Journal.open(path) if path.exists() else Journal.create(path)
for n in range(3):
    journal.append({"n": n})
    say(n)
async def soon(n):
    await journal.append_soon({"n": n})
    say(n)
async def crowd():
    await asyncio.gather(*(soon(n) for n in range(3, 9)))
asyncio.run(crowd())
journal.close()
""",
    "rundir": """
from xgent_evolve.store.rundir import RunDir
with RunDir.draft(Path(sys.argv[1]) / "run") as draft:
    draft.blobs.put_many([b"one", b"two"])
    draft.write_protocol(b"{}")
say("created")
""",
    "state": """
from xgent_evolve.store.rundir import RunDir
run = RunDir.open(Path(sys.argv[1]) / "run")
with run.lock():
    for n in range(1, 4):
        run.append_results([{"n": n}])
        say(n)
        run.write_state({"n": n})
        say(n)
        run.execution("00000000-0000-4000-8000-00000000000%d" % n).write("intent.json", b"{}")
""",
}

HEAD = """
import json, sys
from pathlib import Path
def say(what):
    print(json.dumps(what), flush=True)
"""


def tell(story: str, place: Path, crash_at: int) -> tuple[bool, list]:
    """Run a story that dies at its crash point of that number; return (survived, said)."""
    answer = subprocess.run(
        [sys.executable, "-c", HEAD + STORIES[story], place],
        env=os.environ | {"XGENT_EVOLVE_CRASH_AT": str(crash_at)},
        stdout=subprocess.PIPE,
        check=False,
    )
    assert answer.returncode in {0, -signal.SIGKILL}
    return answer.returncode == 0, [json.loads(line) for line in answer.stdout.splitlines()]


def every_crash(story: str, tmp_path: Path, prepare=lambda place: None):
    """Yield the directory and what was acknowledged, once for each point of the story."""
    for crash_at in range(1, 1000):
        place = tmp_path / str(crash_at)
        place.mkdir()
        prepare(place)
        survived, said = tell(story, place, crash_at)
        yield place, said
        if survived:
            assert crash_at > 3, "the story has no crash points"
            return
        shutil.rmtree(place)
    pytest.fail("the story never ends")


def test_no_blob_is_half_written_and_no_acknowledged_blob_is_lost(tmp_path):
    for place, said in every_crash("blobs", tmp_path):
        store = BlobStore(place / "blobs")
        for digest in store.digests():
            store.get(digest)
        acknowledged = [text.encode() for batch in said for text in batch]
        for content in acknowledged:
            assert store.get(digest_bytes(content)) == content
        store.sweep()
        contents = [b"one", b"two", b"three", b"four"]
        assert [store.get(digest) for digest in store.put_many(contents)] == contents
        assert not (store.root / "quarantine").exists()


def test_no_acknowledged_fact_is_lost_and_none_is_invented(tmp_path):
    for place, said in every_crash("journal", tmp_path):
        path = place / "journal.jsonl"
        if not path.exists():
            assert said == []
            continue
        with Journal.open(path) as journal:
            found = [fact["n"] for fact in journal.facts]
            assert found == list(range(len(found)))
            assert set(said) <= set(found)
            journal.append({"n": len(found)})
        with Journal.open(path) as journal:
            assert [fact["n"] for fact in journal.facts] == list(range(len(found) + 1))


def test_a_run_directory_is_there_whole_or_not_at_all(tmp_path):
    for place, said in every_crash("rundir", tmp_path):
        path = place / "run"
        if path.exists():
            run = RunDir.open(path)
            assert run.protocol_path.read_bytes() == b"{}"
            for content in (b"one", b"two"):
                assert run.blobs.get(digest_bytes(content)) == content
            with run.lock(), run.open_journal() as journal:
                assert journal.facts == []
        else:
            assert said == []
            with pytest.raises(RefusedError):
                RunDir.open(path)
            RunDir.create(path)
        assert [item.name for item in place.iterdir()] == ["run"]


def test_views_are_old_or_new_and_rows_are_never_lost(tmp_path):
    for place, said in every_crash("state", tmp_path, lambda at: RunDir.create(at / "run")):
        run = RunDir.open(place / "run")
        with run.lock():
            state = json.loads(run.state_path.read_bytes())["n"] if run.state_path.exists() else 0
            assert state in {len(said) // 2, len(said) // 2 + 1}
            run.append_results([{"n": "last"}])
        lines = run.results_path.read_bytes().splitlines()
        rows = [json.loads(line)["n"] for line in lines]
        assert rows[-1] == "last"
        assert rows[:-1] == list(range(1, len(rows)))
        assert len(rows) - 1 >= (len(said) + 1) // 2
        for intent in run.path.glob("executions/*/*"):
            assert intent.name == "intent.json"
            assert intent.read_bytes() == b"{}"
