"""What can go wrong on the host, by consequence."""


class RunnerError(Exception):
    """A verb cannot be carried out; `code` is what the controller maps to its own errors."""

    def __init__(self, code, message, **facts):
        super().__init__(message)
        self.code = code
        self.message = message
        self.facts = facts


class StepFailed(Exception):
    """An execution cannot go on for a reason of the infrastructure, and nothing was started."""

    def __init__(self, stage, cause, detail):
        super().__init__(detail)
        self.stage = stage
        self.cause = cause
        self.detail = detail


class Gap(Exception):
    """The truth about an execution cannot be established."""
