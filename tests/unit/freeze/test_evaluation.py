"""The judging material is frozen whole, and what is not there is named."""

from __future__ import annotations

import pytest

from xgent_evolve.errors import InvalidError, RefusedError
from xgent_evolve.freeze.build import build_protocol, reachable, verify_frozen
from xgent_evolve.freeze.protocol import Protocol
from xgent_evolve.spec.models_v2 import JobSpecV2
from xgent_evolve.store.bundles import load_bundle
from xgent_evolve.store.memory import MemoryBlobs


def test_the_material_is_a_bundle_that_the_protocol_reaches(study):
    study.judge()
    blobs = MemoryBlobs()
    protocol = build_protocol(study.load(), blobs)
    assert protocol.evaluation is not None
    tree = load_bundle(blobs, protocol.evaluation)
    assert [entry.path for entry in tree if entry.kind == "file"] == [
        "artifacts/one.patch",
        "manifest.json",
        "rubric.json",
    ]
    assert {entry.blob for entry in tree if entry.blob} <= set(reachable(protocol, blobs))
    verify_frozen(protocol, blobs)


def test_a_protocol_of_version_2_reads_its_own_bytes(study):
    study.judge()
    protocol = build_protocol(study.load(), MemoryBlobs())
    again = Protocol.from_bytes(protocol.to_bytes())
    assert again == protocol
    assert isinstance(again.spec, JobSpecV2)
    assert again.spec.evaluation.calibration == "manifest.json"


def test_a_study_without_evaluation_freezes_none(study):
    assert build_protocol(study.load(), MemoryBlobs()).evaluation is None


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("rubric.json", "$.evaluation.paths[0]"),
        ("artifacts", "$.evaluation.paths[2]"),
        (".", "$.evaluation.root"),
    ],
)
def test_material_that_is_not_there_is_named(study, path, place):
    study.judge()
    target = study.root / "evaluation" / path
    target.rename(study.root / "gone")
    with pytest.raises(InvalidError) as caught:
        build_protocol(study.load(), MemoryBlobs())
    assert caught.value.code == "E_SPEC_EVALUATION"
    assert caught.value.where.endswith(place)


def test_a_rubric_that_is_a_link_is_refused(study):
    study.judge()
    rubric = study.root / "evaluation/rubric.json"
    rubric.rename(rubric.with_name("real.json"))
    rubric.symlink_to("real.json")
    with pytest.raises(InvalidError) as caught:
        build_protocol(study.load(), MemoryBlobs())
    assert "$.evaluation.rubrics.one" in caught.value.where


@pytest.mark.parametrize("target", ["/etc/hosts", "../../job.json", "missing.patch"])
def test_a_link_of_the_material_leads_to_frozen_material_alone(study, target):
    study.judge()
    (study.root / "evaluation/artifacts/link.patch").symlink_to(target)
    with pytest.raises(RefusedError) as caught:
        build_protocol(study.load(), MemoryBlobs())
    assert caught.value.code == "E_FREEZE_LINK_ESCAPE"
