"""build_protocol is the one path from a JobSpec to frozen bytes."""

from __future__ import annotations

import pytest

from xgent_evolve.errors import DriftError, InvalidError, StoreError
from xgent_evolve.freeze.build import build_protocol, reachable, verify_frozen
from xgent_evolve.freeze.protocol import Protocol
from xgent_evolve.store.blobs import BlobStore
from xgent_evolve.store.bundles import load_bundle
from xgent_evolve.store.memory import MemoryBlobs
from xgent_evolve.store.rundir import RunDir


def paths(blobs, digest):
    return [entry.path for entry in load_bundle(blobs, digest)]


def text(blobs, digest, path):
    entry = next(item for item in load_bundle(blobs, digest) if item.path == path)
    return blobs.get(entry.blob).decode()


def test_validate_and_run_freeze_the_same_protocol(study, tmp_path):
    loaded = study.load()
    in_memory = build_protocol(loaded, MemoryBlobs())
    on_disk = build_protocol(loaded, BlobStore(tmp_path / "blobs"))
    assert in_memory.to_bytes() == on_disk.to_bytes()


def test_building_twice_gives_the_same_bytes(study):
    first = build_protocol(study.load(), MemoryBlobs())
    assert build_protocol(study.load(), MemoryBlobs()).digest() == first.digest()


def test_a_protocol_survives_its_own_byte_form(study):
    protocol = build_protocol(study.load(), MemoryBlobs())
    assert Protocol.from_bytes(protocol.to_bytes()) == protocol


def test_a_protocol_in_another_byte_form_is_refused(study):
    protocol = build_protocol(study.load(), MemoryBlobs())
    with pytest.raises(StoreError) as caught:
        Protocol.from_bytes(protocol.to_bytes() + b"\n")
    assert caught.value.code == "E_STORE_CORRUPT"


def test_the_workspace_has_the_code_but_no_skill_under_test_and_no_agents_file(study):
    blobs = MemoryBlobs()
    protocol = build_protocol(study.load(), blobs)
    assert paths(blobs, protocol.case("one").workspace) == [
        "skills/other/SKILL.md",
        "src/main.py",
        "src/run.sh",
    ]


def test_a_fixed_skill_leaves_the_workspace_and_is_installed_in_every_condition(study):
    study.spec["source"]["fixed_skill_roots"] = ["skills/other"]
    blobs = MemoryBlobs()
    protocol = build_protocol(study.load(), blobs)
    assert paths(blobs, protocol.case("one").workspace) == ["src/main.py", "src/run.sh"]
    for condition in protocol.conditions:
        assert [skill.name for skill in condition.fixed_skills] == ["other"]


def test_the_conditions_differ_in_the_skill_alone(study):
    blobs = MemoryBlobs()
    protocol = build_protocol(study.load(), blobs)
    none, base, cand = protocol.conditions
    assert none.skill is None
    assert base.skill.name == cand.skill.name == "demo"
    assert paths(blobs, base.skill.bundle) == ["SKILL.md", "scripts/go.sh"]
    assert text(blobs, cand.skill.bundle, "SKILL.md").endswith("Check twice.\n")
    assert none.agents == base.agents == cand.agents
    assert paths(blobs, base.agents) == ["AGENTS.md", "src/AGENTS.md"]
    assert len({none.content, base.content, cand.content}) == 3


def test_dirty_bytes_are_frozen_as_they_are_on_disk(study):
    study.write("src/main.py", "print('dirty')\r\n")
    blobs = MemoryBlobs()
    protocol = build_protocol(study.load(), blobs)
    assert text(blobs, protocol.case("one").workspace, "src/main.py") == "print('dirty')\r\n"


def test_a_case_of_an_older_base_gets_that_commits_bytes_alone(study):
    old = study.spec["target"]["base_commit"]
    study.write("src/main.py", "print('new')\n")
    study.write("src/added.py", "pass\n")
    study.commit()
    study.write("src/main.py", "print('dirty')\n")
    study.spec["target"]["compatible_bases"] = [old]
    study.spec["cases"][1]["source"]["base"] = old
    blobs = MemoryBlobs()
    protocol = build_protocol(study.load(), blobs)
    workspace = protocol.case("two").workspace
    assert text(blobs, workspace, "src/main.py") == "print('hello')\n"
    assert "src/added.py" not in paths(blobs, workspace)
    assert text(blobs, protocol.case("one").workspace, "src/main.py") == "print('dirty')\n"


def test_a_compatible_base_must_be_a_real_ancestor(study):
    base = study.spec["target"]["base_commit"]
    study.git("checkout", "-q", "--orphan", "stranger")
    study.git("commit", "-q", "--allow-empty", "-m", "stranger")
    stranger = study.git("rev-parse", "HEAD").strip()
    study.git("checkout", "-q", "-f", "main")
    study.spec["target"]["compatible_bases"] = [stranger]
    with pytest.raises(InvalidError) as caught:
        build_protocol(study.load(), MemoryBlobs())
    assert caught.value.code == "E_SPEC_ANCESTOR"
    assert "$.target.compatible_bases[0]" in caught.value.where
    assert base in caught.value.expected


def test_a_replaced_commit_does_not_pass_for_an_ancestor(study):
    base = study.spec["target"]["base_commit"]
    study.git("checkout", "-q", "--orphan", "stranger")
    study.git("commit", "-q", "--allow-empty", "-m", "stranger")
    stranger = study.git("rev-parse", "HEAD").strip()
    study.git("checkout", "-q", "-f", "main")
    tree = study.git("rev-parse", f"{base}^{{tree}}").strip()
    forged = study.git("commit-tree", tree, "-p", stranger, "-m", "forged").strip()
    study.git("replace", base, forged)
    assert study.git("merge-base", "HEAD", stranger).strip() == stranger
    study.spec["target"]["compatible_bases"] = [stranger]
    with pytest.raises(InvalidError) as caught:
        build_protocol(study.load(), MemoryBlobs())
    assert caught.value.code == "E_SPEC_ANCESTOR"


def test_an_unknown_commit_is_named(study):
    study.spec["target"]["compatible_bases"] = ["1" * 40]
    with pytest.raises(InvalidError) as caught:
        build_protocol(study.load(), MemoryBlobs())
    assert caught.value.code == "E_SPEC_COMMIT"


def test_a_method_is_frozen_with_the_protocol_and_checked_by_hash(study):
    import hashlib

    method = b"Improve it.\n"
    (study.root / "method.md").write_bytes(method)
    study.spec |= {
        "mode": "search",
        "optimizer": {
            "model": "gpt-6.1-sol",
            "effort": "high",
            "method_path": "method.md",
            "method_sha256": hashlib.sha256(method).hexdigest(),
        },
    }
    del study.spec["candidate_condition"]
    study.spec["conditions"] = study.spec["conditions"][:2]
    study.spec["budget"] |= {"max_candidates": 1, "confirmation_trials": 10}
    study.spec["budget"] |= {"max_trials": 60, "confirmation_trials": 12}
    for number in range(6):
        study.add_case(f"seen-{number}")
        study.add_case(f"held-{number}", split="confirmation")
    blobs = MemoryBlobs()
    protocol = build_protocol(study.load(), blobs)
    assert blobs.get(protocol.method) == method
    assert protocol.method in reachable(protocol, blobs)
    (study.root / "method.md").write_bytes(b"Other.\n")
    with pytest.raises(DriftError) as caught:
        build_protocol(study.load(), MemoryBlobs())
    assert caught.value.code == "E_FREEZE_METHOD"


def test_every_frozen_byte_is_reachable_from_the_protocol(study, tmp_path):
    store = BlobStore(tmp_path / "blobs")
    protocol = build_protocol(study.load(), store)
    stored = set(store.digests())
    assert set(reachable(protocol, store)) <= stored
    verify_frozen(protocol, store)


def test_a_missing_and_a_damaged_byte_is_found(study, tmp_path):
    with RunDir.draft(tmp_path / "run") as run:
        protocol = build_protocol(study.load(), run.blobs)
        run.write_protocol(protocol.to_bytes())
    run = RunDir.open(tmp_path / "run")
    verify_frozen(protocol, run.blobs)
    digest = protocol.case("one").instruction.removeprefix("blake3:")
    file = run.path / "blobs" / digest[:2] / digest[2:]
    content = file.read_bytes()
    file.chmod(0o644)
    file.write_bytes(content[:-1] + b"?")
    with pytest.raises(StoreError) as caught:
        verify_frozen(protocol, run.blobs)
    assert caught.value.code == "E_STORE_CORRUPT"
    with pytest.raises(StoreError) as caught:
        verify_frozen(protocol, run.blobs)
    assert caught.value.code == "E_STORE_MISSING"
    run.blobs.put(content)
    verify_frozen(protocol, run.blobs)


def test_changed_code_is_refused_by_name(study):
    blobs = MemoryBlobs()
    protocol = build_protocol(study.load(), blobs)
    other = protocol.replaced(code=protocol.code | {"measure": "blake3:" + "0" * 64})
    with pytest.raises(DriftError) as caught:
        verify_frozen(other, blobs)
    assert caught.value.code == "E_RUN_CODE"
    assert "measure" in caught.value.message
    assert "payload" not in caught.value.message


def test_validating_writes_nothing_anywhere(study):
    def state():
        return {
            path: (path.lstat().st_mtime_ns, path.lstat().st_ctime_ns)
            for path in (study.root, *study.root.rglob("*"))
        }

    loaded = study.load()
    before = state()
    build_protocol(loaded, MemoryBlobs())
    assert state() == before
