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
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 without tab and newline, DEL, C1
    "\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"  # no width, or turning the line
    "\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"  # marks, no characters, tags
)
_USERINFO = re.compile(r"(?<=://)[^\s\"']*@")


def printable(text: str) -> str:
    """Return `text` without terminal sequences and control characters.

    Newline and tab stay. Everything that did not come from this package's own source goes
    through here before a person sees it: file contents, agent output, host replies.
    """
    return _UNPRINTABLE.sub("", _TERMINAL_SEQUENCE.sub("", text))


def visible(text: str) -> str:
    """Return `text` with every character that cannot be seen, or that hides others, spelled out.

    A right-to-left override becomes `⟨U+202E⟩`: where a person judges what an agent wrote, what is
    hidden in it is part of it. Newline and tab stay.
    """
    return _HIDDEN.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", text)


def as_on_screen(text: str) -> str:
    """Return what a command printed without colours and cursor movements, the rest visible."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return visible(_TERMINAL_SEQUENCE.sub("", lines))


def without_userinfo(text: str) -> str:
    """Return `text` with `user:password@` in every address replaced by `***@`.

    A password may hold any character, so everything before the last `@` goes.
    """
    return _USERINFO.sub("***@", text)
