"""The profile of system calls is what its script writes, and a white list (requirement E4)."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[3]
PROFILE = json.loads((ROOT / "xgent_evolve" / "payload" / "seccomp.json").read_text())
DANGEROUS = set(
    """
    acct add_key bpf chroot clock_settime create_module delete_module fanotify_init finit_module
    fsconfig fsmount fsopen fspick init_module io_uring_enter io_uring_register io_uring_setup
    ioperm iopl kcmp kexec_file_load kexec_load keyctl lookup_dcookie mount_setattr move_mount
    name_to_handle_at nfsservctl open_by_handle_at open_tree perf_event_open pidfd_getfd
    process_vm_readv process_vm_writev ptrace quotactl quotactl_fd reboot request_key setdomainname
    sethostname setns settimeofday swapoff swapon syslog umount uselib userfaultfd vhangup
""".split()
)


@pytest.fixture(scope="module")
def script() -> ModuleType:
    path = ROOT / "scripts" / "seccomp_profile.py"
    spec = importlib.util.spec_from_file_location("seccomp_profile", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def allowed() -> set[str]:
    rules = [rule for rule in PROFILE["syscalls"] if rule["action"] == "SCMP_ACT_ALLOW"]
    return {name for rule in rules for name in rule["names"]}


def test_the_file_is_what_the_script_writes(script: ModuleType) -> None:
    assert script.profile() == PROFILE


def test_what_is_not_listed_is_refused_and_nothing_dangerous_is_listed() -> None:
    assert PROFILE["defaultAction"] == "SCMP_ACT_ERRNO"
    assert allowed().isdisjoint(DANGEROUS)
    assert {arch["architecture"] for arch in PROFILE["archMap"]} == {
        "SCMP_ARCH_X86_64",
        "SCMP_ARCH_AARCH64",
    }


def test_no_call_is_named_twice_or_both_allowed_and_left_out(script: ModuleType) -> None:
    names = [name for group in script.EVERYDAY.values() for name in group.split()]
    names += [name for group in script.LEFT_OUT for name in group.split()]
    names += script.SANDBOX
    assert len(names) == len(set(names))


def test_each_argument_is_filtered_in_the_way_that_the_engine_understands() -> None:
    for rule in PROFILE["syscalls"]:
        for argument in rule.get("args", []):
            assert argument["op"] in {"SCMP_CMP_EQ", "SCMP_CMP_NE", "SCMP_CMP_MASKED_EQ"}
            assert ("valueTwo" in argument) == (argument["op"] == "SCMP_CMP_MASKED_EQ")
