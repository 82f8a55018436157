"""Where the model credential comes from; it is never stored, only passed on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from xgent_evolve.errors import AuthorityError
from xgent_evolve.spec.models_v1 import ControllerEnv, HostFile, Runtime


@dataclass(frozen=True, slots=True)
class Credentials:
    """Finds the credential when one is needed: a finished run is read without any."""

    runtime: Runtime
    environment: Mapping[str, str] = field(repr=False)

    def require(self) -> Credential:
        """Return the credential; raises as `find_credential` does."""
        return find_credential(self.runtime, self.environment)

    def find(self) -> Credential:
        """Return the credential, or none when it is not in the environment."""
        try:
            return self.require()
        except AuthorityError:
            return Credential()

    def known_values(self) -> list[bytes]:
        """Return the secret values that this process could meet in what comes back."""
        match self.runtime.authentication:
            case ControllerEnv(name=name) if self.environment.get(name, "").strip():
                return [self.environment[name].strip().encode()]
            case _:
                return []


@dataclass(frozen=True, slots=True)
class Credential:
    """How the host runner gets the content of Codex's auth.json."""

    content: bytes = field(default=b"", repr=False)
    """Content that is sent over the connection's stdin; empty when there is none."""
    host_file: str | None = None
    """File on the host that is read there."""


def find_credential(runtime: Runtime, environment: Mapping[str, str]) -> Credential:
    """Return the credential that the JobSpec names.

    Raises:
        AuthorityError: E_AUTH_MISSING: the variable is not set or empty.

    """
    match runtime.authentication:
        case None:
            return Credential()
        case HostFile(path=path):
            return Credential(host_file=path)
        case ControllerEnv(name=name):
            value = environment.get(name, "").strip()
            if not value:
                raise AuthorityError(
                    "the model credential is not in the environment",
                    code="E_AUTH_MISSING",
                    where="runtime.authentication.name",
                    expected=f"a value in the variable {name}",
                    found="nothing",
                    fix=f"export {name} in the shell that starts xgent-evolve",
                )
            document = {"auth_mode": "apikey", "OPENAI_API_KEY": value}
            return Credential(content=json.dumps(document).encode())
