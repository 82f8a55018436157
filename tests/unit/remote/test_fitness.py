"""Whether a host can do what a JobSpec needs, going by its report alone."""

from __future__ import annotations

from typing import Any

import pytest

from xgent_evolve.errors import HostError
from xgent_evolve.remote.fitness import advice, check_host, check_image
from xgent_evolve.remote.report import HostReport
from xgent_evolve.spec.models_v1 import CaseV1, Runtime
from xgent_evolve.spec.shape import fit

IMAGE = "sha256:" + "a" * 64


def report(**changes: Any) -> HostReport:
    kernel: dict[str, Any] = {
        "release": "6.1",
        "apparmor": False,
        "apparmor_profiles": None,
        "apparmor_restricts_namespaces": None,
        "max_user_namespaces": 1000,
        "unprivileged_namespaces": None,
        "emulated": [],
        **changes.pop("kernel", {}),
    }
    stats = {"disk_free_bytes": 1 << 33, "inodes_total": 1 << 20, "inodes_free": 1 << 19}
    image: dict[str, Any] = {
        "id": IMAGE,
        "digests": [],
        "architecture": changes.pop("image", "amd64"),
        "os": "linux",
        "env": [],
    }
    engine = {
        "version": "20.10.24+dfsg1",
        "api": "1.41",
        "architecture": "x86_64",
        "security": changes.pop("security", ["name=seccomp,profile=default"]),
        "storage": "overlay2",
        "id": "i",
    }
    return HostReport.model_validate(
        {
            "python": "3.8.1",
            "architecture": "x86_64",
            "socket": "/s",
            "engine": engine,
            "images": {IMAGE: image},
            "cpus": 4,
            "memory_bytes": 1 << 34,
            "clock_ms": 0,
            "kernel": kernel,
            "networks": {"bridge": {"driver": "bridge", "internal": False}},
            "stats": {**stats, **changes.pop("stats", {})},
            **changes,
        }
    )


def runtime(**changes: Any) -> Runtime:
    found, _ = fit(
        Runtime,
        {
            "ssh": {"host": "h"},
            "remote_root": "/srv/x",
            "docker": {"path": "/usr/bin/docker", "version": "20.10"},
            "codex": {"version": "0.162.1", "architecture": "x86_64"},
            "model": "m",
            **changes,
        },
    )
    assert found is not None
    return found


def case(platform: str = "linux/amd64") -> CaseV1:
    fields: dict[str, Any] = {
        "source": None,
        "group": "g",
        "split": "search",
        "information_cutoff": "2026-01-01",
        "observable_requirements": ["It works."],
        "task_path": "task",
        "repo_path": "/app",
    }
    return CaseV1(id="one", image=IMAGE, platform=platform, **fields)


REFUSED = [
    pytest.param({"docker": {"path": "/d", "version": "24"}}, {}, "E_REMOTE_ENGINE_VERSION"),
    pytest.param({}, {"architecture": "aarch64"}, "E_REMOTE_PLATFORM"),
    pytest.param({}, {"stats": {"disk_free_bytes": 1 << 29}}, "E_REMOTE_DISK"),
    pytest.param({}, {"stats": {"inodes_free": 100}}, "E_REMOTE_DISK"),
    pytest.param({"network": "lab"}, {}, "E_REMOTE_NETWORK"),
    pytest.param({"network": "lab"}, {"networks": {"lab": None}}, "E_REMOTE_NETWORK"),
    pytest.param({"apparmor_profile": "codex"}, {}, "E_REMOTE_APPARMOR"),
    pytest.param(
        {"apparmor_profile": "codex"},
        {"security": ["name=apparmor"], "kernel": {"apparmor_profiles": ["other"]}},
        "E_REMOTE_APPARMOR",
    ),
]


@pytest.mark.parametrize(("wanted", "found", "code"), REFUSED)
def test_a_host_that_cannot_do_it_is_refused_with_its_cure(
    wanted: dict[str, Any], found: dict[str, Any], code: str
) -> None:
    with pytest.raises(HostError) as caught:
        check_host(report(**found), runtime(**wanted))
    assert caught.value.code == code
    assert caught.value.where.startswith("host h: ")
    assert caught.value.fix


ACCEPTED = [
    pytest.param({}, {}),
    pytest.param({"network": "host"}, {"networks": {"host": None}}),
    pytest.param({"network": "lab", "model": None}, {}),
    pytest.param({}, {"stats": {"inodes_total": 0, "inodes_free": 0}}),
    pytest.param({"apparmor_profile": "unconfined"}, {}),
    pytest.param(
        {"apparmor_profile": "codex"},
        {"security": ["name=apparmor"], "kernel": {"apparmor_profiles": ["codex"]}},
    ),
    pytest.param({"apparmor_profile": "codex"}, {"security": ["name=apparmor"]}),
]


@pytest.mark.parametrize(("wanted", "found"), ACCEPTED)
def test_a_host_that_can_do_it_is_not_refused(wanted: Any, found: Any) -> None:
    check_host(report(**found), runtime(**wanted))


def test_an_image_of_another_architecture_needs_qemu() -> None:
    foreign, arm = report(image="arm64"), case("linux/arm64")
    with pytest.raises(HostError) as caught:
        check_image(foreign, arm)
    assert (caught.value.code, caught.value.expected) == (
        "E_REMOTE_PLATFORM",
        "a host of aarch64, or QEMU for it in binfmt_misc",
    )
    emulating = report(image="arm64", kernel={"emulated": ["aarch64"]})
    check_image(emulating, arm)
    assert advice(emulating, runtime(), [arm]) == [
        "images for aarch64 run there in emulation, slowly"
    ]
    check_image(report(), case())


TOLD: list[tuple[Any, Any, str]] = [
    ({"clock_skew_ms": -90_000}, {}, "-90 s off"),
    ({"kernel": {"max_user_namespaces": 0}}, {}, "no user namespaces"),
    ({"kernel": {"unprivileged_namespaces": 0}}, {}, "no user namespaces"),
    ({"kernel": {"apparmor_restricts_namespaces": 1}}, {}, "AppArmor restricts"),
    ({"networks": {"bridge": {"driver": "bridge", "internal": True}}}, {}, "no way out"),
    ({"model": {"reached": False, "detail": "OSError: no"}}, {}, "(OSError: no)"),
    ({}, {"network": "none"}, "cannot reach a model"),
    ({"memory_bytes": 1 << 30}, {}, "more than the host has"),
]


@pytest.mark.parametrize(("found", "wanted", "text"), TOLD)
def test_what_is_worth_knowing_is_told(found: Any, wanted: Any, text: str) -> None:
    told = advice(report(**found), runtime(**wanted), [case()])
    assert [text in line for line in told] == [True]


def test_of_an_ordinary_host_nothing_is_told() -> None:
    assert advice(report(), runtime(), [case()]) == []


def test_what_changes_by_itself_is_no_part_of_the_state() -> None:
    first, second = report(clock_ms=1), report(clock_ms=2, stats={"disk_free_bytes": 1 << 34})
    assert first.state() == second.state()
    assert first.state() != report(python="3.9.0").state()
