"""report.html in a real browser: hostile texts run nothing, ask for nothing, and change nothing."""

from __future__ import annotations

import os
import shutil
import socket
import struct
import subprocess
import threading
import zlib
from collections.abc import Generator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.unit.report import studies
from tests.unit.report.exhibits import contents, exhibits
from tests.unit.report.test_evidence import MORE_HOSTILE, colours
from tests.unit.report.test_html import HOSTILE
from xgent_evolve.report.html import report_html
from xgent_evolve.report.inputs import Gap
from xgent_evolve.report.model import report_document
from xgent_evolve.report.page import policy

SCRIPT = "document.documentElement.dataset.ran='yes';document.title='ran'"
ACTING = [
    f"<script>{SCRIPT}</script>",
    f"</pre><script>{SCRIPT}</script>",
    f'<img src=x onerror="{SCRIPT}">',
    f'<svg onload="{SCRIPT}"></svg>',
    f'<details open ontoggle="{SCRIPT}">',
    f'<iframe srcdoc="<script>parent.{SCRIPT}</script>"></iframe>',
    "<img src=http://hostile.invalid/image.png>",
    "<style>@import 'http://hostile.invalid/style.css';</style>",
    "<link rel=stylesheet href=http://hostile.invalid/link.css>",
    "<link rel=prefetch href=http://hostile.invalid/prefetch>",
    "<video src=http://hostile.invalid/video poster=http://hostile.invalid/poster></video>",
    "<object data=http://hostile.invalid/object></object>",
    "<meta http-equiv=refresh content='0;url=http://hostile.invalid/refresh'>",
    "<form action=http://hostile.invalid/form><input autofocus onfocus=this.form.submit()></form>",
]
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
)


class Elements(HTMLParser):
    """The elements of a page, written or as a browser has them, in their order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def names(self) -> list[str]:
        return [name for name, _ in self.found]


@dataclass
class Listener:
    """A proxy that answers nothing and remembers what was asked of it."""

    port: int
    asked: list[str] = field(default_factory=list)


@dataclass
class Browser:
    """Chromium, which reaches the network through the listener alone."""

    binary: str
    listener: Listener
    home: Path

    def call(self, *arguments: str) -> bytes:
        proxy = f"--proxy-server=http://127.0.0.1:{self.listener.port}"
        command = [self.binary, *FLAGS, proxy, "--proxy-bypass-list=<-loopback>"]
        done = subprocess.run(
            [*command, f"--user-data-dir={self.home / 'profile'}", *arguments],
            capture_output=True,
            timeout=120,
            check=True,
        )
        return done.stdout

    def dom(self, html: str, fragment: str = "") -> str:
        """Return the page as it stands after everything in it had its chance."""
        path = self.home / "page.html"
        path.write_text(html)
        self.listener.asked.clear()
        return self.call("--dump-dom", f"file://{path}{fragment}").decode()

    def asked(self) -> list[str]:
        """Return what the page asked the network for; the browser's own requests are not its."""
        return [line for line in self.listener.asked if "hostile" in line]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Generator[Browser]:
    names = ("chromium", "chromium-browser", "google-chrome")
    binary = next((found for name in names if (found := shutil.which(name))), None)
    if binary is None:
        reason = "Chromium is not installed; scripts/test installs it"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    with socket.create_server(("127.0.0.1", 0)) as server:
        listener = Listener(server.getsockname()[1])
        thread = threading.Thread(target=listen, args=(server, listener), daemon=True)
        thread.start()
        yield Browser(binary, listener, tmp_path_factory.mktemp("browser"))


def listen(server: socket.socket, listener: Listener) -> None:
    with suppress(OSError):
        while True:
            connection, _ = server.accept()
            with connection:
                connection.settimeout(5)
                with suppress(OSError):
                    listener.asked.append(connection.recv(4096).split(b"\r\n")[0].decode())


@pytest.fixture(scope="module")
def hostile_page() -> str:
    """A whole report whose every text from outside is a try to act."""
    text = "\n".join([*ACTING, *HOSTILE, *(text[:3000] for text in MORE_HOSTILE)])
    report = replace(
        studies.kept(),
        study=replace(studies.study("compare"), question=text, protocol_id="honest"),
        gaps=[Gap("secret_replaced", text, where=text)],
    )
    shown = exhibits(report, lambda _attempt: contents(text), detail=text)
    return report_html(report_document(report), shown)


def test_hostile_texts_run_nothing_ask_for_nothing_and_hide_nothing(
    browser: Browser, hostile_page: str
) -> None:
    text = browser.dom(hostile_page)
    assert browser.asked() == []
    assert "data-ran" not in text.split("<body>")[0]
    assert "<title>honest: keep</title>" in text
    # The browser sees the very elements that were written: none is added, moved or lost.
    assert Elements(text).names() == Elements(hostile_page).names()
    attempts = studies.kept().attempts
    body = text.split('id="attempts"')[1].split("</section>")[0]
    assert body.count('<th scope="row">') == len(attempts)
    assert text.count('<details class="attempt">') == len(attempts)


def test_the_page_is_built_for_reading_aloud_and_for_keys(
    browser: Browser, hostile_page: str
) -> None:
    text = browser.dom(hostile_page, "#attempt-3")
    page = Elements(text)
    count = page.names().count
    assert (count("main"), count("nav"), count("footer"), count("h1")) == (1, 1, 1, 1)
    assert count("caption") == count("table") > 3
    headers = [attributes for name, attributes in page.found if name == "th"]
    assert headers
    assert all(attributes.get("scope") in ("row", "col") for attributes in headers)
    assert count("summary") == count("details")
    for name, attributes in page.found:
        if name == "svg":
            assert (attributes["role"], bool(attributes["aria-label"])) == ("img", True)
        if attributes.get("aria-labelledby"):
            assert f'id="{attributes["aria-labelledby"]}"' in text
    # Following a link opens what it leads to, without a script.
    assert '<details class="attempt" open="">' in text
    assert '<details class="case" open="">' in text


def test_the_policy_alone_would_stop_what_escaping_stops(browser: Browser) -> None:
    """The control: the same texts act in a page that neither escapes nor forbids."""
    leaving = ("refresh", "form action")
    acting = [text for text in ACTING if not any(word in text for word in leaving)]
    body = "".join(f"<div>{text}</div>" for text in acting)
    acted = browser.dom(f"<!doctype html><title>open</title><body>{body}")
    assert "data-ran" in acted
    assert any("image.png" in line for line in browser.asked())
    forbidden = f'<meta http-equiv="Content-Security-Policy" content="{policy()}">'
    kept = browser.dom(f"<!doctype html>{forbidden}<title>closed</title><body>{body}")
    assert "data-ran" not in kept.split("<body>")[0]
    assert "<title>closed</title>" in kept
    assert browser.asked() == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_policy_lets_the_page_have_its_style(
    browser: Browser, hostile_page: str, theme: str, tmp_path: Path
) -> None:
    path, picture = tmp_path / "page.html", tmp_path / "page.png"
    path.write_text(hostile_page)
    dark = ("--blink-settings=preferredColorScheme=0",) if theme == "dark" else ()
    browser.call("--window-size=900,700", *dark, f"--screenshot={picture}", f"file://{path}")
    assert first_pixel(picture.read_bytes()) == colours(theme)["paper"]


def first_pixel(png: bytes) -> str:
    """Return the colour of the top left pixel; all filters leave it as it is."""
    assert png.startswith(b"\x89PNG")
    data, at = b"", 8
    while at < len(png):
        (size,) = struct.unpack(">I", png[at : at + 4])
        if png[at + 4 : at + 8] == b"IDAT":
            data += png[at + 8 : at + 8 + size]
        at += size + 12
    return "#" + zlib.decompress(data)[1:4].hex()
