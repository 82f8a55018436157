"""What the causes in a report mean, in a sentence each; docs/report.md has where they come from."""

from __future__ import annotations

_SENTENCES = {
    "time_limit": "The agent reached its time limit; what it left was graded.",
    "reward_0": "The verifier judged the delivery as not solving the task.",
    "delivery_too_large": "A delivered file is above the limit, so nothing was graded.",
    "forbidden_path": "A protected path was changed, so nothing was graded.",
    "reward_missing": "The verifier left no reward.",
    "reward_malformed": "The verifier left something else than 0 or 1.",
    "reward_ambiguous": "The verifier left two rewards.",
    "reward_contradicts_exit": "The verifier's reward and exit code do not agree.",
    "grade_timeout": "The verifier reached its time limit.",
    "contaminated": "The agent would have seen other instructions; it was not started.",
    "skill_not_visible": "The agent would not have seen a skill; it was not started.",
    "turn_failed": "Codex ended the turn with an error.",
    "turn_unfinished": "Codex ended before its turn did.",
    "silent": "Codex printed nothing for too long after its start and was stopped.",
    "agent_not_started": "Codex did not begin a conversation.",
    "agent_sandbox": "The sandbox of the agent's shell could not be made.",
    "model_unauthorised": "The model's service refused the credential.",
    "model_unknown": "The model's service does not know the model.",
    "model_quota_used_up": "The quota at the model's service is used up.",
    "model_rate_limited": "The model's service asked for fewer requests.",
    "model_unavailable": "The model's service failed.",
    "out_of_memory": "The container ran out of memory.",
    "killed": "The container ended before its supervisor could write a record.",
    "cancelled": "A person ended it.",
}


def cause_sentence(cause: str) -> str:
    """Return what a cause means; empty for one that has no sentence."""
    return _SENTENCES.get(cause, "")
