"""What an agent can see is listed from inside and held against the plan (SKL-04, SKL-06)."""

from __future__ import annotations

import hashlib
import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "xgent_evolve" / "payload" / "visible.sh"
SKILL = "---\nname: target\ndescription: d\n---\n"
PLANNED = {
    "etc/codex/requirements.toml": "profile",
    "etc/codex/skills/target/SKILL.md": SKILL,
    "etc/codex/skills/target/odd \\name.md": "odd",
    "home/agent/.codex/config.toml": "config",
    "app/AGENTS.md": "rules",
    "app/.agents/skills/background/SKILL.md": SKILL.replace("target", "background"),
    "app/deep/down/AGENTS.md": "nested",
}


@dataclass
class Room:
    """A container's places below a directory; the script gets them by its own variables."""

    root: Path
    planned: dict[str, str] = field(default_factory=lambda: dict(PLANNED))
    from_image: bool = False

    def write(self, path: str, content: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(content)

    def look(self, *, path: str = os.environ["PATH"]) -> tuple[str, str]:
        """Return the verdict and what was said."""
        script = self.root / "visible.sh"
        script.write_text(SCRIPT.read_text().replace("/etc/codex", f"{self.root}/etc/codex"))
        lines = [self.line(name, content) for name, content in self.planned.items()]
        (self.root / "expected").write_text("".join(lines))
        values = {
            "work": f"{self.root}/app",
            "from_image": "1" if self.from_image else "",
            "codex_home": f"{self.root}/home/agent/.codex",
            "credential": f"{self.root}/home/agent/.codex/auth.json",
            "expected": f"{self.root}/expected",
            "skills": "target\nother",
            "listing": f"{self.root}/listing",
        }
        command = f'refused=; . "{script}"; visible || echo "verdict=$refused"'
        done = subprocess.run(
            ["/bin/sh", "-c", command], env={**values, "PATH": path}, capture_output=True, text=True
        )
        verdict = done.stdout.rpartition("verdict=")[2].strip() if "verdict=" in done.stdout else ""
        return verdict, (self.root / "listing").read_text() + done.stdout + done.stderr

    def line(self, name: str, content: str) -> str:
        digest = hashlib.sha256(content.encode()).hexdigest()
        path = f"{self.root}/{name}"
        mark = "\\" if "\\" in path else ""
        return f"{mark}{digest}  {path.replace('\\', '\\\\')}\n"


@pytest.fixture
def room(tmp_path: Path) -> Room:
    found = Room(tmp_path)
    for path, content in PLANNED.items():
        found.write(path, content)
    found.write("home/agent/.codex/auth.json", "the-credential")
    return found


def test_what_was_planned_is_accepted_and_listed_and_the_credential_is_not_read(room: Room) -> None:
    verdict, said = room.look()
    assert verdict == "", said
    assert "skills/target/SKILL.md" in said
    assert "deep/down/AGENTS.md" in said
    assert "auth.json" not in said


@pytest.mark.parametrize(
    "path",
    [
        "etc/codex/skills/other/SKILL.md",
        "etc/codex/config.toml",
        "etc/codex/managed_config.toml",
        "home/agent/.codex/AGENTS.md",
        "home/agent/.codex/skills/x/SKILL.md",
        "home/agent/.agents/skills/x/SKILL.md",
        "app/.agents/skills/x/SKILL.md",
        "app/.codex/skills/x/SKILL.md",
        "app/.codex/config.toml",
        "app/AGENTS.override.md",
        "app/deep/AGENTS.override.md",
        "app/deep/AGENTS.md",
        "app/.agents/..hidden/SKILL.md",
    ],
)
def test_anything_else_that_codex_would_find_is_contamination(room: Room, path: str) -> None:
    room.write(path, SKILL)
    verdict, said = room.look()
    assert verdict == "contaminated"
    assert f"extra  {hashlib.sha256(SKILL.encode()).hexdigest()}  {room.root}/{path}" in said


def test_other_bytes_under_a_planned_name_are_contamination(room: Room) -> None:
    room.write("etc/codex/skills/target/SKILL.md", SKILL + "more\n")
    assert room.look()[0] == "contaminated"


@pytest.mark.parametrize("path", ["etc/codex/skills/target/SKILL.md", "app/AGENTS.md"])
def test_a_planned_file_that_is_not_there_is_not_visible(room: Room, path: str) -> None:
    (room.root / path).unlink()
    verdict, said = room.look()
    assert verdict == "skill_not_visible"
    assert f"{room.root}/{path}" in said.partition("missing")[2]


def test_a_link_in_the_place_of_a_directory_is_contamination(room: Room) -> None:
    (room.root / "elsewhere").mkdir()
    (room.root / "app/.codex").symlink_to(room.root / "elsewhere")
    room.from_image = True
    assert room.look()[0] == "contaminated"


def test_a_pipe_does_not_hold_the_listing_up(room: Room) -> None:
    os.mkfifo(room.root / "etc/codex/pipe")
    assert room.look()[0] == "contaminated"


def test_an_images_own_instructions_are_background_unless_they_are_the_skill_under_study(
    room: Room,
) -> None:
    room.from_image = True
    room.planned = {name: text for name, text in PLANNED.items() if not name.startswith("app/")}
    room.write("app/AGENTS.override.md", "the image's")
    assert room.look()[0] == ""
    room.write("app/.codex/skills/alias/SKILL.md", SKILL.replace("target", '"target"'))
    verdict, said = room.look()
    assert verdict == "contaminated"
    assert "rival" in said


def test_a_repositorys_own_copy_of_the_skill_under_study_is_contamination(room: Room) -> None:
    path = "app/.agents/skills/other/SKILL.md"
    room.planned[path] = SKILL.replace("target", "renamed")
    room.write(path, room.planned[path])
    verdict, said = room.look()
    assert verdict == "contaminated"
    assert "rival" in said
    assert "extra" not in said


def test_without_sha256sum_the_names_are_compared(room: Room, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    odd = "etc/codex/skills/target/odd \\name.md"
    del room.planned[odd]
    (room.root / odd).unlink()
    assert room.look(path=str(empty))[0] == ""
    room.write("home/agent/.codex/AGENTS.md", "extra")
    assert room.look(path=str(empty))[0] == "contaminated"
