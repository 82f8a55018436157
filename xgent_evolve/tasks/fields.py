"""Every key of Harbor's task.toml (schema 1.4) and what becomes of it here.

honoured: it decides how the task is run. recorded: it is kept for the reader. unused: it is about
something that does not happen here, such as building an image. refused: a task that asks for it
cannot be run as its author meant it, so it is refused by name before anything is spent; a value
that asks for nothing is accepted.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from xgent_evolve.tasks import checks
from xgent_evolve.tasks.checks import Check

type Treatment = Literal["honoured", "recorded", "unused", "refused"]


class Field(NamedTuple):
    """One key."""

    path: str
    """Dotted path from the top of the file."""
    treatment: Treatment
    check: Check
    harmless: tuple[object, ...] = ()
    """Of a refused key: the values that ask for nothing."""
    permitting: tuple[object, ...] = ()
    """Of a refused key: the values that permit a network without naming what is needed of it."""


TABLES = ("task", "agent", "verifier", "solution", "environment")
"""Tables whose keys are known; the keys of `metadata` and of variables are free."""


def _refused(path: str, *harmless: object) -> Field:
    return Field(path, "refused", checks.anything, harmless)


def _network(path: str, without: object, permitting: object) -> Field:
    return Field(path, "refused", checks.anything, (without,), (permitting,))


FIELDS = (
    Field("schema_version", "honoured", checks.version),
    Field("version", "honoured", checks.version),
    Field("source", "recorded", checks.text),
    Field("metadata", "recorded", checks.table),
    Field("artifacts", "honoured", checks.artifacts),
    _refused("multi_step_reward_strategy"),
    _refused("steps", []),
    Field("task.name", "recorded", checks.registry_name),
    Field("task.version", "recorded", checks.text),
    Field("task.description", "recorded", checks.text),
    Field("task.authors", "recorded", checks.tables),
    Field("task.keywords", "recorded", checks.texts),
    Field("agent.timeout_sec", "honoured", checks.seconds),
    _refused("agent.user"),
    _network("agent.network_mode", "no-network", "public"),
    _refused("agent.allowed_hosts", []),
    Field("verifier.timeout_sec", "honoured", checks.seconds),
    Field("verifier.env", "honoured", checks.environment),
    _refused("verifier.user", "root", 0),
    _network("verifier.network_mode", "no-network", "public"),
    _refused("verifier.allowed_hosts", []),
    _refused("verifier.environment_mode", "shared"),
    _refused("verifier.environment"),
    _refused("verifier.collect", []),
    Field("solution.env", "honoured", checks.environment),
    Field("environment.docker_image", "honoured", checks.text),
    Field("environment.cpus", "honoured", checks.cpus),
    Field("environment.memory_mb", "honoured", checks.memory_mb),
    Field("environment.memory", "honoured", checks.memory_size),
    Field("environment.storage_mb", "recorded", checks.storage_mb),
    Field("environment.storage", "recorded", checks.storage_size),
    Field("environment.workdir", "honoured", checks.directory),
    Field("environment.env", "honoured", checks.environment),
    Field("environment.build_timeout_sec", "unused", checks.seconds),
    _refused("environment.os", "linux"),
    _refused("environment.gpus", 0),
    _refused("environment.gpu_types", []),
    _refused("environment.tpu"),
    _refused("environment.mcp_servers", []),
    _refused("environment.skills_dir"),
    _refused("environment.healthcheck"),
    _network("environment.network_mode", "no-network", "public"),
    _refused("environment.allowed_hosts", []),
    _network("environment.allow_internet", False, True),
)
"""Every key, in the order of Harbor's documentation."""

BY_PATH = {field.path: field for field in FIELDS}


def siblings(prefix: str) -> list[str]:
    """Return the keys that are known in a table; "" is the top of the file."""
    keys = [*(f"{name}." for name in TABLES), *BY_PATH] if not prefix else list(BY_PATH)
    start = f"{prefix}." if prefix else ""
    below = {key.removeprefix(start).partition(".")[0] for key in keys if key.startswith(start)}
    return sorted(below)


def asks_for_nothing(field: Field, value: object) -> bool:
    """Say whether a refused key has one of its harmless values; True is not 1 here."""
    return _is_one_of(value, field.harmless)


def permits_network(field: Field, value: object) -> bool:
    """Say whether a value permits a network, which a task gets from Harbor unasked too."""
    return _is_one_of(value, field.permitting)


def _is_one_of(value: object, items: tuple[object, ...]) -> bool:
    return any(type(item) is type(value) and item == value for item in items)
