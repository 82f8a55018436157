"""What can go wrong on the host, by consequence.

RunnerError         a verb cannot be carried out; the controller maps `code`
├── EngineAwayError the engine does not answer: nothing is concluded, it is asked again
└── DamagedError    receipts that cannot be believed: nothing at all is done
StepFailedError     an execution cannot go on, and its command was never started
CancelledError      an execution was cancelled, and its command was never started
GapError            the truth about an execution cannot be established
"""


class RunnerError(Exception):
    """A verb cannot be carried out; `code` is what the controller maps to its own errors."""

    def __init__(self, code, message, **facts):
        super().__init__(message)
        self.code = code
        self.message = message
        self.facts = facts


class EngineAwayError(RunnerError):
    """The engine does not answer, which says nothing about any execution."""

    def __init__(self, message):
        super().__init__("E_REMOTE_ENGINE", message)


class DamagedError(RunnerError):
    """Receipts were changed after they were written, so nothing may be built on them."""

    def __init__(self, message):
        super().__init__("E_REMOTE_DAMAGED", message)


class StepFailedError(Exception):
    """An execution cannot go on for a reason of the infrastructure, and nothing was started."""

    def __init__(self, stage, cause, detail):
        super().__init__(detail)
        self.stage = stage
        self.cause = cause
        self.detail = detail


class CancelledError(Exception):
    """A cancelled execution whose command was never started."""


class GapError(Exception):
    """The truth about an execution cannot be established."""
