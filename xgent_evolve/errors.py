"""Every error a user can meet, its exit code and its cure.

    XgentError
    ├── InvalidError     exit 2  the request cannot be carried out as written
    │   ├── SpecError            a JobSpec or its tasks have faults (all, each with its place)
    │   │   └── TaskCheckError   tasks whose verifier cannot tell right from wrong
    │   ├── TaskError            a task directory cannot be used
    │   └── AuthorityError       the caller did not allow this
    ├── RefusedError     exit 3  a precondition does not hold; nothing was changed
    │   ├── DriftError           frozen bytes and present bytes differ
    │   ├── StoreError           stored bytes are missing or damaged
    │   ├── BusyError            another controller owns the run
    │   ├── GapError             an execution whose truth cannot be established
    │   ├── BudgetError          the frozen budget is spent
    │   └── UnconfirmedError     apply was asked for something that is not confirmed
    ├── RemoteError      exit 4  the host failed, or cannot do what the run needs
    │   ├── SshError             no trustworthy connection
    │   ├── HostError            the host, its engine or its image is not usable
    │   ├── ToolError            the Codex install cannot be trusted or made
    │   └── TrialError           retries of an infrastructure failure are used up
    └── Interrupted      exit 130 or 143  state is durable; resume continues

`code` is what scripts and tests bind to; the sentence may change, the code may not. Exit 1 is
never raised on purpose: it means a defect in xgent-evolve.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


class XgentError(Exception):
    """Base of all expected failures: what happened, where, and what to do next."""

    code: str = "E_XGENT"
    exit_code: ClassVar[int] = 1

    def __init__(
        self,
        message: str,
        *,
        where: str = "",
        expected: str = "",
        found: str = "",
        fix: str = "",
        code: str | None = None,
    ) -> None:
        """Describe one failure.

        `where` is a file and JSON path, or an execution; `expected` and `found` are shown when
        given; `fix` is the next step, in the imperative.
        """
        super().__init__(message)
        self.message = message
        self.where = where
        self.expected = expected
        self.found = found
        self.fix = fix
        if code is not None:
            self.code = code


class InvalidError(XgentError):
    """The configuration, a path or the authority is illegal (exit 2)."""

    code = "E_INVALID"
    exit_code = 2


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of a JobSpec or of a task that it names, with its place."""

    code: str
    message: str
    where: str
    """`file:line:column` followed by the JSON path, or by the key of a task.toml."""
    expected: str = ""
    found: str = ""
    fix: str = ""


class SpecError(InvalidError):
    """A JobSpec or its tasks have faults; `faults` lists all of them, unknown fields first."""

    code = "E_SPEC"
    closing: ClassVar[str] = "nothing was run"
    """What a command says after the last fault."""

    def __init__(self, faults: tuple[Fault, ...]) -> None:
        """Carry `faults` (at least one); the first one is the headline."""
        first = faults[0]
        super().__init__(
            first.message,
            where=first.where,
            expected=first.expected,
            found=first.found,
            fix=first.fix,
            code=first.code,
        )
        self.faults = faults


class TaskCheckError(SpecError):
    """Verifiers reject the reference solution or accept the untouched workspace."""

    code = "E_SPEC_TASK_ORACLE"
    closing = "no trial was started"


class TaskError(InvalidError):
    """A task directory is missing something or asks for what is not supported."""

    code = "E_SPEC_TASK"


class AuthorityError(InvalidError):
    """The caller's authority does not cover what was asked."""

    code = "E_AUTHORITY"


class RefusedError(XgentError):
    """A precondition does not hold; nothing was changed (exit 3)."""

    code = "E_REFUSED"
    exit_code = 3


class DriftError(RefusedError):
    """Frozen bytes and present bytes differ."""

    code = "E_FREEZE_DRIFT"


class StoreError(RefusedError):
    """Stored bytes are missing or damaged."""

    code = "E_STORE"


class BusyError(RefusedError):
    """Another controller owns the run."""

    code = "E_BUSY"


class GapError(RefusedError):
    """The truth about an execution cannot be established; no paid work goes on."""

    code = "E_GAP"


class BudgetError(RefusedError):
    """The frozen budget does not allow the next execution."""

    code = "E_BUDGET"


class UnconfirmedError(RefusedError):
    """A candidate without independent confirmation cannot be applied."""

    code = "E_UNCONFIRMED"


class RemoteError(XgentError):
    """The remote infrastructure failed (exit 4)."""

    code = "E_REMOTE"
    exit_code = 4


class SshError(RemoteError):
    """No trustworthy connection to the host."""

    code = "E_SSH"


class HostError(RemoteError):
    """The host, its engine or an image cannot do what the run needs."""

    code = "E_REMOTE_HOST"


class ToolError(RemoteError):
    """The Codex install on the host cannot be made or trusted."""

    code = "E_REMOTE_TOOL"


class TrialError(RemoteError):
    """An execution failed for infrastructure reasons more often than may be retried."""

    code = "E_TRIAL_INFRA"


class Interrupted(XgentError):  # noqa: N818 - the field's word for it, not a fault
    """A signal ended the command after a durable write; resume continues."""

    code = "E_INTERRUPTED"

    def __init__(self, message: str, *, signal_number: int, fix: str = "") -> None:
        """Remember which signal arrived; it decides the exit code (128 + number)."""
        super().__init__(message, fix=fix)
        self.signal_number = signal_number
