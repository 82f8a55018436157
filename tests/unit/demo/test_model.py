"""The scripted model on the wire: shapes, keys, counts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path

import pytest

from xgent_evolve.demo.conversation import Request, read_conversation
from xgent_evolve.demo.model import ScriptedModel, answer

CATALOGUE = (
    "<skills_instructions>\n### Skill roots\n- `r0` = `/app/.agents/skills`\n"
    "### Available skills\n"
    "- house-style: House style: release notes. (file: r0/house-style/SKILL.md)\n"
    "- far: Something else. (file: /etc/codex/skills/far/SKILL.md)\n</skills_instructions>"
)
PROMPT = "Start the release notes in the house style.\n\nTopic: release-notes\n"
EXEC = {"type": "namespace", "name": "functions", "tools": [{"type": "custom", "name": "exec"}]}


def message(role: str, *texts: str) -> dict[str, object]:
    kind = "output_text" if role == "assistant" else "input_text"
    parts = [{"type": kind, "text": text} for text in texts]
    return {"type": "message", "role": role, "content": parts}


def body(*more: Mapping[str, object], code_mode: bool = True) -> dict[str, object]:
    start = [
        message("developer", CATALOGUE),
        message("user", "# AGENTS.md instructions\n\nBe kind.", "<environment_context>…"),
        message("user", PROMPT),
    ]
    if code_mode:
        return {
            "model": "gpt-6.1-sol",
            "input": [{"type": "additional_tools", "tools": [EXEC]}, *start, *more],
        }
    tools = [{"type": "function", "name": "exec_command"}]
    return {"model": "gpt-5.5", "tools": tools, "input": [*start, *more]}


def read(document: Mapping[str, object]) -> Request:
    return Request.model_validate_json(json.dumps(document))


def events(stream: bytes) -> list[dict]:
    blocks = stream.decode().strip().split("\n\n")
    found = [json.loads(block.split("\ndata: ", 1)[1]) for block in blocks]
    assert [block.split("\n")[0] for block in blocks] == [f"event: {e['type']}" for e in found]
    return found


def post(model: ScriptedModel, document: object, key: str = "k", path: str = "/responses") -> bytes:
    request = urllib.request.Request(
        model.base_url + path,
        data=json.dumps(document).encode(),
        headers={"authorization": f"Bearer {key}", "thread-id": "t1"},
    )
    with urllib.request.urlopen(request, timeout=10) as response:
        return response.read()


def test_the_prompt_is_the_last_thing_that_a_person_wrote() -> None:
    talk = read_conversation(read(body(message("user", "<turn_aborted>\n"))))

    assert talk.prompt == PROMPT
    assert len(talk.guidance) == 1


def test_skills_are_listed_with_their_absolute_paths() -> None:
    talk = read_conversation(read(body()))

    assert [(skill.name, skill.path) for skill in talk.skills] == [
        ("house-style", "/app/.agents/skills/house-style/SKILL.md"),
        ("far", "/etc/codex/skills/far/SKILL.md"),
    ]
    assert talk.skills[0].description == "House style: release notes."


@pytest.mark.parametrize("code_mode", [True, False])
def test_a_command_comes_back_as_the_step_it_was(code_mode: bool) -> None:
    call = events(answer(read(body(code_mode=code_mode))))[2]["item"]
    if code_mode:
        assert (call["type"], call["name"]) == ("custom_tool_call", "exec")
        parts = ["Script completed\nWall time 0.1 seconds\nOutput:\n", "the text\n"]
        output: object = [{"type": "input_text", "text": part} for part in parts]
    else:
        assert (call["type"], call["name"]) == ("function_call", "exec_command")
        output = (
            "Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 0\nOutput:\nthe text\n"
        )
    result = {"type": f"{call['type']}_output", "call_id": call["call_id"], "output": output}

    talk = read_conversation(read(body(call, result, code_mode=code_mode)))

    assert [(step.command, step.output) for step in talk.steps] == [
        ("cat /app/.agents/skills/house-style/SKILL.md", "the text\n")
    ]


def test_the_stream_opens_carries_the_items_and_completes() -> None:
    found = events(answer(read(body()), "t1"))

    assert [event["type"] for event in found] == [
        "response.created",
        "response.output_item.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert found[0]["response"]["id"] == found[-1]["response"]["id"] == "resp_t1_0"


def test_the_cost_depends_on_the_texts_and_not_on_ids_times_or_dates() -> None:
    def usage(stamp: str) -> dict:
        call = events(answer(read(body())))[2]["item"]
        text = f"Script completed\nWall time {stamp} seconds\nOutput:\nskill text"
        result = {"type": "custom_tool_call_output", "call_id": call["call_id"], "output": text}
        document = body(call, result) | {"prompt_cache_key": stamp}
        return events(answer(read(document), stamp))[-1]["response"]["usage"]

    assert usage("0.1") == usage("12.345678")
    assert (
        usage("0.1")["total_tokens"] == usage("0.1")["input_tokens"] + usage("0.1")["output_tokens"]
    )


def test_items_of_unknown_kinds_are_no_obstacle() -> None:
    odd = {"type": "reasoning", "summary": [], "content": None, "encrypted_content": "x"}
    odder = {"type": "function_call", "name": "other", "call_id": "c", "arguments": "not json"}

    assert read_conversation(read(body(odd, odder))).steps == ()


def test_the_same_request_gets_the_same_answer_from_another_server() -> None:
    answers = set()
    for _ in range(2):
        with ScriptedModel(key="k") as model:
            answers.add(post(model, body()))
            answers.add(post(model, body()))
            assert model.requests_by_thread == {"t1": 2}

    assert len(answers) == 1


def test_a_wrong_key_is_refused_and_counted_apart() -> None:
    with ScriptedModel(key="k") as model:
        with pytest.raises(urllib.error.HTTPError) as raised:
            post(model, body(), key="other")
        with raised.value as response:
            assert response.code == 401
            assert json.load(response)["error"]["code"] == "invalid_api_key"
        assert (model.refused, model.requests_by_thread) == (1, {})


@pytest.mark.parametrize(
    ("document", "path", "status"),
    [({"model": "m"}, "/responses", 400), ([], "/responses", 400), (body(), "/chat", 404)],
)
def test_what_is_no_request_is_refused(document: object, path: str, status: int) -> None:
    with ScriptedModel() as model, pytest.raises(urllib.error.HTTPError) as raised:
        post(model, document, path=path)
    with raised.value as response:
        assert response.code == status


def test_the_delay_comes_before_every_answer() -> None:
    with ScriptedModel(delay_s=0.2) as model:
        started = time.monotonic()
        post(model, body())
        assert time.monotonic() - started >= 0.2


def test_closing_does_not_wait_for_delayed_answers() -> None:
    lost = threading.Event()

    def ask() -> None:
        try:
            post(model, body())
        except OSError:
            lost.set()

    model = ScriptedModel(delay_s=60)
    with model:
        client = threading.Thread(target=ask)
        client.start()
        while not model.requests_by_thread:
            time.sleep(0.01)
    client.join(timeout=5)

    assert lost.is_set()


def test_as_a_program_it_says_where_it_serves_and_ends_when_told() -> None:
    command = [sys.executable, "-m", "xgent_evolve.demo.model", "--key-env", "KEY_OF_TEST"]
    environment = os.environ | {"KEY_OF_TEST": "k"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as program:
        assert program.stdout is not None
        address = json.loads(program.stdout.readline())["base_url"]
        with urllib.request.urlopen(
            urllib.request.Request(f"{address}/models", headers={"authorization": "Bearer k"}),
            timeout=10,
        ) as response:
            assert response.status == 200
        program.send_signal(signal.SIGTERM)

    assert program.returncode == 0


def test_the_program_refuses_to_start_without_the_key_it_was_promised(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "xgent_evolve.demo.model", "--key-env", "NOT_SET_AT_ALL"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 2
    assert "NOT_SET_AT_ALL" in done.stderr
