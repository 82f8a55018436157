"""An optimizer's answer: what it says about its change, and the change itself (requirement I2).

The answer is the last message of its turn, in the form that the schema below asks for; the change
is what differs in its copy of the text. Codex does not check the answer against the schema, so it
is checked here. Both must say the same, and about the text that was handed out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

from pydantic import BaseModel, ConfigDict, ValidationError

from xgent_evolve.canonical import Json, canonical_bytes
from xgent_evolve.harbor.artifacts import Artifacts, Delivery
from xgent_evolve.harbor.events import last_message
from xgent_evolve.harbor.outcome import captured_output
from xgent_evolve.ids import Digest
from xgent_evolve.search.text import Changes, NewFile
from xgent_evolve.spec.paths import within
from xgent_evolve.strategies.strategy import Proposal

TEXT_DIRECTORY = "text"
"""Where the text lies in the optimizer's working directory; all else there is scratch."""
_MOST_MESSAGE = 64_000
_MOST_CHARACTERS = 4000
_SHARED_MODE = 0o111

type Read = Callable[[Digest], bytes]


class ProposalAnswer(BaseModel):
    """The last message of an optimizer, as JSON."""

    model_config = ConfigDict(extra="forbid", strict=True, use_attribute_docstrings=True)

    parent_hash: str
    """The hash of the text that was changed, as study.json gives it."""
    hypothesis: str
    """Why the agents failed, and why this change helps them."""
    expected_effect: str
    """What will be different in the results if the hypothesis holds."""
    counterexample: str
    """The result that would refute the hypothesis."""
    changed_paths: list[str]
    """Every path that was changed, below text/."""


def answer_schema() -> bytes:
    """Return the JSON Schema of the answer, in the form that structured output accepts."""
    fields = ProposalAnswer.model_fields
    properties: dict[str, Json] = {}
    for name, field in fields.items():
        described: dict[str, Json] = {"description": field.description or ""}
        is_list = name == "changed_paths"
        properties[name] = (
            {**described, "type": "array", "items": {"type": "string"}}
            if is_list
            else {**described, "type": "string"}
        )
    return canonical_bytes(
        {
            "type": "object",
            "properties": properties,
            "required": list(fields),
            "additionalProperties": False,
        }
    )


def read_proposal(artifacts: Artifacts, read: Read) -> Proposal | str:
    """Return what the optimizer said, or why that cannot be read."""
    message = last_message(captured_output(artifacts, "stdout", read))
    if message is None:
        return "the optimizer left no final message"
    if len(message) > _MOST_MESSAGE:
        return f"the final message is longer than {_MOST_MESSAGE} characters"
    try:
        answer = ProposalAnswer.model_validate(json.loads(message))
    except ValidationError as error:
        fault = error.errors()[0]
        place = ".".join(map(str, fault["loc"]))
        return f"the final message is no proposal: {place or 'it'}: {fault['msg']}"
    except (ValueError, RecursionError):
        return "the final message is not JSON"
    texts = (answer.hypothesis, answer.expected_effect, answer.counterexample)
    if not all(text.strip() for text in texts):
        return "the proposal leaves hypothesis, expected effect or counterexample empty"
    if any(len(text) > _MOST_CHARACTERS for text in texts):
        return f"a part of the proposal is longer than {_MOST_CHARACTERS} characters"
    return Proposal(
        parent_hash=answer.parent_hash,
        hypothesis=answer.hypothesis,
        expected_effect=answer.expected_effect,
        counterexample=answer.counterexample,
        changed_paths=tuple(sorted(set(answer.changed_paths))),
    )


def read_changes(artifacts: Artifacts, read: Read) -> tuple[dict[str, NewFile | None], list[str]]:
    """Return the changed files by path in the repository, and why others cannot be taken."""
    delivery = artifacts.delivery or Delivery(changes=[], refused=[])
    changes: dict[str, NewFile | None] = {}
    problems = [
        f"{item.path} has {item.size} bytes and was not captured"
        for item in delivery.refused
        if within(item.path, TEXT_DIRECTORY)
    ]
    for change in delivery.changes:
        if change.path == TEXT_DIRECTORY or not within(change.path, TEXT_DIRECTORY):
            continue
        path = change.path.removeprefix(f"{TEXT_DIRECTORY}/")
        after = change.after
        if after is None:
            if change.before is not None and change.before.kind != "dir":
                changes[path] = None
        elif after.kind == "file" and after.sha256 is not None:
            content = read(artifacts.blobs[after.sha256])
            changes[path] = NewFile(content, executable=bool(after.mode & _SHARED_MODE))
        elif after.kind == "link":
            problems.append(f"{path} is a link; only files can be proposed")
    return changes, problems


def contradictions(proposal: Proposal, parent: Digest, changes: Changes) -> Iterator[str]:
    """Yield where the proposal and the change do not agree."""
    if proposal.parent_hash != parent:
        yield f"parent_hash is {proposal.parent_hash!r}, not that of the text handed out"
    named = {path.removeprefix(f"{TEXT_DIRECTORY}/") for path in proposal.changed_paths}
    if undeclared := sorted(changes.keys() - named):
        yield f"changed and not named in changed_paths: {', '.join(undeclared)}"
    if untouched := sorted(named - changes.keys()):
        yield f"named in changed_paths and not changed: {', '.join(untouched)}"
