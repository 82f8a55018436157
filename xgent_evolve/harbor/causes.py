"""The code by which scripts know each infrastructure failure of an execution. Pure."""

from __future__ import annotations

CODES = {
    "contaminated": "E_TRIAL_CONTAMINATED",
    "skill_not_visible": "E_TRIAL_SKILL_NOT_VISIBLE",
    "turn_failed": "E_TRIAL_AGENT_STREAM",
    "turn_unfinished": "E_TRIAL_AGENT_STREAM",
    "silent": "E_TRIAL_AGENT_START",
    "agent_not_started": "E_TRIAL_AGENT_START",
    "agent_sandbox": "E_TRIAL_AGENT_SANDBOX",
    "receive_unsafe_member": "E_RECEIVE_UNSAFE_MEMBER",
    "model_unauthorised": "E_TRIAL_AUTH",
    "model_quota_used_up": "E_TRIAL_QUOTA",
    "model_unknown": "E_TRIAL_MODEL",
    "model_unreachable": "E_TRIAL_MODEL_UNREACHABLE",
}
"""Code of each cause that has one of its own."""


def code_of(cause: str) -> str:
    """Return the code of an infrastructure failure's cause."""
    return CODES.get(cause, "E_TRIAL_INFRA")
