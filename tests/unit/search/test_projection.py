"""The optimizer sees search cases, an aggregate of validation, and nothing else."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from xgent_evolve.harbor.artifacts import Artifacts, Delivery, StoredFile
from xgent_evolve.harbor.request import Change, FileFact
from xgent_evolve.measure.outcomes import Row, Scored, Unscored
from xgent_evolve.search.projection import SHOWN_BYTES, Observation, project
from xgent_evolve.strategies.strategy import Refused, Step, Version

PARENT = Version("baseline", "blake3:parent")


def observed(searched: Any, case: str, said: bytes, outcome: Any = None) -> Observation:
    digest = searched.blobs.put(said)
    sha256 = hashlib.sha256(said).hexdigest()
    fact = FileFact(kind="file", mode=0o644, sha256=sha256, size=len(said))
    artifacts = Artifacts(
        uuid="u",
        slot="s",
        attempt=1,
        kind="agent",
        files={"stdout": StoredFile(sha256=sha256, size=len(said))},
        delivery=Delivery(changes=[Change(path="out.txt", before=None, after=fact)], refused=[]),
        blobs={sha256: digest},
    )
    row = Row(case, f"team-{case}", "baseline", 1, outcome or Scored(0.0))
    return Observation(row, artifacts)


def projected(searched: Any, *observations: Observation, steps: Any = ()) -> Any:
    return project(searched.protocol, PARENT, observations, steps, searched.blobs.get)


def test_validation_is_one_aggregate_and_confirmation_nothing(searched: Any) -> None:
    found = projected(
        searched,
        observed(searched, "release-plan", b"seen words"),
        observed(searched, "incident-summary", b"held words", Scored(1.0)),
        observed(searched, "access-request", b"held words", Unscored("reward_missing", "why")),
        observed(searched, "vendor-register", b"closed words"),
    )
    everything = b"".join(found.files.values()) + str(sorted(found.files)).encode()
    assert b"seen words" in everything
    for closed in (b"held words", b"closed words", b"incident-summary", b"vendor-register", b"why"):
        assert closed not in everything
    assert json.loads(found.files["results/validation.json"]) == {
        "trials": 2,
        "without_result": 1,
        "mean": 1.0,
    }
    assert set(found.bundles) == {"results/search/release-plan/task"}
    public = searched.protocol.case("release-plan").public
    assert found.bundles["results/search/release-plan/task"] == public


def test_long_output_is_cut_to_its_end_and_says_so(searched: Any) -> None:
    said = b"start" + b"x" * SHOWN_BYTES + b"end"
    found = projected(searched, observed(searched, "release-plan", said))
    directory = "results/search/release-plan/1"
    shown = found.files[f"{directory}/stdout.jsonl"]
    assert len(shown) == SHOWN_BYTES
    assert shown.endswith(b"end")
    assert b"start" not in shown
    result = json.loads(found.files[f"{directory}/result.json"])
    assert result["shown_files"]["stdout.jsonl"] == {"bytes": len(said), "truncated": True}
    assert result["shown_files"]["stderr.txt"] == {"bytes": 0, "truncated": False}
    assert len(found.files[f"{directory}/delivery.diff"]) == SHOWN_BYTES


def test_a_trial_without_a_result_is_told_as_such(searched: Any) -> None:
    lost = Observation(
        Row("release-plan", "g", "baseline", 1, Unscored("agent_infrastructure", "secret detail")),
        None,
    )
    found = projected(searched, lost)
    text = found.files["results/search/release-plan/1/result.json"]
    assert json.loads(text) == {
        "agent_timed_out": False,
        "reward": None,
        "cause": "agent_infrastructure",
    }


def test_the_study_and_earlier_proposals_are_told(searched: Any) -> None:
    step = Step(1, PARENT, Refused(("no sound change",)), None)
    found = projected(searched, steps=[step])
    study = json.loads(found.files["study.json"])
    assert study["parent_hash"] == "blake3:parent"
    assert study["paths_that_may_change"] == ["skills/team-conventions"]
    assert study["protected_rules"][0]["text"] == "Work in the current directory only."
    assert study["smallest_gain_worth_having"] == 0.1
    (told,) = json.loads(found.files["history.json"])
    assert told["decision"] == "invalid"
    assert told["reasons"] == ["no sound change"]
    assert found.files["method.md"].startswith(b"# Method")
