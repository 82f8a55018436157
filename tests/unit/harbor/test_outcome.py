"""What artifacts mean, by their record alone."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from xgent_evolve.engine.retry import is_worth_another_attempt
from xgent_evolve.harbor.artifacts import (
    Artifacts,
    Delivery,
    EngineState,
    ExitRecord,
    Failure,
    LinkFile,
    StoredFile,
)
from xgent_evolve.harbor.causes import code_of
from xgent_evolve.harbor.events import json_lines
from xgent_evolve.harbor.outcome import (
    Broken,
    Done,
    Grade,
    agent_end,
    command_end,
    grade_end,
    log_tail,
)
from xgent_evolve.measure.outcomes import Scored, Unscored
from xgent_evolve.store.memory import MemoryBlobs

ENGINE = EngineState(exit_code=0, oom_killed=False, started_at="a", finished_at="b")
COMPLETED = b'{"type":"turn.completed","usage":{"input_tokens":5,"output_tokens":2}}\n'


class Kept:
    """Artifacts of one execution and the bytes that they name."""

    def __init__(self) -> None:
        self.blobs = MemoryBlobs()
        self.fields: dict[str, Any] = {
            "uuid": "u",
            "slot": "s",
            "attempt": 1,
            "kind": "agent",
            "engine": ENGINE,
            "files": {},
            "blobs": {},
        }

    def ended(self, exit_code: int = 0, *, expired: bool = False, status: str = "ended") -> Kept:
        self.fields["record"] = ExitRecord.model_validate(
            {
                "uuid": "u",
                "container": "c",
                "status": status,
                "exit_code": exit_code,
                "expired": expired,
                "started_cs": 100,
                "ended_cs": 350,
            }
        )
        return self

    def file(self, name: str, content: bytes) -> Kept:
        sha256 = hashlib.sha256(content).hexdigest()
        self.fields["files"][name] = StoredFile(sha256=sha256, size=len(content))
        self.fields["blobs"][sha256] = self.blobs.put(content)
        return self

    def artifacts(self, **fields: Any) -> Artifacts:
        return Artifacts(**{**self.fields, **fields})

    def agent(self, **fields: Any) -> Done | Broken:
        return agent_end(self.artifacts(**fields), self.blobs.get)

    def grade(self, policy: Any = "must_agree") -> Grade | Broken:
        return grade_end(self.artifacts(kind="grade"), self.blobs.get, policy)


def session(*lines: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def usage_record(tokens: int) -> dict[str, Any]:
    usage = {"input_tokens": tokens, "cached_input_tokens": 1, "output_tokens": 2}
    return {"type": "token_usage_record", "payload": {"usage": usage}}


def failed_with(information: Any) -> dict[str, Any]:
    error = {"message": "m", "codex_error_info": information}
    return {"type": "event_msg", "payload": {"type": "task_complete", "error": error}}


def test_an_engine_exit_code_without_a_record_is_never_a_result() -> None:
    lost = command_end(Kept().artifacts())
    assert isinstance(lost, Broken)
    assert lost.cause == "killed"


def test_running_out_of_memory_is_told_from_being_killed() -> None:
    engine = ENGINE.model_copy(update={"oom_killed": True, "exit_code": 137})
    lost = command_end(Kept().artifacts(engine=engine))
    assert isinstance(lost, Broken)
    assert lost.cause == "out_of_memory"


@pytest.mark.parametrize(("started", "cause"), [(False, "not_unpacked"), (True, "killed")])
def test_inputs_that_could_not_be_unpacked_are_named_unless_the_command_was_started(
    started: bool, cause: str
) -> None:
    engine = ENGINE.model_copy(update={"exit_code": 86})
    lost = command_end(Kept().artifacts(engine=engine, command_started=started))
    assert isinstance(lost, Broken)
    assert lost.cause == cause


@pytest.mark.parametrize("status", ["no_credential", "prepare_failed", "cancelled"])
def test_a_command_that_was_not_started_or_was_cancelled_has_no_result(status: str) -> None:
    end = command_end(Kept().ended(status=status).artifacts())
    assert isinstance(end, Broken)
    assert end.cause == status


def test_a_failure_before_the_start_names_its_stage() -> None:
    failure = Failure(stage="create", cause="image_missing", detail="no such image")
    end = command_end(Kept().artifacts(failure=failure))
    assert end == Broken("create_image_missing", "no such image")


def test_a_time_limit_is_a_result_whatever_the_stream_says() -> None:
    end = Kept().ended(143, expired=True).file("stdout", b'{"type":"turn.started"}\n').agent()
    assert end == Done(timed_out=True, exit_code=143, usage=None)


def test_usage_is_the_sum_of_every_answer_sub_agents_included() -> None:
    kept = Kept().ended().file("stdout", COMPLETED)
    kept.file("sessions/2026/a.jsonl", session(usage_record(100), usage_record(50)))
    kept.file("sessions/2026/b.jsonl", session(usage_record(7)))
    end = kept.agent()
    assert isinstance(end, Done)
    assert end.usage is not None
    assert (end.usage.input, end.usage.cached_input, end.usage.output) == (157, 3, 6)


def test_usage_of_the_stream_counts_only_when_no_session_tells() -> None:
    end = Kept().ended().file("stdout", COMPLETED).agent()
    assert isinstance(end, Done)
    assert end.usage is not None
    assert end.usage.input == 5


def test_unreported_usage_is_unknown_and_not_zero() -> None:
    nothing = b'{"type":"turn.completed","usage":{"input_tokens":0,"output_tokens":0}}\n'
    end = Kept().ended().file("stdout", nothing).agent()
    assert isinstance(end, Done)
    assert end.usage is None


@pytest.mark.parametrize(
    ("information", "cause"),
    [
        ({"http_connection_failed": {"http_status_code": 401}}, "model_unauthorised"),
        ({"http_connection_failed": {"http_status_code": 404}}, "model_unknown"),
        ({"http_connection_failed": {"http_status_code": 503}}, "model_unavailable"),
        ({"http_connection_failed": {"http_status_code": None}}, "model_unreachable"),
        (
            {"response_too_many_failed_attempts": {"http_status_code": 429}},
            "model_rate_limited",
        ),
        ("usage_limit_exceeded", "model_quota_used_up"),
        ("internal_server_error", "model_unavailable"),
    ],
)
def test_a_turn_that_the_service_ended_says_nothing_about_the_text(
    information: Any, cause: str
) -> None:
    stdout = b'{"type":"turn.failed","error":{"message":"sorry"}}\n'
    kept = Kept().ended(1).file("stdout", stdout)
    end = kept.file("sessions/a.jsonl", session(failed_with(information))).agent()
    assert isinstance(end, Broken)
    assert (end.cause, end.detail) == (cause, "sorry")


def test_an_agent_that_fills_its_own_context_is_graded() -> None:
    stdout = b'{"type":"turn.failed","error":{"message":"too long"}}\n'
    kept = Kept().ended(1).file("stdout", stdout)
    kept.file("sessions/a.jsonl", session(failed_with("context_window_exceeded")))
    assert isinstance(kept.agent(), Done)


def test_a_stream_that_was_cut_in_the_middle_is_read_at_both_ends() -> None:
    kept = Kept().ended().file("stdout", b'{"type":"turn.started"}\n{"type":"it')
    assert isinstance(kept.file("stdout.tail", b'em"}\n' + COMPLETED).agent(), Done)


@pytest.mark.parametrize(
    ("reward", "exit_code", "value"), [(b"1\n", 0, 1.0), (b"0", 1, 0.0), (b" 0 \n", 3, 0.0)]
)
def test_a_reward_that_agrees_with_the_exit_code_is_a_score(
    reward: bytes, exit_code: int, value: float
) -> None:
    grade = Kept().ended(exit_code).file("verifier/reward.txt", reward).grade()
    assert isinstance(grade, Grade)
    assert grade.outcome == Scored(value)


@pytest.mark.parametrize(
    ("reward", "exit_code", "cause"),
    [
        (None, 0, "reward_missing"),
        (b"", 0, "reward_missing"),
        (b"0.625", 0, "reward_malformed"),
        (b"-350", 1, "reward_malformed"),
        (b"nan", 1, "reward_malformed"),
        (b"true", 0, "reward_malformed"),
        (b"1", 3, "reward_contradicts_exit"),
        (b"0", 0, "reward_contradicts_exit"),
    ],
)
def test_what_is_no_clear_reward_is_unscored_and_never_zero(
    reward: bytes | None, exit_code: int, cause: str
) -> None:
    kept = Kept().ended(exit_code)
    if reward is not None:
        kept.file("verifier/reward.txt", reward)
    grade = kept.grade()
    assert isinstance(grade, Grade)
    assert isinstance(grade.outcome, Unscored)
    assert grade.outcome.cause == cause


@pytest.mark.parametrize(
    ("text", "cause"), [(None, "reward_malformed"), (b"1", "reward_ambiguous")]
)
def test_reward_json_is_not_read_and_never_wins(text: bytes | None, cause: str) -> None:
    kept = Kept().ended().file("verifier/reward.json", b'{"reward": 1}')
    if text is not None:
        kept.file("verifier/reward.txt", text)
    grade = kept.grade()
    assert isinstance(grade, Grade)
    assert isinstance(grade.outcome, Unscored)
    assert grade.outcome.cause == cause


def test_a_reward_behind_a_link_is_no_reward() -> None:
    kept = Kept().ended()
    kept.fields["files"]["verifier/reward.txt"] = LinkFile(link="/app/reward.txt")
    grade = kept.grade()
    assert isinstance(grade, Grade)
    assert isinstance(grade.outcome, Unscored)
    assert grade.outcome.cause == "reward_malformed"


def test_the_tail_of_a_log_is_its_end_with_errors_last() -> None:
    kept = Kept().ended(1).file("stdout", b"begin\n" + b"x" * 5000 + b"\nend\n")
    artifacts = kept.file("stderr", b"no \xff\n").artifacts()
    tail = log_tail(artifacts, kept.blobs.get, 40)
    assert len(tail) == 40
    assert tail.endswith("x\nend\nno \ufffd")
    assert log_tail(Kept().ended().artifacts(), kept.blobs.get) == ""


def test_an_ignored_exit_code_follows_harbor() -> None:
    grade = Kept().ended(0).file("verifier/reward.txt", b"0").grade("ignored")
    assert isinstance(grade, Grade)
    assert grade.outcome == Scored(0.0)


def test_a_verifier_at_its_limit_is_unscored() -> None:
    kept = Kept().ended(137, expired=True).file("verifier/reward.txt", b"1")
    grade = kept.grade()
    assert isinstance(grade, Grade)
    assert isinstance(grade.outcome, Unscored)
    assert grade.outcome.cause == "grade_timeout"


def test_checks_between_zero_and_one_are_kept_and_others_are_unknown() -> None:
    checks = b'{"a": true, "b": 0.5, "c": 7, "d": "x", "e": null}'
    kept = Kept().ended().file("verifier/reward.txt", b"1")
    grade = kept.file("verifier/checks.json", checks).grade()
    assert isinstance(grade, Grade)
    assert grade.checks == (("a", 1.0), ("b", 0.5), ("c", None), ("d", None), ("e", None))


def test_the_duration_is_the_supervisors() -> None:
    assert Kept().ended().artifacts().duration_ms() == 2500
    assert Kept().artifacts(delivery=Delivery(changes=[], refused=[])).duration_ms() is None


STARTED = b'{"type":"thread.started","thread_id":"t"}\n{"type":"turn.started"}\n'


@pytest.mark.parametrize(
    ("stream", "cause"),
    [
        (STARTED + b'{"type":"turn.failed","error":{"message":"overloaded"}}\n', "turn_failed"),
        (STARTED + b'{"type":"item.completed","item":{"id":"item_0","ty', "turn_unfinished"),
        (STARTED, "turn_unfinished"),
        (STARTED + COMPLETED + b'{"type":"turn.started"}\n', "turn_unfinished"),
        (STARTED + COMPLETED[:-20], "turn_unfinished"),
    ],
    ids=["failed", "cut in a line", "no end", "a second turn without an end", "end cut"],
)
def test_exit_code_0_without_a_completed_turn_is_no_result_and_its_usage_is_unknown(
    stream: bytes, cause: str
) -> None:
    """CDX-04."""
    end = Kept().ended().file("stdout", stream).agent()
    assert isinstance(end, Broken)
    assert end.cause == cause
    assert code_of(end.cause) == "E_TRIAL_AGENT_STREAM"
    assert is_worth_another_attempt(end)
    if COMPLETED not in stream:
        assert end.usage is None, "unknown, never 0"


def test_the_last_of_two_turns_counts() -> None:
    stream = STARTED + b'{"type":"turn.failed","error":{"message":"m"}}\n' + STARTED + COMPLETED
    assert isinstance(Kept().ended().file("stdout", stream).agent(), Done)


@pytest.mark.parametrize(
    ("errors", "code"),
    [
        (b"bwrap: No permissions to create a new namespace\n", "E_TRIAL_AGENT_SANDBOX"),
        (b"error: unexpected argument '--strict-config' found\n", "E_TRIAL_AGENT_START"),
        (b"", "E_TRIAL_AGENT_START"),
    ],
    ids=["no sandbox", "another version's option", "nothing said"],
)
@pytest.mark.parametrize("exit_code", [0, 1, 2])
def test_a_codex_that_began_nothing_is_told_from_one_whose_turn_failed(
    errors: bytes, code: str, exit_code: int
) -> None:
    """CDX-01, CDX-02."""
    end = Kept().ended(exit_code).file("stdout", b"").file("stderr", errors).agent()
    assert isinstance(end, Broken)
    assert code_of(end.cause) == code


def test_a_codex_that_waits_in_silence_is_no_time_limit() -> None:
    """CDX-02."""
    end = Kept().ended(143, status="silent").file("stdout", b"").agent()
    assert isinstance(end, Broken)
    assert code_of(end.cause) == "E_TRIAL_AGENT_START"


@pytest.mark.parametrize(
    ("status", "code"),
    [
        ("contaminated", "E_TRIAL_CONTAMINATED"),
        ("skill_not_visible", "E_TRIAL_SKILL_NOT_VISIBLE"),
    ],
)
def test_what_the_agent_would_have_seen_too_much_or_too_little_is_no_score(
    status: str, code: str
) -> None:
    """SKL-04, SKL-06."""
    said = b"extra  bb  /etc/codex/skills/x/SKILL.md\n"
    end = Kept().ended(status=status).file("prepare", said).agent()
    assert end == Broken(status, "extra  bb  /etc/codex/skills/x/SKILL.md")
    assert code_of(end.cause) == code
    assert not is_worth_another_attempt(end)


def test_lines_that_nest_without_end_are_skipped_like_other_nonsense() -> None:
    deep = b"[" * 50_000
    assert [line["type"] for line in json_lines(deep + b'\n{"type": "turn.completed"}\n')] == [
        "turn.completed"
    ]
