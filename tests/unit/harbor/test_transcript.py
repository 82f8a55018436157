"""A transcript is read from whatever the stream holds, and never fails to be read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from xgent_evolve.harbor.transcript import (
    Command,
    Cut,
    FileChange,
    Message,
    Problem,
    Reasoning,
    TodoList,
    ToolCall,
    Unknown,
    read_transcript,
)


def stream(*events: Any) -> bytes:
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


def item(state: str, **fields: Any) -> dict[str, Any]:
    return {"type": f"item.{state}", "item": fields}


def step(*, done: bool) -> dict[str, Any]:
    return {"text": "a", "completed": done}


START = {"type": "thread.started", "thread_id": "01a2"}


def test_every_kind_of_event_becomes_an_entry_where_it_began() -> None:
    found = read_transcript(
        stream(
            START,
            {"type": "turn.started"},
            item("started", id="item_0", type="todo_list", items=[step(done=False)]),
            item("completed", id="item_1", type="reasoning", text="think"),
            item(
                "started",
                id="item_2",
                type="command_execution",
                command="ls",
                aggregated_output="",
                exit_code=None,
                status="in_progress",
            ),
            item("completed", id="item_3", type="agent_message", text="hello"),
            item(
                "completed",
                id="item_2",
                type="command_execution",
                command="ls",
                aggregated_output="a\n",
                exit_code=2,
                status="failed",
            ),
            item(
                "completed",
                id="item_4",
                type="file_change",
                changes=[{"path": "/w/a", "kind": "add"}],
                status="completed",
            ),
            item("completed", id="item_0", type="todo_list", items=[step(done=True)]),
            item(
                "completed",
                id="item_5",
                type="mcp_tool_call",
                server="docs",
                tool="find",
                arguments={"q": 1},
                result={"content": []},
                status="completed",
            ),
            item("completed", id="item_6", type="error", message="odd"),
            item("completed", id="item_7", type="new_thing", more=1),
            {"type": "turn.failed", "error": {"message": "gone"}},
        )
    )
    assert found.thread == "01a2"
    assert found.model_turns == 1
    assert found.entries == (
        TodoList(((True, "a"),)),
        Reasoning("think"),
        Command("ls", "a\n", 2, "failed"),
        Message("hello"),
        FileChange((("add", "/w/a"),), "completed"),
        ToolCall("docs.find", '{"q": 1}', '{"content": []}', "completed"),
        Problem("odd"),
        Unknown("new_thing", '{"id": "item_7", "more": 1, "type": "new_thing"}'),
        Problem("turn failed: gone"),
    )


def test_a_command_whose_end_is_not_told_is_under_way() -> None:
    started = item(
        "started", id="i", type="command_execution", command="sleep", status="in_progress"
    )
    (entry,) = read_transcript(stream(START, started)).entries
    assert entry == Command("sleep", "", None, "in_progress")


def test_items_of_a_second_process_do_not_replace_those_of_the_first() -> None:
    message = item("completed", id="item_0", type="agent_message", text="a")
    assert len(read_transcript(stream(START, message, START, message)).entries) == 2


def test_what_was_not_captured_is_an_entry_between_head_and_tail() -> None:
    message = stream(item("completed", id="item_0", type="agent_message", text="a"))
    later = message.replace(b"item_0", b"item_9")
    found = read_transcript(message + b'{"type":"item.comp', b'left"}}\n' + later, 700)
    assert [type(entry) for entry in found.entries] == [Message, Cut, Message]
    assert found.unread_lines == 2
    # Without a loss the tail goes on where the head ends.
    assert len(read_transcript(message[:10], message[10:]).entries) == 1


def test_lines_that_are_no_events_are_counted_and_bytes_that_are_no_text_are_shown() -> None:
    line = b'{"type":"item.completed","item":{"id":"x","type":"agent_message","text":"\xff\xfe"}}'
    found = read_transcript(b"\x00\x01\n[1]\n" + b"[" * 100_000 + b"\nnull\n" + line + b"\n")
    assert found.entries == (Message("��"),)
    assert found.unread_lines == 4


@given(
    st.lists(st.binary(max_size=60) | st.just(b'{"type":"item.completed","item":[]}'), max_size=6)
)
def test_no_bytes_make_it_fail(lines: list[bytes]) -> None:
    read_transcript(b"\n".join(lines))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
KINDS = (
    "agent_message",
    "reasoning",
    "command_execution",
    "file_change",
    "todo_list",
    "mcp_tool_call",
    "web_search",
    "collab_tool_call",
    "error",
)
FIELDS = (
    "text",
    "command",
    "aggregated_output",
    "exit_code",
    "status",
    "changes",
    "items",
    "arguments",
    "result",
    "message",
    "id",
)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(KINDS), st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=6)
        ),
        max_size=5,
    )
)
def test_no_value_of_any_field_makes_it_fail(events: list[tuple[str, dict[str, Any]]]) -> None:
    read_transcript(stream(START, *(item("completed", type=kind, **more) for kind, more in events)))


def test_real_session_streams_are_read_whole(inputs: Path) -> None:
    """Codex output that Harbor captured: no line is lost."""
    streams = sorted((inputs / "harbor_runs").glob("h024-c*/*/agent/codex.txt"))
    assert streams
    for path in streams:
        read_transcript(path.read_bytes())
