"""What looks like a secret in material that is about to leave the machine (requirements E4, B12).

Two nets: tokens whose issuers gave them a form of their own, in any text; and fields with values
in files whose names say that they hold credentials. A value that is plainly a placeholder does not
count. Only the kind and the line of a finding exist outside this module, never the value.

A token is long, and most of it is letters and digits without a break. So text is first folded to
two signs and searched for such a run, which costs a fraction of trying every form everywhere.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple, cast


class Finding(NamedTuple):
    """Something that looks like a secret."""

    line: int
    """Line of the file, from 1."""
    kind: str
    """What it looks like."""


_RUN = b"a" * 16
_FOLD = bytes(ord("a") if chr(byte).isalnum() and byte < 128 else ord(".") for byte in range(256))
_STARTS = (b"AKIA", b"ASIA", b"AIza", b"eyJ")
"""What tokens begin with that are not marked off by a hyphen or an underscore."""
_BEFORE, _BEHIND, _JWT_BYTES = 80, 80, 4096
_TOKEN = re.compile(
    rb"""(?x) (?<![A-Za-z0-9])
    (?: (?P<AnthropicKey> sk-ant-[A-Za-z0-9_-]{24,} )
      | (?P<OpenAIKey> sk-[A-Za-z0-9_-]{24,} )
      | (?P<GitHubToken> gh[pousr]_[A-Za-z0-9]{36,} | github_pat_[A-Za-z0-9_]{50,} )
      | (?P<AWSAccessKey> A[KS]IA[A-Z0-9]{16} (?![A-Za-z0-9]) )
      | (?P<SlackToken> xox[abeoprs]-[A-Za-z0-9-]{24,} )
      | (?P<npmToken> npm_[A-Za-z0-9]{36} )
      | (?P<PyPIToken> pypi-AgE[A-Za-z0-9_-]{50,} )
      | (?P<GitLabToken> glpat-[A-Za-z0-9_-]{20,} )
      | (?P<GoogleKey> AIza[A-Za-z0-9_-]{35} (?![A-Za-z0-9_-]) )
      | (?P<HuggingFaceToken> hf_[A-Za-z0-9]{34,} )
      | (?P<StripeKey> [rs]k_live_[A-Za-z0-9]{24,} )
      | (?P<JSONWebToken> eyJ[A-Za-z0-9_-]{14,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{20,} )
    )"""
)
_KEY_WORDS = b"PRIVATE KEY"
_PRIVATE_KEY = re.compile(
    rb"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----"
    rb"(?:\\[rn]|\s|[A-Za-z-]+: [^\n]*\n)+[A-Za-z0-9+/]{40}"
)
_PLACEHOLDER = re.compile(
    rb"(?i)example|placeholder|redacted|dummy|fake|changeme|change_me|your|x{4}|1234567890"
    rb"|abcdefgh|01234567|deadbeef|todo|insert|(.)\1{5}|^[*.<\[{$]|^(?:none|null|true|false|secret"
    rb"|password|test|token|empty|disabled)$|eyJzdWIiOiIxMjM0NTY3ODkw"
)
_RUN_OF_TOKEN = re.compile(rb"(?=[A-Za-z0-9]*[0-9])(?=[A-Za-z0-9]*[A-Za-z])[A-Za-z0-9]{16,}")
_FEWEST_DIFFERENT = 9

_ENVIRONMENT = re.compile(
    rb"(?m)^[ \t]*(?:export[ \t]+)?"
    rb"(?P<name>[A-Za-z_][A-Za-z0-9_.]*)[ \t]*=[ \t]*(?P<quote>[\"']?)(?P<value>[^\r\n]*)"
)
_SECRET_NAME = re.compile(
    rb"(?i)secret|token|passw|pwd|api_?key|private_?key|access_?key|credential|auth_?key|_pat$"
)
_LOGIN_IN_ADDRESS = re.compile(rb"(?i)[a-z][a-z0-9+.-]*://[^\s/:@\"']*:(?P<value>[^\s/@\"']+)@")
_NETRC = re.compile(rb"(?im)\bpassword\s+(?P<value>\S+)")
_PYPIRC = re.compile(rb"(?im)^[ \t]*password[ \t]*[:=][ \t]*(?P<value>\S+)")
_NPMRC = re.compile(rb"(?m)(?:_authToken|_password|_auth)[ \t]*=[ \t]*(?P<value>\S+)")
_DOCKER_AUTH = re.compile(rb"\"auth\"\s*:\s*\"(?P<value>[^\"]+)\"")
_TEMPLATE = re.compile(r"(?i)(example|sample|template|dist|defaults?|schema|tpl)$")
_FEWEST_IN_VALUE = 8
_TEXT_BYTES = 8192


def find_secrets(path: str, content: bytes) -> tuple[Finding, ...]:
    """Return what looks like a secret in a whole file; `path` is its name in text form."""
    lines: dict[int, str] = {}
    if b"\0" not in content[:_TEXT_BYTES]:
        fields = _fields_of(path.rpartition("/")[2])
        found = itertools.chain(_tokens(content), fields(content) if fields else ())
        for offset, kind in found:
            lines.setdefault(content.count(b"\n", 0, offset) + 1, kind)
    return _sorted(lines)


class SecretSearch:
    """A search for tokens through a large file that comes in pieces."""

    def __init__(self) -> None:
        """Begin."""
        self._found: dict[int, str] = {}
        self._tail = b""
        self._lines = 0
        self._is_text: bool | None = None

    def feed(self, piece: bytes) -> None:
        """Look through the next piece; pieces overlap here, so nothing hides between two."""
        if self._is_text is None:
            self._is_text = b"\0" not in piece[:_TEXT_BYTES]
        if not self._is_text:
            return
        text = self._tail + piece if self._tail else piece
        for offset, kind in _tokens(text):
            self._found.setdefault(self._lines + text.count(b"\n", 0, offset) + 1, kind)
        tail = text[-_JWT_BYTES:]
        if len(text) > len(tail):
            self._lines += text.count(b"\n", 0, len(text) - len(tail))
        self._tail = tail

    def findings(self) -> tuple[Finding, ...]:
        """Return what was found, by line."""
        return _sorted(self._found)


def _sorted(lines: dict[int, str]) -> tuple[Finding, ...]:
    return tuple(Finding(line, lines[line]) for line in sorted(lines))


def _tokens(text: bytes) -> Iterator[tuple[int, str]]:
    """Yield offset and kind of every token with a form of its own."""
    folded = text.translate(_FOLD)
    start = folded.find(_RUN)
    while start >= 0:
        end = folded.find(b".", start)
        end = len(text) if end < 0 else end
        if text[start - 1 : start] in {b"-", b"_"} or text.startswith(_STARTS, start):
            behind = _JWT_BYTES if text.startswith(b"eyJ", start) else _BEHIND
            for match in _TOKEN.finditer(text, max(0, start - _BEFORE), end + behind):
                if match.start() < end <= match.end() and _is_token(match[0]):
                    yield match.start(), _spaced(match.lastgroup or "")
        start = folded.find(_RUN, end)
    start = text.find(_KEY_WORDS)
    while start >= 0:
        match = _PRIVATE_KEY.search(text, max(0, start - 40), start + 1024)
        if match is not None and match.start() < start:
            yield match.start(), "private key"
        start = text.find(_KEY_WORDS, start + len(_KEY_WORDS))


def _is_token(token: bytes) -> bool:
    run = _RUN_OF_TOKEN.search(token)
    return (
        run is not None and len(set(run[0])) >= _FEWEST_DIFFERENT and not _PLACEHOLDER.search(token)
    )


def _is_value(value: bytes) -> bool:
    return len(value) >= _FEWEST_IN_VALUE and not _PLACEHOLDER.search(value)


def _fields_of(name: str) -> Callable[[bytes], Iterator[tuple[int, str]]] | None:
    """Return what to look for in a file of that name, beyond tokens."""
    lower = name.lower()
    if lower == ".env" or lower.endswith(".env") or lower.startswith(".env."):
        return None if _TEMPLATE.search(lower) else _environment
    return _FIELDS.get(lower)


def _environment(content: bytes) -> Iterator[tuple[int, str]]:
    for match in _ENVIRONMENT.finditer(content):
        value = match["value"].partition(match["quote"] or b" #")[0].strip()
        login = _LOGIN_IN_ADDRESS.search(value)
        secret = bool(_SECRET_NAME.search(match["name"])) and _is_value(value)
        if secret or (login is not None and _is_value(login["value"])):
            yield match.start("name"), "environment file with a secret's value"


def _values(pattern: re.Pattern[bytes], kind: str) -> Callable[[bytes], Iterator[tuple[int, str]]]:
    def values(content: bytes) -> Iterator[tuple[int, str]]:
        for match in pattern.finditer(content):
            if _is_value(match["value"]):
                yield match.start(), kind

    return values


def _codex_login(content: bytes) -> Iterator[tuple[int, str]]:
    """Look for a key or session in the login file of Codex."""
    try:
        document = cast("object", json.loads(content))
    except (ValueError, RecursionError):
        return
    if not isinstance(document, dict):
        return
    fields = cast("dict[str, object]", document)
    tokens = fields.get("tokens")
    held = [fields.get("OPENAI_API_KEY")]
    held += list(cast("dict[str, object]", tokens).values()) if isinstance(tokens, dict) else []
    if any(
        isinstance(value, str) and _is_value(value.encode("utf-8", "replace")) for value in held
    ):
        yield 0, "Codex login"


_FIELDS: dict[str, Callable[[bytes], Iterator[tuple[int, str]]]] = {
    "auth.json": _codex_login,
    ".netrc": _values(_NETRC, "login of .netrc"),
    "_netrc": _values(_NETRC, "login of .netrc"),
    ".pypirc": _values(_PYPIRC, "login of .pypirc"),
    ".npmrc": _values(_NPMRC, "login of .npmrc"),
    ".git-credentials": _values(_LOGIN_IN_ADDRESS, "login of .git-credentials"),
    ".dockercfg": _values(_DOCKER_AUTH, "login of a registry"),
    "config.json": _values(_DOCKER_AUTH, "login of a registry"),
}


def _spaced(group: str) -> str:
    """Return `GitHubToken` as `GitHub token`: a group's name has no spaces."""
    return (
        re.sub(r"(Key|Token)$", lambda match: f" {match[1].lower()}", group)
        .replace("JSONWeb token", "JSON Web Token")
        .replace("AWSAccess key", "AWS access key")
        .replace("HuggingFace", "Hugging Face")
    )
