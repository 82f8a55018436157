"""Freezing writes to, locks and runs nothing of the user's repository; seen from the kernel."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

_WRITING = re.compile(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|O_APPEND")
_CHANGING = "rename,renameat,renameat2,unlink,unlinkat,mkdir,mkdirat,link,linkat,symlink,symlinkat"
_CALLS = f"execve,open,openat,creat,truncate,chmod,fchmodat,utimensat,{_CHANGING}"
_FREEZE = (
    "import sys; from pathlib import Path\n"
    "from xgent_evolve.freeze.build import build_protocol\n"
    "from xgent_evolve.spec.load import load_spec\n"
    "from xgent_evolve.store.rundir import RunDir\n"
    "with RunDir.draft(Path(sys.argv[2])) as draft:\n"
    "    build_protocol(load_spec(Path(sys.argv[1])), draft.blobs)\n"
)


def hostile(study):
    """Give the repository every configuration that makes a Git command run something."""
    spy = study.root / "spy"
    spy.write_text(f"#!/bin/sh\ntouch {study.root}/ran\ncat\n")
    spy.chmod(0o755)
    study.write(".gitattributes", "* filter=spy diff=spy merge=spy\n*.md export-subst\n")
    study.commit()
    hooks = study.root / "hooks"
    hooks.mkdir()
    for name in ("post-index-change", "post-checkout", "pre-commit", "reference-transaction"):
        shutil.copy(spy, hooks / name)
        shutil.copy(spy, study.repo / ".git/hooks" / name)
    included = study.root / "included"
    included.write_text(f"[core]\n\tfsmonitor = {spy}\n[alias]\n\tls-files = !{spy}\n")
    for name, value in {
        "core.fsmonitor": spy,
        "core.hooksPath": hooks,
        "core.sshCommand": spy,
        "core.pager": spy,
        "core.editor": spy,
        "core.askPass": spy,
        "core.gitProxy": spy,
        "core.untrackedCache": "true",
        "core.preloadIndex": "true",
        "include.path": included,
        "filter.spy.clean": spy,
        "filter.spy.smudge": spy,
        "filter.spy.process": spy,
        "filter.spy.required": "true",
        "diff.spy.textconv": spy,
        "diff.spy.command": spy,
        "diff.external": spy,
        "merge.spy.driver": spy,
        "uploadpack.packObjectsHook": spy,
        "gpg.program": spy,
        "credential.helper": f"!{spy}",
        "alias.rev-parse": f"!{spy}",
        "alias.cat-file": f"!{spy}",
        "pager.ls-files": spy,
        "remote.origin.url": f"ext::{spy}",
        "remote.origin.promisor": "true",
        "remote.origin.uploadpack": spy,
        "trace2.eventTarget": study.root / "trace",
    }.items():
        study.git("config", name, str(value))
    (study.root / "ran").unlink(missing_ok=True)


ENVIRONMENT = {
    "GIT_DIR": "/nowhere",
    "GIT_INDEX_FILE": "/nowhere",
    "GIT_EXTERNAL_DIFF": "/nowhere/spy",
    "GIT_SSH_COMMAND": "/nowhere/spy",
    "GIT_TRACE": "/nowhere/trace",
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "core.fsmonitor",
    "GIT_CONFIG_VALUE_0": "/nowhere/spy",
    "GIT_PAGER": "/nowhere/spy",
    "GIT_EXEC_PATH": "/nowhere",
}


def traced(study, tmp_path):
    """Freeze into a run directory under strace; return the lines of the calls that matter."""
    if shutil.which("strace") is None:
        if os.environ.get("CI") == "true":
            pytest.fail("strace is not installed; scripts/test installs it")
        pytest.skip("needs strace")
    package = Path(sys.modules["xgent_evolve"].__file__).parents[1]
    log = tmp_path / "strace"
    words = ["strace", "-f", "-qq", "-y", "-s", "4096", "-e", f"trace={_CALLS}", "-o", log]
    words += [sys.executable, "-c", _FREEZE, study.load().path, tmp_path / "out" / "run"]
    done = subprocess.run(
        words, cwd=package, env=os.environ | ENVIRONMENT, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    return log.read_text(errors="replace").splitlines()


def writes(calls, repo):
    """Return the calls that would change something below `repo`, whether they succeeded or not."""
    return [
        call
        for call in calls
        if str(repo) in call
        and '"/dev/null"' not in call
        and " resumed>" not in call  # the beginning of the call has its flags
        and (_WRITING.search(call) or not re.search(r" (open|openat|execve)\(", call))
    ]


def words_of(call):
    """Return the words of git's command line behind its general options."""
    words = re.findall(r'"((?:[^"\\]|\\.)*)"', call.partition("[")[2])
    return [word for word in words[2:] if word != "-c"]


@pytest.mark.parametrize("files", [0, 1_600])
def test_a_hostile_repository_is_read_and_nothing_else(study, tmp_path, files):
    for number in range(files):
        study.write(f"src/many/f{number}", str(number))
    hostile(study)
    (study.repo / ".git/index.lock").touch()
    calls = traced(study, tmp_path)
    assert writes(calls, study.repo) == []
    ran = {match[1] for call in calls if (match := re.search(r'execve\("([^"]+)"', call))}
    assert {Path(path).name for path in ran} <= {Path(sys.executable).name, "git", "python"}
    assert not (study.root / "ran").exists()
    assert not (study.root / "trace").exists()
    assert (study.repo / ".git/index.lock").exists()


def test_the_trace_sees_a_write(study):
    """The test above can fail: a run directory inside the repository shows."""
    assert writes(traced(study, study.repo), study.repo)


def test_git_is_only_asked_for_names_and_objects(study, tmp_path):
    asked = [words_of(call) for call in traced(study, tmp_path) if '"--no-pager"' in call]
    commands = {next(word for word in words if "=" not in word) for words in asked}
    assert commands == {"rev-parse", "cat-file", "ls-files", "ls-tree"}
