"""The kinds of text and number that a JobSpec is made of, each described in words."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Final

from xgent_evolve.spec.part import Limits
from xgent_evolve.spec.paths import MAX_PATH_BYTES, SAFE_PATH_PATTERN, unsafe_reason

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


type Name = Annotated[str, Limits(pattern=_NAME)]
type GitSha = Annotated[str, Limits(pattern=_GIT_SHA)]
type Sha256 = Annotated[str, Limits(pattern=_SHA256)]
type EnvName = Annotated[str, Limits(pattern=_ENV_NAME)]
type LocalPath = Annotated[str, Limits(pattern=_LOCAL_PATH)]
type AbsolutePath = Annotated[str, Limits(pattern=_ABSOLUTE_PATH)]
type HostDirectory = Annotated[str, Limits(pattern=_HOST_DIRECTORY)]
type ImageReference = Annotated[str, Limits(pattern=_IMAGE)]
type Address = Annotated[str, Limits(pattern=_ADDRESS)]
type ProxyAddress = Annotated[str, Limits(pattern=_PROXY)]
type HostName = Annotated[str, Limits(pattern=_HOST)]
type LoginName = Annotated[str, Limits(pattern=_LOGIN)]
type DottedVersion = Annotated[str, Limits(pattern=_VERSION)]
type DateText = Annotated[str, Limits(pattern=_DATE)]
type Text = Annotated[str, Limits(pattern=_TEXT)]

type RelativePath = Annotated[
    str,
    Limits(min_length=1, max_length=MAX_PATH_BYTES, pattern=SAFE_PATH_PATTERN, check=unsafe_reason),
]
"""A safe path below some root: see `spec.paths`."""

type Fraction = Annotated[Decimal, Limits(ge=0, le=1)]
type Confidence = Annotated[Decimal, Limits(ge=Decimal("0.5"), lt=1)]
type Weight = Annotated[Decimal, Limits(gt=0, le=1_000_000)]
type Amount = Annotated[Decimal, Limits(ge=0, le=1_000_000)]
type Cpus = Annotated[Decimal, Limits(gt=0, le=256)]
