"""What a command changes is delivered exactly, and applied exactly elsewhere."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

pytestmark = pytest.mark.engine

BEFORE = {
    "changed": b"before\n",
    "deleted": b"gone\n",
    "renamed": b"moved\n",
    "mode": b"#!/bin/sh\n",
    "becomes-link": b"file\n",
    "becomes-dir": b"file\n",
    "dir/becomes-file/inner": b"inner\n",
    "dir/untouched": b"same\n",
    "tree/a/b/c": b"deep\n",
    "repointed-target": b"1\n",
}
CHANGE = r"""
echo after >changed
rm deleted
mv renamed moved
chmod 755 mode
rm becomes-link; ln -s /etc/passwd becomes-link
rm becomes-dir; mkdir becomes-dir; echo x >becomes-dir/file
rm -r dir/becomes-file; echo file >dir/becomes-file
rm -r tree
: >empty
mkdir -p empty-dir/inside
perl -e 'print pack("C*", 0 .. 255) x 700' >binary
ln binary hard-link
ln -s nowhere dangling; ln -s dir link-to-dir
perl -e 'for my $name ("new\nline", "ta\tb", "quo\"te'\''s", "\xff\xfe", "100%25", " lead ",
  "ünï", ".wh.hidden", "-rf", "a" x 200) {
    open my $file, ">", "odd-" . $name or die; print $file "odd\n"; close $file }'
perl -e 'my $path = "long"; for (1 .. 12) { mkdir $path; $path .= "/" . "d" x 100 }
  open my $file, ">", substr($path, 0, 900) or die; print $file "deep\n"'
"""
LIST = r"""
find . -printf '%P\0%y\0%m\0%l\0' >/out/names
find . -type f -print0 | sort -z | xargs -0 sha256sum -z >/out/sums
sort -z /out/names | tr '\0' '\n' | sed 's/^/|/' >/out/sorted
"""


def listing(kit: Any, runner: Any, work: Any) -> dict[bytes, tuple[bytes, ...]]:
    """What the command itself sees: kind, mode, target and hash of every path."""
    result = runner.execute(work)
    assert result.record["exit_code"] == 0, runner.content(work, result, "stderr")
    fields = runner.content(work, result, "/out/names").split(b"\0")[:-1]
    found = {
        fields[i]: (fields[i + 1], b"" if fields[i + 1] == b"d" else fields[i + 2], fields[i + 3])
        for i in range(0, len(fields), 4)
    }
    for line in runner.content(work, result, "/out/sums").split(b"\0")[:-1]:
        name = line[66:].removeprefix(b"./")
        found[name] = (*found[name], line[:64])
    return found


def test_applied_elsewhere_a_delivery_makes_the_same_tree(host: Any, kit: Any) -> None:
    agent = kit.work(f"set -e\n{CHANGE}\n{LIST}", files=BEFORE, paths=["/out"])
    agent.request["directories"] = ["/out"]
    wanted = listing(kit, host, agent)
    result = host.wait(agent)
    delivery = result.delivery
    assert delivery["refused"] == []
    changed = {item["path"] for item in delivery["changes"]}
    assert {"changed", "deleted", "mode", "odd-%FF%FE", "odd-100%2525", "odd-new\nline"} <= changed
    assert "dir/untouched" not in changed
    hashes = [i["after"]["sha256"] for i in delivery["changes"] if (i["after"] or {}).get("sha256")]
    blobs = host.objects(agent, sorted(set(hashes)))
    grader = kit.work(
        f"set -e\n{LIST}",
        files=BEFORE,
        changes=delivery["changes"],
        blobs=blobs,
        paths=["/out"],
        directories=["/out"],
    )
    assert listing(kit, host, grader) == wanted


def test_a_grader_finds_nothing_but_the_delivery_and_its_own_inputs(host: Any, kit: Any) -> None:
    agent = kit.work(
        "echo 1 >/logs/verifier/reward.txt; echo x >/tmp/left; echo y >/out; echo z >file",
        directories=["/logs/verifier"],
    )
    delivery = host.execute(agent).delivery
    assert [item["path"] for item in delivery["changes"]] == ["file"]
    sha256 = delivery["changes"][0]["after"]["sha256"]
    grader = kit.work(
        "ls -A /logs/verifier /tmp; test ! -e /out; ls",
        changes=delivery["changes"],
        blobs=host.objects(agent, [sha256]),
        directories=["/logs/verifier"],
    )
    result = host.execute(grader)
    assert host.content(grader, result, "stdout") == b"/logs/verifier:\n\n/tmp:\nfile\n"


def test_what_is_excluded_or_too_large_is_not_delivered_but_named(host: Any, kit: Any) -> None:
    work = kit.work("mkdir .git; echo x >.git/x; head -c 2000 /dev/zero >large; echo y >.gitx")
    work.request["capture"]["max_file_bytes"] = 1000
    delivery = host.execute(work).delivery
    assert [item["path"] for item in delivery["changes"]] == [".gitx"]
    assert delivery["refused"] == [{"path": "large", "size": 2000}]


@pytest.mark.parametrize(
    "git",
    [
        "echo 1111111111111111111111111111111111111111 >.git/refs/heads/main",
        "cp later-index .git/index",
        "echo ref: refs/heads/other >.git/HEAD; cp .git/refs/heads/main .git/refs/heads/other",
        "echo 2222222222222222222222222222222222222222 >.git/refs/heads/main; rm .git/index",
        "rm -r .git",
        "rm -r .git; echo gitdir: /elsewhere >.git",
    ],
    ids=["committed", "staged", "branched", "reset", "removed", "linked"],
)
def test_what_git_says_about_the_work_does_not_matter(host: Any, kit: Any, git: str) -> None:
    """PAT-01: work that is committed, staged or on another branch is work all the same."""
    repository = {
        ".git/HEAD": b"ref: refs/heads/main\n",
        ".git/refs/heads/main": b"0" * 40 + b"\n",
        ".git/index": b"DIRC",
        "later-index": b"DIRC later",
        "file": b"before\n",
    }
    work = kit.work(f"set -e; echo after >file; echo new >new; {git}", files=repository)
    result = host.execute(work)
    assert result.record["exit_code"] == 0
    assert [item["path"] for item in result.delivery["changes"]] == ["file", "new"]


def test_a_command_that_changes_nothing_delivers_nothing(host: Any, kit: Any) -> None:
    work = kit.work("touch a; chmod 700 dir; echo a >a; chmod 644 a", files={"a": b"a\n"})
    assert host.execute(work).delivery == {"changes": [], "refused": []}


def test_a_secret_is_replaced_wherever_it_lies(host: Any, kit: Any) -> None:
    key = b"sk-0123/456789+abcdef0123456789"
    command = """\
key=$(sed 's/.*"\\(sk-[^"]*\\)".*/\\1/' /home/agent/auth.json)
perl -e '$n = 1048576 - 10; print "x" x $n, $ARGV[0], "y" x 100' "$key" >across-a-border
echo "$key" >&2; cat /home/agent/auth.json
printf %s "$key" | base64 >whole.b64; base64 /home/agent/auth.json >file.b64
perl -e '$ARGV[0] =~ s/([^A-Za-z0-9_.~-])/sprintf "%%%02X", ord $1/ge; print "?key=$ARGV[0]&x=1"' \\
  "$key" >address
printf '%s\\n' "x$key" | base64 -w 0 >&2"""
    work = kit.work(command, secret=b'{"OPENAI_API_KEY": "%s"}' % key, user=1000)
    result = host.execute(work)
    objects = host.objects(work, list(result.receipt("exported")["objects"]))
    assert not any(key in content for content in objects.values())
    change = result.delivery["changes"][0]
    assert change["path"] == "across-a-border"
    size = 1048576 - 10
    assert objects[change["after"]["sha256"]] == b"x" * size + b"[REDACTED]" + b"y" * 100
    assert host.content(work, result, "stdout") == b"[REDACTED]"
    assert result.receipt("exported")["redactions"] == 7
    left = {
        item["path"]: objects[item["after"]["sha256"]] for item in result.delivery["changes"][1:]
    }
    assert left["address"] == b"?key=[REDACTED]&x=1"
    assert left["file.b64"].count(b"[REDACTED]") == left["whole.b64"].count(b"[REDACTED]") == 1
    plain = b64encode(key), b64encode(b"x" + key + b"\n")
    assert not any(part[4:40] in content for part in plain for content in objects.values())
    for path in (host.root / "executions" / work.uuid).rglob("*"):
        assert not path.is_file() or key not in path.read_bytes()


@pytest.fixture(scope="module")
def odd_image(kit: Any) -> Iterator[str]:
    """An image whose workspace is a link to a tree of hard links, odd names and many files."""
    name = f"xgent-odd-{uuid4().hex[:12]}"
    script = r"""set -e
mkdir -p /srv/real/sub; ln -s /srv/real /app; cd /srv/real
echo one >one; ln one sub/two; ln one three; mkfifo pipe
perl -e 'open my $file, ">", "odd-\xff\n\t\"" or die; print $file "odd\n"'
mkdir many; cd many; seq 1 3000 | xargs touch"""
    kit.engine("run", "--name", name, kit.image, "sh", "-c", script)
    image = kit.engine("commit", name)
    kit.engine("rm", name)
    yield image
    kit.engine("rmi", "-f", image)


def test_a_workspace_of_the_image_behind_a_link_is_used_where_it_lies(
    host: Any, kit: Any, odd_image: str
) -> None:
    command = "pwd -P; cat sub/two three /srv/real/one; ls many | wc -l; echo 2 >sub/two; rm many/7"
    work = kit.work(command, from_image="/app", image=odd_image)
    result = host.execute(work)
    assert host.content(work, result, "stdout") == b"/srv/real\none\none\none\n3000\n"
    assert result.receipt("staged")["workspace_path"] == "/srv/real"
    assert [item["path"] for item in result.delivery["changes"]] == ["many/7", "sub/two"]
    assert kit.engine("ps", "-aq", "--filter", "label=xgent.image") == ""


def test_an_image_with_a_device_in_its_workspace_is_refused_before_the_start(
    host: Any, kit: Any
) -> None:
    name = f"xgent-device-{uuid4().hex[:12]}"
    script = "mkdir /devices; mknod /devices/null c 1 3"
    kit.engine("run", "--name", name, kit.image, "sh", "-c", script)
    image = kit.engine("commit", name)
    kit.engine("rm", name)
    try:
        work = kit.work("true", from_image="/devices", image=image)
        assert host.execute(work).receipt("failed")["cause"] == "device_file"
        assert work.starts() == 0
        host.clean(work)
    finally:
        kit.engine("rmi", "-f", image)
