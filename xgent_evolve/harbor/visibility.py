"""What the agent is meant to see: the lines that /xgent/visible.sh must find in the container.

Codex finds instructions and skills in more places than those where a study puts them: the image may
have some, or a repository. What is found is compared before the command starts, so before anything
is paid; an execution that sees anything else is an infrastructure failure and no score.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator

from xgent_evolve.canonical import path_bytes
from xgent_evolve.harbor.request import RequestEntry

INSTRUCTIONS = ("AGENTS.md", "AGENTS.override.md")
"""Files that Codex takes as instructions in a directory."""
DROPPED = (
    ".codex/config.toml",
    ".codex/hooks.json",
    ".codex/hooks",
    ".codex/rules",
    ".codex/agents",
    ".codex/prompts",
)
"""Configuration of Codex that a workspace brings along; it is never placed in a container."""


def is_dropped(path: str) -> bool:
    """Say whether a path of a workspace is configuration of Codex."""
    return any(path == name or path.startswith(f"{name}/") for name in DROPPED)


def expected_lines(
    inputs: Iterable[RequestEntry], workspace: Iterable[RequestEntry], *, home: str, workdir: str
) -> bytes:
    """Return one line for each file and link that Codex may find, sorted by their bytes.

    `inputs` lie below the root, `workspace` below `workdir`. Codex's own configuration in `home` is
    made from the input of that name.
    """
    # What is laid over a path counts, not what lay there before.
    final = {entry.path: entry for entry in workspace}.values()
    lines = {
        *_lines(inputs, "", lambda path: path.startswith("etc/codex/")),
        *_lines(final, workdir.rstrip("/"), _is_found),
    }
    for entry in inputs:
        if entry.path == "xgent/codex-home/config.toml" and entry.sha256 is not None:
            lines.add(_line(entry.sha256, f"{home}/config.toml".encode()))
    return b"".join(line + b"\n" for line in sorted(lines))


def _is_found(path: str) -> bool:
    return path.startswith((".codex/", ".agents/")) or path.rpartition("/")[2] in INSTRUCTIONS


def _lines(
    entries: Iterable[RequestEntry], root: str, wanted: Callable[[str], bool]
) -> Iterator[bytes]:
    for entry in entries:
        if entry.kind == "dir" or not wanted(entry.path):
            continue
        is_deep_link = entry.kind == "link" and entry.path.count("/") > 0 and root != ""
        if is_deep_link and not entry.path.startswith((".codex/", ".agents/")):
            continue  # the search for files in depth does not follow links
        word = "link" if entry.kind == "link" else str(entry.sha256)
        yield _line(word, root.encode() + b"/" + path_bytes(entry.path))


def _line(word: str, path: bytes) -> bytes:
    """Return a line as sha256sum writes it: odd names are escaped and marked."""
    odd = word != "link" and (b"\\" in path or b"\n" in path)
    if odd:
        path = path.replace(b"\\", b"\\\\").replace(b"\n", b"\\n")
    return (b"\\" if odd else b"") + word.encode() + b"  " + path


def plan_text(
    *, workdir: str, from_image: bool, home: str, credential: str, skills: Iterable[str]
) -> str:
    """Return the shell text that sets what /xgent/visible.sh needs and reads it."""
    values = {
        "work": workdir.rstrip("/"),
        "from_image": "1" if from_image else "",
        "codex_home": home,
        "credential": credential,
        "expected": "/xgent/expected",
        "listing": "/xgent/ctl/visible",
        "skills": "\n".join(sorted(skills)),
    }
    return "".join(f"{key}={shlex.quote(value)}\n" for key, value in values.items()) + (
        ". /xgent/visible.sh\n"
    )
