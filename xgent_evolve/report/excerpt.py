"""Texts from outside, cut to a length and made into HTML that cannot act.

Every cut says how much is missing. Nothing here knows what a text is about.
"""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import NamedTuple

from xgent_evolve.redact import as_on_screen, visible

LINE_CHARACTERS = 400
"""A longer name or line is cut."""
_NEAR = 160
"""A cut moves to the end of a line when one is so many characters away."""


class Excerpt(NamedTuple):
    """The two ends of a text."""

    head: str
    left_out: int
    """Characters between head and tail."""
    tail: str


def excerpt(text: str, limit: int) -> Excerpt:
    """Return `text` whole when it has at most `limit` characters, else two thirds and one third."""
    if len(text) <= limit:
        return Excerpt(text, 0, "")
    first, last = limit - limit // 3, len(text) - limit // 3
    newline = text.rfind("\n", max(0, first - _NEAR), first)
    first = newline + 1 if newline >= 0 else first
    newline = text.find("\n", last, last + _NEAR)
    last = newline + 1 if newline >= 0 else last
    return Excerpt(text[:first], last - first, text[last:])


def words(text: str, limit: int = LINE_CHARACTERS) -> str:
    """Return a name or a line from outside as HTML text of about `limit` characters."""
    more = len(text) - limit
    shown = text if more <= 0 else f"{text[:limit]} … {more:,} characters more"
    return escape(visible(shown), quote=True)


def block(text: str, limit: int, where: str, *, kind: str = "", output: bool = False) -> str:
    """Return a text as preformatted HTML of about `limit` characters.

    `where` says which stored bytes hold the whole; `output` takes terminal sequences out.
    """
    shown: Callable[[str], str] = as_on_screen if output else visible
    found = excerpt(text, limit)
    opening = f'<pre class="{kind}">' if kind else "<pre>"
    # A newline right behind the opening tag is not part of the text.
    parts = [f"{opening}\n{escape(shown(found.head))}</pre>"]
    if found.left_out:
        parts.append(cut(f"{found.left_out:,} characters are left out here; {where}"))
        parts.append(f"{opening}\n{escape(shown(found.tail))}</pre>")
    return "\n".join(parts)


def cut(sentence: str) -> str:
    """Return the statement that something is not shown."""
    return f'<p class="cut">✂ {escape(sentence)}</p>'
