"""The kinds of text and number that a JobSpec is made of, each described in words."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Annotated, Final

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationInfo,
)
from pydantic_core import PydanticCustomError

from xgent_evolve.spec.paths import MAX_PATH_BYTES, SAFE_PATH_PATTERN, unsafe_reason


class Part(BaseModel):
    """Base of every part of a JobSpec: closed, immutable, documented."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        use_attribute_docstrings=True,
        # Validators are built when the first JobSpec is read: many commands read none.
        defer_build=True,
    )


_NAME: Final = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
_GIT_SHA: Final = r"^[0-9a-f]{40}([0-9a-f]{24})?$"
_SHA256: Final = r"^[0-9a-f]{64}$"
_ENV_NAME: Final = r"^[A-Za-z_][A-Za-z0-9_]*$"
_LOCAL_PATH: Final = r"^[^\x00-\x1f\x7f]+$"
_ABSOLUTE_PATH: Final = r"^/[^\x00-\x1f\x7f]*$"
_HOST_DIRECTORY: Final = r"^/[^\x00-\x1f\x7f]+$"
_IMAGE: Final = r"^(?:[^@\s]+@)?sha256:[0-9a-f]{64}$"
_ADDRESS: Final = r"^https?://[^\s?#@]+$"
_PROXY: Final = r"^https?://[A-Za-z0-9.\[\]:-]+$"
_HOST: Final = r"^[A-Za-z0-9\[:][A-Za-z0-9.:\[\]_%-]*$"
_LOGIN: Final = r"^[A-Za-z0-9_][A-Za-z0-9._-]*$"
_VERSION: Final = r"^[0-9]+(\.[0-9]+)*$"
_DATE: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_TEXT: Final = r"[^\s]"

PATTERN_WORDS: Final = {
    _NAME: "1 to 64 letters, digits, '.', '_' or '-', the first a letter or digit",
    _GIT_SHA: "a full Git commit id: 40 (or 64) lower-case hexadecimal digits",
    _SHA256: "64 lower-case hexadecimal digits",
    _ENV_NAME: "the name of an environment variable",
    _LOCAL_PATH: "a path without control characters",
    _ABSOLUTE_PATH: "an absolute path without control characters",
    _HOST_DIRECTORY: "an absolute path of letters, digits and . _ / @ + = -, below the root",
    _IMAGE: "an image by digest: name@sha256:<64 hex digits>, or sha256:<64 hex digits>",
    _ADDRESS: "an http or https address without credentials, query or fragment",
    _PROXY: "http://host:port or https://host:port, without credentials, path or query",
    _HOST: "a host name or address, without user, port or path",
    _LOGIN: "a login name",
    _VERSION: "numbers separated by dots",
    _DATE: "a date, YYYY-MM-DD",
    _TEXT: "text that is not blank",
}
"""Every pattern of a JobSpec in words; error messages show these."""


def _exact(value: object, info: ValidationInfo) -> object:
    """Return the decimal that was written, from a number or, in a Protocol's JSON, from text."""
    match value:
        case int() if not isinstance(value, bool):
            return Decimal(value)
        case float():
            return Decimal(repr(value))
        case str() if info.mode == "json":
            try:
                return Decimal(value)
            except InvalidOperation:
                return value
        case _:
            return value


def _safe(path: str) -> str:
    if reason := unsafe_reason(path):
        raise PydanticCustomError("unsafe_path", "{reason}", {"reason": reason})
    return path


type Name = Annotated[str, StringConstraints(pattern=_NAME)]
type GitSha = Annotated[str, StringConstraints(pattern=_GIT_SHA)]
type Sha256 = Annotated[str, StringConstraints(pattern=_SHA256)]
type EnvName = Annotated[str, StringConstraints(pattern=_ENV_NAME)]
type LocalPath = Annotated[str, StringConstraints(pattern=_LOCAL_PATH)]
type AbsolutePath = Annotated[str, StringConstraints(pattern=_ABSOLUTE_PATH)]
type HostDirectory = Annotated[str, StringConstraints(pattern=_HOST_DIRECTORY)]
type ImageReference = Annotated[str, StringConstraints(pattern=_IMAGE)]
type Address = Annotated[str, StringConstraints(pattern=_ADDRESS)]
type ProxyAddress = Annotated[str, StringConstraints(pattern=_PROXY)]
type HostName = Annotated[str, StringConstraints(pattern=_HOST)]
type LoginName = Annotated[str, StringConstraints(pattern=_LOGIN)]
type DottedVersion = Annotated[str, StringConstraints(pattern=_VERSION)]
type DateText = Annotated[str, StringConstraints(pattern=_DATE)]
type Text = Annotated[str, StringConstraints(pattern=_TEXT)]

type RelativePath = Annotated[
    str,
    Field(
        min_length=1,
        max_length=MAX_PATH_BYTES,
        json_schema_extra={"pattern": SAFE_PATH_PATTERN},
    ),
    AfterValidator(_safe),
]
"""A safe path below some root: see `spec.paths`."""

type Fraction = Annotated[Decimal, Field(ge=0, le=1), BeforeValidator(_exact)]
type Confidence = Annotated[Decimal, Field(ge=Decimal("0.5"), lt=1), BeforeValidator(_exact)]
type Weight = Annotated[Decimal, Field(gt=0, le=1_000_000), BeforeValidator(_exact)]
type Amount = Annotated[Decimal, Field(ge=0, le=1_000_000), BeforeValidator(_exact)]
type Cpus = Annotated[Decimal, Field(gt=0, le=256), BeforeValidator(_exact)]
