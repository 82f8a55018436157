"""A junior optimizer: reads the evidence that it is given and edits the text accordingly.

The behaviour is a pure function of the conversation. Its first idea, without any history, is to
shorten: it drops the sections of the skill, which does harm. When the history holds a proposal
that was not kept, it looks at the failures instead, sees that the skill was not opened, and lets
the description name every section.
"""

from __future__ import annotations

import json
from typing import Final

from xgent_evolve.demo.conversation import Conversation
from xgent_evolve.demo.junior import Finish, Run

_MARK: Final = "You improve the written instructions that steer coding agents"
_CUT: Final = "-----"
_LOOK: Final = (
    "cat /evolution-input/study.json; echo -----; cat /evolution-input/history.json; echo -----; "
    "find text -name SKILL.md -o -name AGENTS.md; echo -----; "
    "grep -l '\"reward\": 0' /evolution-input/results/search/*/*/result.json"
)
_SHORTEN: Final = "sed -i '/^## /,$d' {path}"
_ANNOUNCE: Final = (
    "names=$(sed -n 's/^## //p' {path} | tr 'A-Z\\n' 'a-z,' | sed 's/,$//; s/,/, the /g') && "
    'sed -i "s/^description: .*/description: Conventions of the teams for the $names./" {path}'
)


def is_brief(prompt: str) -> bool:
    """Say whether the prompt asks for a proposal instead of a task's solution."""
    return prompt.startswith(_MARK)


def next_proposal_move(talk: Conversation) -> Run | Finish:
    """Return what the optimizer does next. Pure."""
    done = {step.command: step.output for step in talk.steps_of_prompt}
    if _LOOK not in done:
        return Run("I read the evidence first.", _LOOK, len(_LOOK))
    study, history, found, failed = (part.strip() for part in done[_LOOK].split(_CUT, 3))
    path = found.splitlines()[0]
    first = history == "[]"
    command = (_SHORTEN if first else _ANNOUNCE).format(path=path)
    if command not in done:
        count = len(failed.splitlines())
        return Run(f"{count} trials failed; I edit {path}.", command, len(command))
    return Finish(json.dumps(_proposal(study, path, shortened=first), sort_keys=True))


def _proposal(study: str, path: str, *, shortened: bool) -> dict[str, object]:
    said = (
        ("The skill is too long to be read.", "Agents act faster.", "Tasks that passed now fail.")
        if shortened
        else (
            "Agents do not open the skill: its description does not name what they are asked for.",
            "Tasks whose section the skill has pass.",
            "The skill is opened and the tasks fail all the same.",
        )
    )
    return {
        "parent_hash": json.loads(study)["parent_hash"],
        "hypothesis": said[0],
        "expected_effect": said[1],
        "counterexample": said[2],
        "changed_paths": [path],
    }
