"""A junior colleague: does what the instructions at hand say, and no better.

The behaviour is a pure function of the conversation:

1. A listed skill whose description fits the task is read before anything else.
2. If a section of what was read names the task's topic and holds a `sh` block, that block is run
   exactly as it stands.
3. A task that dictates a file word by word is carried out word by word.
4. Otherwise something plausible is tried, which knows no convention.
5. After one attempt the colleague reports and stops.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

from xgent_evolve.demo.conversation import Conversation, ListedSkill

_TOPIC = re.compile(r"^Topic:\s*([A-Za-z0-9-]+)\s*$", re.MULTILINE)
_DICTATED = re.compile(
    r"create a file (?:called|named) `(?P<name>[^`\n]+)`[^\n]*containing exactly:?\s*\n+"
    r"(?P<fence>```+)[^\n]*\n(?P<content>.*?)\n?^(?P=fence)\s*$",
    re.IGNORECASE | re.DOTALL | re.MULTILINE,
)
_NAMED_FILE = re.compile(r"`([A-Za-z0-9_][A-Za-z0-9._/-]*)`")
_HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*\s*$")
_FENCE = re.compile(r"^\s*(```+|~~~+)\s*(\S*)")
_WORD = re.compile(r"[a-z][a-z0-9]{3,}")
_SHARED_WORDS = 2
_COMMON = frozenset(
    {"this", "that", "with", "when", "from", "what", "your", "which", "have", "must", "file"}
    | {"files", "write", "create", "task", "tasks", "them", "they", "into", "exactly", "current"}
    | {"directory", "containing", "called", "named"}
)


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and the first `sh` block below it."""

    heading: str
    recipe: str


@dataclass(frozen=True, slots=True)
class Run:
    """The next thing to do is a command."""

    say: str
    command: str
    effort: int
    """How much text the command came from; what the answer costs depends on it."""


@dataclass(frozen=True, slots=True)
class Finish:
    """Nothing is left to do."""

    say: str


def next_move(talk: Conversation) -> Run | Finish:
    """Return what the colleague does next. Pure."""
    for skill in talk.skills:
        reading = f"cat {shlex.quote(skill.path)}"
        if fits(skill, talk.prompt) and all(step.command != reading for step in talk.steps):
            return Run(f"The skill {skill.name} fits; I read it first.", reading, len(skill.name))
    attempt = _attempt(talk)
    if any(step.command == attempt.command for step in talk.steps_of_prompt):
        return Finish(f"Done. {attempt.say}")
    return attempt


def fits(skill: ListedSkill, prompt: str) -> bool:
    """Return whether the skill's announcement shares enough words with the task."""
    announced = _words(f"{skill.name} {skill.description}")
    return len(announced & _words(prompt)) >= _SHARED_WORDS


def known_texts(talk: Conversation) -> tuple[str, ...]:
    """Return every text that may instruct, the most specific one first.

    A skill that was read outranks AGENTS.md, and what came later outranks what came before.
    """
    read = [step.output for step in talk.steps if step.command.startswith("cat ")]
    return (*reversed(read), *reversed(talk.guidance))


def find_section(texts: tuple[str, ...], topic: str) -> Section | None:
    """Return the section whose heading has all words of `topic`, if some text has one."""
    wanted = set(topic.lower().split("-"))
    for text in texts:
        for section in reversed(sections(text)):
            if wanted <= set(re.findall(r"[a-z0-9]+", section.heading.lower())):
                return section
    return None


def sections(text: str) -> list[Section]:
    """Return the sections of a Markdown text that hold a `sh` block."""
    found: list[Section] = []
    heading, fence, block = "", "", list[str]()
    for line in text.splitlines():
        mark = _FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence) and not mark[2]:
                if heading and block and block[0] == "sh":
                    found.append(Section(heading, "\n".join(block[1:])))
                    heading = ""
                fence = ""
            else:
                block.append(line)
        elif mark:
            fence, block = mark[1], [mark[2]]
        elif title := _HEADING.match(line):
            heading = title[1]
    return found


def _attempt(talk: Conversation) -> Run:
    topic = _TOPIC.search(talk.prompt)
    section = find_section(known_texts(talk), topic[1]) if topic else None
    if section:
        say = f"I followed the section “{section.heading}”."
        return Run(say, section.recipe, len(section.recipe))
    if dictated := _DICTATED.search(talk.prompt):
        command = _write(dictated["name"], dictated["content"])
        return Run(f"I wrote {dictated['name']} as dictated.", command, len(command))
    return _guess(talk.prompt, topic[1] if topic else "notes")


def _guess(prompt: str, topic: str) -> Run:
    named = (match[1] for match in _NAMED_FILE.finditer(prompt))
    name = next((path for path in named if ".." not in path and not path.endswith("/")), None)
    name = name or f"{topic}.md"
    request = next((line for line in prompt.splitlines() if line.strip()), topic)
    command = _write(name, f"# {topic.replace('-', ' ').capitalize()}\n\n{request}")
    return Run(
        f"I know no convention for this and wrote {name} as I saw fit.", command, len(prompt)
    )


def _write(name: str, content: str) -> str:
    target = shlex.quote(name)
    parent = name.rpartition("/")[0]
    folder = f"mkdir -p {shlex.quote(parent)} && " if parent else ""
    return f"{folder}printf '%s\\n' {shlex.quote(content)} > {target}"


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower())) - _COMMON
