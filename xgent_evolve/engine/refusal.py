"""Refusals of the model's service that every further trial would meet too (CDX-03). Pure.

The run stops at the first one and can be resumed: what is under way is captured, and a renewed
credential costs one attempt instead of a study without results.
"""

from __future__ import annotations

from typing import NamedTuple

from xgent_evolve.errors import TrialError
from xgent_evolve.harbor.causes import code_of
from xgent_evolve.harbor.outcome import Broken
from xgent_evolve.spec.runtime import ControllerEnv, HostFile, Runtime


class _Refusal(NamedTuple):
    message: str
    expected: str
    cure: str
    may_pass: bool = False
    """Whether the retries of the slot come first."""


_REFUSALS = {
    "model_unauthorised": _Refusal(
        "the model's service refused the credential",
        "a credential that it accepts",
        "renew it",
    ),
    "model_quota_used_up": _Refusal(
        "the quota at the model's service is used up",
        "quota for the trials that are left",
        "raise it there, or wait until it is renewed",
    ),
    "model_unknown": _Refusal(
        "the model's service does not know the model or the address",
        "a model that the credential may use",
        "have the model enabled there (a name or an address is corrected by another run)",
    ),
    "model_unreachable": _Refusal(
        "there is no connection to the model's service",
        "an answer, over TLS with a certificate that the driver trusts",
        "see with `doctor` whether the host reaches it (a wrong runtime.base_url, network,"
        " model_proxy or model_ca is corrected by another run)",
        may_pass=True,
    ),
}


def is_refusal(cause: str) -> bool:
    """Say whether a further trial would be refused for the same cause."""
    return cause in _REFUSALS


def may_pass(cause: str) -> bool:
    """Say whether a refusal is worth the retries of its slot before the run stops."""
    return _REFUSALS[cause].may_pass


def refusal_error(broken: Broken, runtime: Runtime, *, where: str, next_step: str) -> TrialError:
    """Return the error that stops a run at a refusal; `next_step` is the command that goes on."""
    refusal = _REFUSALS[broken.cause]
    cure = refusal.cure
    if broken.cause == "model_unauthorised":
        match runtime.authentication:
            case ControllerEnv(name=name):
                cure = f"put a valid one into the variable {name}"
            case HostFile(path=path):
                cure = f"renew {path} on the host {runtime.ssh.host}"
            case None:
                pass
    return TrialError(
        f"{refusal.message}; no further trial was started",
        code=code_of(broken.cause),
        where=where,
        expected=refusal.expected,
        found=broken.detail,
        fix=f"{cure}; then: {next_step}",
    )
