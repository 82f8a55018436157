"""Our own Markdown as HTML, with tables that say what they are about and what heads what.

The parser knows neither raw HTML nor links nor images, so texts from outside cannot add any.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from markdown_it import MarkdownIt
from markdown_it.token import Token


def inline_html(markdown: str) -> str:
    """Return one line of Markdown as HTML."""
    return _parser().renderInline(markdown)


def tables_html(markdown: Sequence[str], subject: str) -> str:
    """Return lines of Markdown as HTML; the captions of tables begin with `subject`."""
    parser = _parser()
    tokens = parser.parse("\n".join(markdown))
    several = sum(token.type == "table_open" for token in tokens) > 1
    accessible = list(_accessible(tokens, subject, several=several))
    return parser.renderer.render(accessible, parser.options, {}).rstrip("\n")


def _accessible(tokens: list[Token], subject: str, *, several: bool) -> Iterator[Token]:
    """Yield the tokens with captions, scopes, and a frame in which a wide table can be moved."""
    row_began = in_row_head = False
    for number, token in enumerate(tokens):
        match token.type:
            case "table_open":
                caption = subject
                if several:
                    caption = f"{subject}, by {_first_header(tokens[number:])}"
                label = escape(caption, quote=True)
                yield _raw(f'<div class="wide" role="region" aria-label="{label}" tabindex="0">\n')
                yield token
                # Alone below its heading, a table needs its caption only where nothing is seen.
                kind = "" if several else ' class="unseen"'
                yield _raw(f"<caption{kind}>{label}</caption>\n")
                continue
            case "table_close":
                yield token
                yield _raw("</div>\n")
                continue
            case "th_open":
                token.attrSet("scope", "col")
            case "tr_open":
                row_began = True
            case "td_open" if row_began:
                token.tag, row_began, in_row_head = "th", False, True
                token.attrSet("scope", "row")
            case "td_close" if in_row_head:
                token.tag, in_row_head = "th", False
            case _:
                pass
        yield token


def _first_header(tokens: Sequence[Token]) -> str:
    return next((token.content for token in tokens if token.type == "inline"), "")


def _raw(html: str) -> Token:
    return Token("html_block", "", 0, content=html)


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    return parser.disable(["link", "image", "autolink", "reference", "html_block", "html_inline"])
