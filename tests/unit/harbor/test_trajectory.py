"""A transcript as an ATIF trajectory; Harbor's own validator reads one in tests/e2e."""

from __future__ import annotations

import json
from typing import Any

from xgent_evolve.harbor.events import Usage
from xgent_evolve.harbor.trajectory import Conversation, trajectory_document
from xgent_evolve.harbor.transcript import (
    Command,
    Cut,
    FileChange,
    Message,
    Problem,
    Reasoning,
    TodoList,
    ToolCall,
    Transcript,
    Unknown,
)

ABOUT = Conversation("u-1", "Do it.", "0.162.1", "a-model", Usage(10, 4, 3, 1))


def steps_of(*entries: Any) -> list[Any]:
    document: Any = trajectory_document(Transcript(entries), ABOUT)
    return document["steps"]


def test_it_begins_with_the_prompt_and_numbers_its_steps() -> None:
    document: Any = trajectory_document(Transcript((Message("Hi"),), "t-1", 1, 2), ABOUT)
    assert [step["step_id"] for step in document["steps"]] == [1, 2]
    assert document["steps"][0] == {"step_id": 1, "source": "user", "message": "Do it."}
    assert document["session_id"] == "t-1"
    assert document["final_metrics"]["total_prompt_tokens"] == 10
    assert document["final_metrics"]["total_cached_tokens"] == 4
    assert document["extra"] == {"lines_that_are_no_events": 2}


def test_what_is_unknown_is_absent_and_not_0() -> None:
    about = Conversation("u-1", "Do it.", "0.162.1", None, None)
    document: Any = trajectory_document(Transcript(()), about)
    assert document["final_metrics"] == {"total_steps": 1}
    assert "model_name" not in document["agent"]
    assert document["session_id"] == "u-1"


def test_every_result_belongs_to_a_call_of_its_step() -> None:
    steps = steps_of(
        Command("ls", "a", 1, "failed"),
        FileChange((("add", "/w/a"),), "completed"),
        TodoList(((True, "a"),)),
        ToolCall("docs.find", '{"q": 1}', "found", "completed"),
        ToolCall("web_search", "words", "", "completed"),
        Problem("odd"),
        Unknown("new", "{}"),
        Cut(7),
    )
    calls: list[str] = []
    for step in steps:
        own = [call["tool_call_id"] for call in step.get("tool_calls", [])]
        results = step.get("observation", {"results": []})["results"]
        assert {result["source_call_id"] for result in results} <= set(own)
        calls += own
    assert len(calls) == len(set(calls)) == 5
    assert steps[1]["observation"]["results"][0]["extra"] == {"status": "failed", "exit_code": 1}
    assert steps[4]["tool_calls"][0]["arguments"] == {"q": 1}
    assert steps[5]["tool_calls"][0]["arguments"] == {"input": "words"}
    assert [step["source"] for step in steps[6:]] == ["system", "system", "system"]


def test_reasoning_goes_with_what_follows_it_and_is_never_lost() -> None:
    steps = steps_of(Reasoning("one"), Reasoning("two"), Message("Hi"), Reasoning("last"))
    assert steps[1]["reasoning_content"] == "one\n\ntwo"
    assert steps[1]["message"] == "Hi"
    assert steps[2] == {
        "step_id": 3,
        "source": "agent",
        "message": "",
        "reasoning_content": "last",
    }


def test_its_text_can_be_written_as_utf_8() -> None:
    lone = "a\ud800b"
    entries = (
        Message(lone),
        Command(lone, lone, 0, "completed"),
        ToolCall(lone, lone, lone, "failed"),
    )
    text = json.dumps(steps_of(*entries), ensure_ascii=False)
    assert "a\ufffdb" in text.encode().decode()
