"""What a target studies: one skill, AGENTS.md files, or a skill crossed with AGENTS.md files.

With surface skill, target.paths names one skill root, and beside it the AGENTS.md files that are
crossed with it, if any. With surface agents, all paths are AGENTS.md files or directories of them.
"""

from __future__ import annotations

from xgent_evolve.spec.parts import Target
from xgent_evolve.spec.paths import last_name

AGENTS_FILE = "AGENTS.md"


def skill_root(target: Target) -> str | None:
    """Return the directory of the skill under study; None when no skill is studied."""
    if target.surface == "agents":
        return None
    return next((path for path in target.paths if last_name(path) != AGENTS_FILE), None)


def agents_paths(target: Target) -> list[str]:
    """Return the target's paths that stand for AGENTS.md files."""
    if target.surface == "agents":
        return target.paths
    return [path for path in target.paths if last_name(path) == AGENTS_FILE]


def is_crossed(target: Target) -> bool:
    """Return whether a skill and AGENTS.md files may both vary."""
    return target.surface == "skill" and bool(agents_paths(target))
