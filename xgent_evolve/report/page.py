"""The frame of a page: policy, style, landmarks, contents. It knows nothing of reports."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Sequence
from functools import cache
from html import escape
from importlib.resources import files

FOOTER = (
    "Made from the recorded evidence alone. This file loads nothing, runs nothing and can be "
    "mailed as it is; xgent-evolve verify computes every number in it again."
)


def page_html(*, title: str, contents: Sequence[tuple[str, str]], head: str, body: str) -> str:
    """Return a whole page; `contents` are names of sections in `body` with HTML of their titles."""
    links = "".join(f'<li><a href="#{name}">{text}</a></li>' for name, text in contents)
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy()}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="referrer" content="no-referrer">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{escape(title)}</title>",
            f"<style>{style()}</style>",
            "</head>",
            "<body>",
            '<a class="skip" href="#main">Skip to the verdict</a>',
            f'<nav aria-label="Contents"><ul>{links}</ul></nav>',
            '<main id="main" tabindex="-1">',
            head,
            body,
            "</main>",
            f"<footer><p>{FOOTER}</p></footer>",
            "</body>",
            "</html>",
            "",
        ]
    )


@cache
def style() -> str:
    """Return the style of every page."""
    text = files("xgent_evolve.report").joinpath("report.css").read_text(encoding="utf-8")
    return f"\n{text}"


@cache
def policy() -> str:
    """Return the content security policy: nothing but this very style, by its hash."""
    digest = b64encode(hashlib.sha256(style().encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
