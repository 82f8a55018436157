"""An optimizer's answer is read strictly; nonsense is a reason and never an exception."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xgent_evolve.harbor.artifacts import Artifacts, Delivery, RefusedFile, StoredFile
from xgent_evolve.harbor.request import Change, FileFact
from xgent_evolve.search.proposal import (
    NewFile,
    answer_schema,
    contradictions,
    read_changes,
    read_proposal,
)
from xgent_evolve.store.memory import MemoryBlobs
from xgent_evolve.strategies.strategy import Proposal

SOUND = {
    "parent_hash": "blake3:1",
    "hypothesis": "It is not read.",
    "expected_effect": "It is read.",
    "counterexample": "It is read and fails.",
    "changed_paths": ["text/skills/a/SKILL.md"],
}


def answered(blobs: MemoryBlobs, message: str | None, *changes: Change, refused: Any = ()) -> Any:
    """Return what an optimizer left whose last message is `message`."""
    lines = [{"type": "thread.started", "thread_id": "t"}]
    if message is not None:
        lines.append({"type": "item.completed", "item": {"type": "agent_message", "text": "Hm."}})
        item = {"type": "agent_message", "text": message}
        lines.append({"type": "item.completed", "item": item})
    stdout = "".join(json.dumps(line) + "\n" for line in lines).encode()
    digest = blobs.put(stdout)
    sha256 = hashlib.sha256(stdout).hexdigest()
    named = {
        change.after.sha256: blobs.put(CONTENTS[change.after.sha256])
        for change in changes
        if change.after is not None and change.after.sha256 is not None
    }
    return Artifacts(
        uuid="u",
        slot="s",
        attempt=1,
        kind="optimizer",
        files={"stdout": StoredFile(sha256=sha256, size=len(stdout))},
        delivery=Delivery(changes=list(changes), refused=list(refused)),
        blobs={sha256: digest, **named},
    )


CONTENTS: dict[str, bytes] = {}


def file_fact(content: bytes, mode: int = 0o644) -> FileFact:
    sha256 = hashlib.sha256(content).hexdigest()
    CONTENTS[sha256] = content
    return FileFact(kind="file", mode=mode, sha256=sha256, size=len(content))


def read(message: str | None) -> Proposal | str:
    blobs = MemoryBlobs()
    return read_proposal(answered(blobs, message), blobs.get)


def test_a_sound_answer_is_read() -> None:
    found = read(json.dumps(SOUND))
    assert isinstance(found, Proposal)
    assert found.parent_hash == "blake3:1"
    assert found.changed_paths == ("text/skills/a/SKILL.md",)


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (None, "no final message"),
        ("I have changed the text.", "not JSON"),
        ("[" * 20_000, "not JSON"),
        (json.dumps({**SOUND, "parent_hash": "x" * 70_000}), "longer than 64000"),
        ("[]", "is no proposal"),
        ("null", "is no proposal"),
        (json.dumps({**SOUND, "more": 1}), "more"),
        (json.dumps({key: SOUND[key] for key in list(SOUND)[1:]}), "parent_hash"),
        (json.dumps({**SOUND, "hypothesis": 3}), "hypothesis"),
        (json.dumps({**SOUND, "changed_paths": "text/a"}), "changed_paths"),
        (json.dumps({**SOUND, "counterexample": "  "}), "empty"),
        (json.dumps({**SOUND, "hypothesis": "x" * 5000}), "longer than 4000"),
    ],
)
def test_an_unsound_answer_is_told(message: str | None, words: str) -> None:
    found = read(message)
    assert isinstance(found, str)
    assert words in found


@given(
    st.text()
    | st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=20),
        lambda item: st.lists(item, max_size=3) | st.dictionaries(st.text(max_size=12), item),
    ).map(json.dumps)
)
def test_no_answer_is_too_strange_to_be_read(message: str) -> None:
    assert isinstance(read(message), Proposal | str)


def test_the_schema_asks_for_exactly_what_is_read() -> None:
    schema = json.loads(answer_schema())
    assert set(schema["required"]) == set(schema["properties"]) == set(SOUND)
    assert schema["additionalProperties"] is False
    assert all(item["description"] for item in schema["properties"].values())


def test_only_files_below_the_text_are_taken() -> None:
    blobs = MemoryBlobs()
    old = FileFact(kind="file", mode=0o644, sha256="0" * 64, size=1)
    found, problems = read_changes(
        answered(
            blobs,
            json.dumps(SOUND),
            Change(path="notes.txt", before=None, after=file_fact(b"scratch")),
            Change(path="text", before=None, after=FileFact(kind="dir", mode=0o755)),
            Change(path="text/a.md", before=old, after=file_fact(b"new", 0o755)),
            Change(path="text/b.md", before=old, after=None),
            Change(path="text/c", before=None, after=FileFact(kind="dir", mode=0o755)),
            Change(path="text/d", before=None, after=FileFact(kind="link", mode=0o777, target="/")),
            Change(path="textual.md", before=None, after=file_fact(b"beside")),
            refused=[RefusedFile(path="text/huge", size=10**9), RefusedFile(path="x", size=1)],
        ),
        blobs.get,
    )
    assert found == {"a.md": NewFile(b"new", executable=True), "b.md": None}
    assert len(problems) == 2
    assert "text/huge has 1000000000 bytes" in problems[0]
    assert "d is a link" in problems[1]


def test_what_is_said_and_what_is_done_must_agree() -> None:
    said = Proposal("blake3:1", "h", "e", "c", ("text/a.md", "b.md"))
    new = NewFile(b"", executable=False)
    assert list(contradictions(said, "blake3:1", {"a.md": new, "b.md": None})) == []
    told = list(contradictions(said, "blake3:2", {"a.md": new, "c.md": new}))
    assert ["parent_hash" in told[0], "c.md" in told[1], "b.md" in told[2]] == [True, True, True]
