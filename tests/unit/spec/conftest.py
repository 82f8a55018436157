"""A valid study to break: the compare template, filled in."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from xgent_evolve.errors import Fault, SpecError
from xgent_evolve.spec.load import LoadedSpec, load_spec

type Study = dict[str, Any]

EXAMPLES = Path(__file__).parents[3] / "examples"
TEMPLATE = EXAMPLES / "skill-compare.json"
BASE = "a" * 40
FILLINGS = {
    "TARGET_REPO": "repo",
    "TARGET_GIT_SHA": BASE,
    "SKILL_PATH": "skills/review",
    "SSH_HOST": "build.example",
    "REMOTE_ROOT": "/srv/xgent-evolve",
    "DOCKER_VERSION": "28.2",
    "CODEX_ARCHITECTURE": "x86_64",
    "HOST_AUTH_PATH": "~/.codex/auth.json",
    "INFORMATION_CUTOFF": "2026-01-31",
    "EVALUATION_ROOT": "evaluation",
    "CANDIDATE_SKILL_TEXT": "---\\nname: review\\n---\\nLook twice.\\n",
}


def filled(text: str) -> str:
    """Return a template with every placeholder filled in."""

    def value(match: re.Match[str]) -> str:
        name = match[1]
        if name in FILLINGS:
            return FILLINGS[name]
        kind = name.rsplit("_", 1)[-1]
        return {
            "PATH": f"tasks/{name.lower()}",
            "DIGEST": f"registry.example/task@sha256:{'0' * 64}",
        }.get(kind, f"the {name.lower()}")

    text = text.replace('"<MIN_GAIN>"', "0.05").replace('"<MIN_GROUPS>"', "6")
    return re.sub(r"<([A-Z][A-Z0-9_]*)>", value, text)


def add_groups(study: Study, split: str, total: int) -> None:
    """Add cases of a split, each from a group of its own, until it has `total` groups."""
    have = {case["group"] for case in study["cases"] if case["split"] == split}
    model = next(case for case in study["cases"] if case["split"] == split)
    for number in range(total - len(have)):
        name = f"{split}-{number}"
        own = {"id": name, "group": f"origin-{name}", "task_path": f"tasks/{name}"}
        study["cases"].append({**model, **own})


@pytest.fixture(scope="session")
def widened() -> Callable[[Study], Study]:
    """Give a search enough groups to decide: six to select, six to confirm."""

    def widen(study: Study) -> Study:
        selecting = {case["group"] for case in study["cases"] if case["split"] != "confirmation"}
        searched = {case["group"] for case in study["cases"] if case["split"] == "search"}
        add_groups(study, "search", 6 - len(selecting) + len(searched))
        add_groups(study, "confirmation", 6)
        study["budget"] |= {"max_trials": 200, "confirmation_trials": 24}
        return study

    return widen


@pytest.fixture
def study() -> Study:
    """A valid comparison of two skill texts."""
    document: Study = json.loads(filled(TEMPLATE.read_text(encoding="utf-8")))
    return document


@pytest.fixture
def agents_study(study: Study) -> Study:
    """A valid comparison of two AGENTS.md texts."""
    study["target"] |= {"surface": "agents", "paths": ["AGENTS.md"]}
    study["source"]["paths"] = study["authority"]["export_paths"] = ["AGENTS.md", "src"]
    study["authority"]["write_paths"] = ["AGENTS.md"]
    for case in study["cases"]:
        case["source"] = {"kind": "repo", "repo": "repo", "base": BASE}
    study["conditions"] = [
        {"id": "present", "skill": "fixed", "agents": "baseline"},
        {
            "id": "edited",
            "skill": "fixed",
            "agents": "candidate",
            "overrides": {"AGENTS.md": "Be brief.\n"},
        },
    ]
    return study


@pytest.fixture
def quality_study() -> Study:
    """A valid calibration of rubrics, with the auxiliary scorer."""
    document: Study = json.loads(
        filled((EXAMPLES / "quality-calibration.json").read_text(encoding="utf-8"))
    )
    document["authority"]["allow_typesafe_auxiliary"] = True
    document["budget"]["max_auxiliary_calls"] = 10
    document["evaluation"]["paths"].append("auxiliary")
    document["evaluation"]["auxiliary"] = {
        "provider": "typesafe",
        "model": "jev-1.14.0",
        "criterion_ids": ["change-scope"],
        "rubric_path": "auxiliary/rubric.json",
        "calibration_path": "auxiliary/calibration.json",
        "authentication": {"source": "controller_env", "name": "TYPESAFE_API_KEY"},
    }
    return document


@pytest.fixture
def crossed_study(agents_study: Study, study: Study) -> Study:
    """A valid comparison of a skill and an AGENTS.md, apart and together."""
    study = agents_study | {"target": study["target"]}
    study["target"] |= {"surface": "skill", "paths": ["skills/review", "AGENTS.md"]}
    study["source"]["paths"] = study["authority"]["export_paths"] = ["AGENTS.md", "skills", "src"]
    study["authority"]["write_paths"] = ["AGENTS.md", "skills/review"]
    texts = {"skill": {"skills/review/SKILL.md": "Twice."}, "agents": {"AGENTS.md": "Brief."}}
    study["conditions"] = [{"id": "none", "skill": "absent", "agents": "baseline"}] + [
        {
            "id": f"{skill}-{agents}",
            "skill": skill,
            "agents": agents,
            "overrides": (texts["skill"] if skill == "candidate" else {})
            | (texts["agents"] if agents == "candidate" else {}),
        }
        for skill in ("baseline", "candidate")
        for agents in ("baseline", "candidate")
    ]
    study["baseline_condition"] = "baseline-baseline"
    study["candidate_condition"] = "candidate-candidate"
    study["budget"]["max_trials"] = 40
    return study


@pytest.fixture
def load(tmp_path: Path) -> Callable[[object], LoadedSpec]:
    """Load a document, or a text as it stands."""

    def load(document: object) -> LoadedSpec:
        path = tmp_path / "job.json"
        text = document if isinstance(document, str) else json.dumps(document, indent=2)
        path.write_text(text, encoding="utf-8")
        return load_spec(path)

    return load


@pytest.fixture
def faults(load: Callable[[object], LoadedSpec]) -> Callable[[object], list[Fault]]:
    """Load a document that must be refused and return its faults."""

    def faults(document: object) -> list[Fault]:
        with pytest.raises(SpecError) as caught:
            load(document)
        return list(caught.value.faults)

    return faults


@pytest.fixture
def refused(
    faults: Callable[[object], list[Fault]],
) -> Callable[[Study, Callable[[Study], object], str, str], None]:
    """Edit a study and require one complete fault at a path, with some words in it."""

    def refused(study: Study, edit: Callable[[Study], object], path: str, words: str) -> None:
        edit(study)
        (fault,) = [item for item in faults(study) if item.where.endswith(f": {path}")]
        assert words in f"{fault.message} {fault.expected}"
        assert fault.expected
        assert fault.found
        assert fault.fix

    return refused
