"""What must not reach a terminal, a log or a report is taken out here, and only here."""

from __future__ import annotations

import re

_TERMINAL_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor movement
    r"|(?:\x1b\]|\x9d)[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"  # OSC: titles, links, clipboard
    r"|\x1b[ -/]*[0-~]"  # every other escape
)
_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 without tab and newline, DEL, C1
    "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"  # text that turns the line around
    "\ud800-\udfff\ufeff]"  # what cannot be encoded, byte order marks
)
_USERINFO = re.compile(r"(?<=://)[^\s\"']*@")


def printable(text: str) -> str:
    """Return `text` without terminal sequences and control characters.

    Newline and tab stay. Everything that did not come from this package's own source goes
    through here before a person sees it: file contents, agent output, host replies.
    """
    return _UNPRINTABLE.sub("", _TERMINAL_SEQUENCE.sub("", text))


def without_userinfo(text: str) -> str:
    """Return `text` with `user:password@` in every address replaced by `***@`.

    A password may hold any character, so everything before the last `@` goes.
    """
    return _USERINFO.sub("***@", text)
