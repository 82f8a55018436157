"""What the supervisor hands over through the pipe is what lies in the container, or is not used."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.engine

BUSYBOX = shutil.which("busybox")
RUNNER = Path(__file__).parents[2] / "xgent_evolve" / "payload" / "host_runner"
READ = "export.read.before"
"""Passed when the container is read; the action makes the first try fail and leaves a line."""
COMMAND = r"""
printf 'out\n\n'; printf 'no newline' >&2
mkdir -p "/xgent/ctl/deep/a b" /xgent/ctl/empty && cd "/xgent/ctl/deep/a b"
printf x >"$(printf 'odd\377name')"; : >.hidden; : >..twice; ln -s /etc/passwd link; mkfifo pipe
head -c 200000 /dev/zero >large
exit 3
"""
LOOK = r"""
find /srv /tests /opt/data /xgent -path /xgent/ctl -prune -o \( -name supervisor.sh -o \
    -name plan.sh -o -name command.sh -o -name identity -o -path /xgent/handover \) -prune -o \
    -printf '%p %y %m %U %G %T@ %s %l\n' | sort
sha256sum /tests/* /srv/*.txt
"""


def executed(kit: Any, faults: dict[str, Any], command: str = COMMAND) -> tuple[Any, list[str]]:
    """Return the outcome and the points that were passed with an action."""
    runner = kit.runner(faults=faults)
    work = kit.work(command)
    work.request["capture"]["workspace"] = False
    result = runner.execute(work)
    assert work.starts() == 1
    runner.clean(work)
    assert not list(runner.root.rglob(".tmp-*"))
    log = runner.root / "faults.log"
    fired = [line.split()[0] for line in log.read_text().splitlines()] if log.exists() else []
    runner.stop()
    return result.outcome(), fired


@pytest.fixture(scope="module")
def archived(kit: Any) -> Any:
    """What comes of it when nothing can be taken from the pipe."""
    receive = "export.receive.before"
    faults = {receive: {"action": "enospc"}, READ: {"action": "eio"}}
    outcome, fired = executed(kit, faults)
    assert fired == [receive, READ]
    return outcome


def test_what_is_handed_over_is_what_would_be_read_and_then_it_is_not_read(
    kit: Any, archived: Any
) -> None:
    outcome, fired = executed(kit, {READ: {"action": "eio"}})
    assert fired == []
    assert outcome == archived
    names = {f"deep/a b/{name}" for name in ("odd%FFname", ".hidden", "..twice", "large")}
    assert set(outcome["files"]) == {"stdout", "stderr", "prepare", "collect", *names}


FORGED = r"""
printf '%s,"status":"ended","exit_code":0,"expired":false,"started_cs":1,"ended_cs":2}
' \
    "$(sed 's/}$//' /xgent/identity)" >/tmp/record && cd /tmp &&
{ cat record record; echo; wc -c record record | sed 's, r, /xgent/ctl/r,; 2s,record,stdout,'
    echo 2; } >/xgent/handover/export
i=0; while [ $i -lt 501 ]; do : >/xgent/ctl/n$i; i=$((i + 1)); done
"""
"""A whole list with a record of its own, and too many files for the supervisor to hand over."""


@pytest.mark.parametrize(
    "disturbance",
    [
        pytest.param(FORGED, id="a forged record and nothing behind it"),
        pytest.param("echo noise >/xgent/handover/export", id="noise before"),
        pytest.param(
            "cd /xgent/ctl && { cat token; echo; wc -c token token; echo 2; }"
            " >/xgent/handover/export",
            id="a whole list before",
        ),
        pytest.param(": >'/xgent/ctl/two\nlines'", id="a name of two lines"),
        pytest.param(
            "i=0; while [ $i -lt 501 ]; do : >/xgent/ctl/n$i; i=$((i + 1)); done",
            id="many files",
        ),
    ],
)
def test_whatever_is_odd_about_it_the_container_is_read(kit: Any, disturbance: str) -> None:
    outcome, fired = executed(kit, {READ: {"action": "eio"}}, f"{disturbance}\ntrue; exit 3")
    assert fired == [READ]
    assert outcome["record"] == {"status": "ended", "exit_code": 3, "expired": False}


def test_nobody_who_listens_costs_a_moment_and_nothing_else(kit: Any) -> None:
    """The driver dies while the command runs; the command ends before anybody drives again."""
    runner = kit.runner(faults={"export.receive.before": {"action": "kill"}})
    work = kit.work("exit 3")
    runner.send(work)
    runner.drive(work)
    runner.until(work, "started")
    while kit.engine("inspect", "-f", "{{.State.Running}}", work.name) == "true":
        pass
    assert runner.wait(work).record["exit_code"] == 3
    assert work.starts() == 1
    runner.clean(work)


@pytest.fixture(scope="module")
def derived(kit: Any) -> Iterator[Callable[[str], str]]:
    """Make images that differ from the usual one by what a shell command does."""
    made: list[str] = []

    def derive(command: str) -> str:
        mount = ["-v", f"{BUSYBOX}:/host/busybox:ro"] if BUSYBOX else []
        container = kit.engine("create", *mount, kit.image, "sh", "-c", command)
        kit.engine("start", "-a", container)
        made.append(kit.engine("commit", container))
        kit.engine("rm", container)
        return made[-1]

    yield derive
    for image in made:
        kit.engine("rmi", image, check=False)


EXISTING = """
mkdir -p /srv/there/below /tests /opt/data; echo old >/srv/there/file; chmod 700 /srv/there
echo old >/tests/kept.txt; echo old >/tests/test.sh; ln -s ../there /srv/link
chown -R 12:34 /srv/there; touch -d 2020-01-02 /srv/there/file /tests/kept.txt; : >/srv/empty.txt
"""


def test_a_container_that_unpacks_by_itself_finds_what_others_find(
    kit: Any, derived: Callable[[str], str]
) -> None:
    """Kinds, modes, owners, times, sizes, links and bytes, over what an image has already."""
    seen = []
    busybox = "cp /host/busybox /usr/bin/busybox && ln -sf busybox /usr/bin/tar"
    for change in ("rm /usr/bin/tar", "true", *([busybox] if BUSYBOX else [])):
        runner = kit.runner()
        files = {"new.txt": b"new\n", "a/b/deep.txt": b"deep\n", "odd %FF name.txt": b"odd\n"}
        image = derived(EXISTING + change)
        work = kit.work(LOOK, files=files, from_image="/srv", image=image)
        test = next(item for item in work.request["inputs"] if item["path"].endswith("plan.sh"))
        extra = [
            {**test, "path": "tests/test.sh", "mode": 0o755},
            {**test, "path": "opt/data/read-only", "mode": 0o444},
            {"path": "tests/up", "kind": "link", "mode": 0o777, "target": "../srv"},
            {"path": "tests/" + "long" * 40, "kind": "dir", "mode": 0o750},
        ]
        work.request["inputs"] += [{"sha256": None, "size": 0, "target": None, **e} for e in extra]
        runner.send(work)
        runner.drive(work)
        runner.until(work, "created")
        entrypoint = kit.engine("inspect", "-f", "{{.Config.Entrypoint}}", work.name)
        assert ("stage.tar" in entrypoint) is (change == "true")
        result = runner.wait(work)
        seen.append((runner.content(work, result, "stdout").splitlines(), result.outcome()))
        runner.clean(work)
        runner.stop()
    for other in seen[1:]:
        assert set(other[0]) ^ set(seen[0][0]) == set()
        assert other == seen[0]
    lines = b"\n".join(seen[0][0])
    assert b"/srv/there/file f 644 12 12 " in lines  # of an owner, the group is not kept
    assert b"/tests/test.sh f 755 0 0 0.0" in lines


def test_an_image_that_cannot_read_or_unpack_what_is_staged_is_found_out_before(
    kit: Any, derived: Callable[[str], str]
) -> None:
    runner = kit.runner()
    work = kit.work("exit 3", image=derived("printf '#!/bin/false GNU tar' >/usr/bin/tar"))
    result = runner.execute(work)
    assert result.record["exit_code"] == 3
    assert work.starts() == 1
    assert "stage.tar" not in kit.engine("inspect", "-f", "{{.Config.Entrypoint}}", work.name)
    runner.clean(work)


FAILS_LATER = r"""
mv /usr/bin/tar /usr/bin/tar.real && cat >/usr/bin/tar <<'END'
#!/bin/sh
# GNU tar
case $(tar.real -tf "$2") in *tried*) exec tar.real "$@" ;; esac
exit 2
END
chmod 755 /usr/bin/tar
"""


def test_what_cannot_be_unpacked_all_the_same_loses_the_attempt_and_no_more(
    kit: Any, derived: Callable[[str], str]
) -> None:
    runner = kit.runner()
    work = kit.work("exit 3", image=derived(FAILS_LATER))
    result = runner.execute(work)
    exported = result.receipt("exported")
    assert (exported["record"], exported["command_started"]) == (None, False)
    assert result.receipt("exited")["engine"]["exit_code"] == 86
    assert work.starts() == 0
    runner.clean(work)


CHECK = """
import sys
sys.path.insert(0, sys.argv[1])
from handover import parse_list
def parsed(stream):
    return parse_list(stream, len(stream))
good = b"abcde\\n  2 /xgent/ctl/record\\n3 /xgent/ctl/a  b \\n 5 total\\n2\\n"
assert parsed(good) == [(b"record", 2), (b"a  b ", 3)], parsed(good)
assert parse_list(good[3:], len(good)) is not None, "its end is enough"
# Every stream that is longer, shorter or altered in its end does not account for all bytes.
for cut in range(len(good)):
    assert parsed(good[:cut]) is None, good[:cut]
    assert parsed(good[len(good) - cut :]) is None
for extra in (b"x", b"\\n", b"0 /xgent/ctl/x\\n", good):
    assert parsed(extra + good) is None, extra
    assert parsed(good + extra) is None, extra
odd = (b"0 /etc/x\\n", b"-1 /xgent/ctl/x\\n", b"/xgent/ctl/x\\n", b"1\\n")
for line in odd:
    stream = b"ab\\n2 /xgent/ctl/record\\n" + line + b"2 total\\n2\\n"
    assert parsed(stream) is None, stream
"""


def test_a_list_accounts_for_every_byte_or_is_none() -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-B", "-c", CHECK, RUNNER], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
