"""Read a JobSpec: all of its faults at once, or a spec that can be carried out as written."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from xgent_evolve.errors import Fault, InvalidError, SpecError
from xgent_evolve.spec.check import check_spec
from xgent_evolve.spec.faults import Finding, place, place_flaws, shown, spec_error
from xgent_evolve.spec.job_spec import JobSpec
from xgent_evolve.spec.locate import Value
from xgent_evolve.spec.placeholders import placeholder_findings
from xgent_evolve.spec.scan import scan
from xgent_evolve.spec.shape import fit
from xgent_evolve.spec.versions import VERSIONS, model_of

MAX_SPEC_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class LoadedSpec:
    """A JobSpec that passed every check, with the file that it was read from."""

    spec: JobSpec
    path: Path
    """The file, as the caller named it."""
    content: bytes
    """The bytes of the file."""

    def resolve(self, text: str) -> Path:
        """Return the absolute path that `text` means in this JobSpec.

        A relative path starts at the directory of the JobSpec, `~/` at the home directory.
        """
        path = Path(text)
        if path.parts[:1] == ("~",):
            try:
                path = path.expanduser()
            except RuntimeError as error:
                raise InvalidError(
                    "the home directory is not known",
                    where=str(self.path),
                    found=text,
                    fix="set HOME, or write the path in full",
                ) from error
        return (self.path.parent / path).absolute()


def load_spec(path: Path) -> LoadedSpec:
    """Read and check the JobSpec at `path`; reads no other file.

    Raises:
        SpecError: with every fault of text and shape, or, when there is none of these, with
            every rule that the JobSpec breaks.

    """
    content = _read(path)
    document = scan(_decode(path, content))
    placed = place_flaws(document, str(path))
    if any(item.fault.code == "E_SPEC_SYNTAX" for item in placed):
        raise spec_error(placed)
    spec, findings = _fit(document.value)
    unfilled = list(placeholder_findings(document.value))
    # What stands at these places is not what the caller means, so nothing follows from it.
    void = {item.path for item in placed if item.fault.code == "E_SPEC_NUMBER"}
    void |= {item.path for item in unfilled}
    findings = [*unfilled, *(item for item in findings if item.path not in void)]
    placed += [place(finding, document, str(path)) for finding in findings]
    if placed or spec is None:
        raise spec_error(placed)
    loaded = LoadedSpec(spec, path, content)
    check_spec(loaded)
    return loaded


def _fit(value: Value) -> tuple[JobSpec | None, list[Finding]]:
    if not isinstance(value, dict):
        return None, [_not_an_object(value)]
    # Without a version its absence is a fault, and the keys say which one is meant.
    version = value.get("schema_version", 2 if "evaluation" in value else 1)
    # bool and Decimal compare equal to 1, so the type is part of the question.
    if type(version) is not int or version not in VERSIONS:
        return None, [_unknown_version(version)]
    return fit(model_of(version), value)


def _not_an_object(value: Value) -> Finding:
    return Finding(
        path=(),
        code="E_SPEC_TYPE",
        message="a JobSpec is an object",
        expected='an object that starts with "{"',
        found=shown(value),
        fix="start from one of the examples",
    )


def _unknown_version(version: Value) -> Finding:
    return Finding(
        path=("schema_version",),
        code="E_SPEC_VERSION",
        message="this version of the format is unknown",
        expected=" or ".join(map(str, VERSIONS)),
        found=shown(version),
        fix="write one of these, or use a release of xgent-evolve that knows this version",
    )


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_SPEC_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise _unreadable(path, "a file that can be read", reason or str(error)) from error
    if len(content) > MAX_SPEC_BYTES:
        raise _unreadable(path, "at most 16 MiB", "more than 16 MiB")
    return content


def _decode(path: Path, content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        column = error.start - (content.rfind(b"\n", 0, error.start) + 1) + 1
        found = f"the byte 0x{content[error.start]:02x} at line {line}, byte {column}"
        raise _unreadable(path, "UTF-8 text", found) from error


def _unreadable(path: Path, expected: str, found: str) -> SpecError:
    fault = Fault(
        code="E_SPEC_READ",
        message="the JobSpec cannot be read",
        where=str(path),
        expected=expected,
        found=found,
        fix="check the path given with --spec",
    )
    return SpecError((fault,))
