"""A task.toml read: its settings, everything that is wrong with it, and what is doubtful."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import cast

from xgent_evolve.errors import Fault
from xgent_evolve.tasks.checks import Wrong
from xgent_evolve.tasks.fields import (
    BY_PATH,
    TABLES,
    Field,
    asks_for_nothing,
    permits_network,
    siblings,
)
from xgent_evolve.tasks.findings import Findings, shown
from xgent_evolve.tasks.places import key_lines, line_of

TASK_FILE = "task.toml"
MAX_TASK_FILE_BYTES = 64 * 1024
MAX_WARNINGS = 20
"""Unknown keys that are named one by one."""

_MAX_KEY_PARTS = 32
_LONG_KEY = re.compile(
    rf"(?<![\w-])(?:(?:[\w-]++|\"[^\"\n]*+\"|'[^'\n]*+')[ \t]*+\.[ \t]*+){{{_MAX_KEY_PARTS}}}"
)
"""The time that the standard library needs for a dotted key grows with the square of its parts."""


@dataclass(frozen=True, slots=True)
class TaskSettings:
    """What a task.toml decides; None where it says nothing."""

    docker_image: str | None = None
    workdir: str | None = None
    cpus: Decimal | None = None
    memory_mb: int | None = None
    storage_mb: int | None = None
    """Recorded; no engine limit holds it, as in Harbor's own Docker environment."""
    agent_timeout_s: int | None = None
    verifier_timeout_s: int | None = None
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    """Variables of every command in the container."""
    verifier_environment: Mapping[str, str] = field(default_factory=dict[str, str])
    """Further variables of the verifier alone."""
    solution_environment: Mapping[str, str] = field(default_factory=dict[str, str])
    """Further variables of the reference solution alone."""
    artifacts: tuple[str, ...] = ()
    """Paths that the task wants kept."""


def read_settings(content: bytes, file: str, findings: Findings) -> TaskSettings:
    """Return what a task.toml says; what is wrong with it is added to `findings`.

    `file` names it in messages. Nothing is raised whatever the bytes are.
    """
    text = _decoded(content, file, findings)
    values = None if text is None else _parsed(text, file, findings)
    if text is None or values is None:
        return TaskSettings()
    reader = _Reader(text, file, findings)
    reader.read(values, "")
    reader.tell_rest()
    return reader.settings()


def _decoded(content: bytes, file: str, findings: Findings) -> str | None:
    if len(content) > MAX_TASK_FILE_BYTES:
        expected = f"at most {MAX_TASK_FILE_BYTES} bytes"
        findings.faults.append(_unreadable(file, expected, f"{len(content)} bytes"))
        return None
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        found = f"{error.reason} at byte {error.start}"
        findings.faults.append(_unreadable(file, "UTF-8 text", found))
        return None


def _parsed(text: str, file: str, findings: Findings) -> dict[str, object] | None:
    if _LONG_KEY.search(text):
        expected, found = f"keys of at most {_MAX_KEY_PARTS} parts", "a longer one"
        findings.faults.append(_unreadable(file, expected, found))
        return None
    try:
        return cast("dict[str, object]", tomllib.loads(text))
    except RecursionError:
        found = "values nested too deeply"
    except ValueError as error:  # some numbers that TOML allows are none to Python
        found = str(error)
    findings.faults.append(_unreadable(file, "TOML 1.0", found))
    return None


def _unreadable(file: str, expected: str, found: str) -> Fault:
    return Fault(
        code="E_SPEC_TASK_TOML",
        message="the task's settings cannot be read",
        where=file,
        expected=expected,
        found=found,
        fix="correct the file; an empty one means all defaults",
    )


class _Reader:
    """Goes through the tables of one file."""

    def __init__(self, text: str, file: str, findings: Findings) -> None:
        self.lines = key_lines(text)
        self.file = file
        self.findings = findings
        self.meant: dict[str, object] = {}
        self.unknown = 0

    def read(self, values: Mapping[str, object], prefix: str) -> None:
        """Take in the keys of one table."""
        for key, value in values.items():
            path = f"{prefix}.{key}" if prefix else key
            if path in BY_PATH:
                self._take(BY_PATH[path], value)
            elif path not in TABLES:
                self._unknown(prefix, key, path)
            elif isinstance(value, dict):
                self.read(cast("dict[str, object]", value), path)
            else:
                self._wrong(path, value, Wrong("a table"))

    def tell_rest(self) -> None:
        """Say how many unknown keys were not named."""
        if self.unknown > MAX_WARNINGS:
            message = f"{self.unknown - MAX_WARNINGS} further unknown keys are ignored"
            self.findings.warn("W_TASK_UNKNOWN_KEY", message, self.file)

    def settings(self) -> TaskSettings:
        """Return what the keys mean together."""
        memory = self._both("environment.memory_mb", "environment.memory")
        storage = self._both("environment.storage_mb", "environment.storage")
        return TaskSettings(
            docker_image=self._get("environment.docker_image", str),
            workdir=self._get("environment.workdir", str),
            cpus=self._get("environment.cpus", Decimal),
            memory_mb=memory,
            storage_mb=storage,
            agent_timeout_s=self._get("agent.timeout_sec", int),
            verifier_timeout_s=self._get("verifier.timeout_sec", int),
            environment=self._variables("environment.env"),
            verifier_environment=self._variables("verifier.env"),
            solution_environment=self._variables("solution.env"),
            artifacts=tuple(cast("list[str]", self.meant.get("artifacts", []))),
        )

    def _take(self, known: Field, value: object) -> None:
        if known.treatment == "refused":
            if permits_network(known, value):
                self._tell_network(known, value)
            elif not asks_for_nothing(known, value):
                self._refuse(known, value)
            return
        try:
            self.meant[known.path] = known.check(value)
        except Wrong as wrong:
            self._wrong(known.path, value, wrong)

    def _get[T](self, path: str, kind: type[T]) -> T | None:
        value = self.meant.get(path)
        return value if isinstance(value, kind) else None

    def _variables(self, path: str) -> dict[str, str]:
        return cast("dict[str, str]", self.meant.get(path, {}))

    def _both(self, present: str, older: str) -> int | None:
        """Return a size that may be spelt in two ways, which must mean the same."""
        new, old = self._get(present, int), self._get(older, int)
        if new is not None and old is not None and new != old:
            self._fault(
                "E_SPEC_RESOURCE",
                "two spellings of one limit contradict each other",
                older,
                expected=f"the same as {present}: {new} MiB",
                found=f"{old} MiB",
                fix=f"remove {older}",
            )
        return old if new is None else new

    def _refuse(self, known: Field, value: object) -> None:
        harmless = " or ".join(shown(item) for item in known.harmless)
        self._fault(
            "E_SPEC_TASK_FEATURE",
            f"the task asks for {known.path}, which is not run here",
            known.path,
            expected=f"{known.path} absent" + (f", or {harmless}" if harmless else ""),
            found=shown(value),
            fix="use another task; docs/tasks.md lists what is honoured",
        )

    def _tell_network(self, known: Field, value: object) -> None:
        message = (
            f"{known.path} is {shown(value)}, but neither the agent's shell nor the verifier has a"
            " network here; the check of the task shows whether it can be solved without"
        )
        self.findings.warn("W_TASK_NETWORK", message, self._where(known.path))

    def _wrong(self, path: str, value: object, wrong: Wrong) -> None:
        message = {
            "E_SPEC_RESOURCE": f"{path} is not an amount",
            "E_SPEC_TASK_FEATURE": f"the task asks for {path} in a form that is not run here",
        }.get(wrong.code, f"{path} has a wrong value")
        found = wrong.found or shown(value)
        self._fault(wrong.code, message, path, wrong.expected, found, "correct the value")

    def _unknown(self, prefix: str, key: str, path: str) -> None:
        self.unknown += 1
        if self.unknown > MAX_WARNINGS:
            return
        near = difflib.get_close_matches(key[:80], siblings(prefix), n=1, cutoff=0.6)
        advice = f'; the nearest known key is "{near[0]}"' if near else ""
        message = f"the key {shown(path)} is unknown and ignored{advice}"
        self.findings.warn("W_TASK_UNKNOWN_KEY", message, self._where(path))

    def _fault(
        self, code: str, message: str, path: str, expected: str, found: str, fix: str
    ) -> None:
        self.findings.faults.append(
            Fault(code, message, self._where(path), expected, found, fix),
        )

    def _where(self, path: str) -> str:
        line = line_of(self.lines, path)
        place = self.file if line is None else f"{self.file}:{line}"
        return f"{place}: {path[:80]}"
