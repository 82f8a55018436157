"""The check of the agent's sandbox: what it tries in a container, and what its answers mean.

It calls no model (requirements E3, E5). Every answer is one line, `fact NAME VALUE` or
`check NAME ok|failed`; the command fails when a check does.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field

from xgent_evolve.canonical import Json
from xgent_evolve.harbor import codex
from xgent_evolve.spec.runtime import Runtime

_AROUND = """\
first() { IFS= read -r line 2>/dev/null <"$1" || line=${line:-}; echo "$line"; line=; }
inside() { readlink "/proc/self/ns/$1" 2>/dev/null; }
fact() { [ -z "$2" ] || echo "fact $1 $2"; }
fact architecture "$(uname -m 2>/dev/null)"
fact confinement "$(first /proc/self/attr/current)"
"""
"""What is read in the container, outside of the sandbox."""

_WITHIN = """\
export PATH=@PATH@ HOME=/tmp LC_ALL=C
failed=0
fact() { [ -z "$2" ] || echo "fact $1 $2"; }
check() {
    what=$1 answer=failed
    shift
    if "$@" >/dev/null 2>&1; then answer=ok; else failed=1; fi
    echo "check $what $answer"
}
absent() { ! test -e "$1"; }
written() { echo probe >.xgent-probe && rm .xgent-probe; }
apart() { test -z "$2" || test "$2" != "$(readlink "/proc/self/ns/$1")"; }
no_interface() {
    while read -r name _; do
        case $name in Inter* | face* | lo:*) ;; *) return 1 ;; esac
    done </proc/net/dev
}
no_socket() {
    command -v bash || return 0
    case $(bash -c 'exec 3<>/dev/tcp/127.0.0.1/9 && echo Refused' 2>&1) in
    *[Rr]efused*) return 1 ;;
    esac
}
no_network() { apart net "$1" && no_interface && no_socket; }
while read -r name value; do
    case $name in
    Seccomp:) fact seccomp_mode "$value" ;;
    NoNewPrivs:) fact no_new_privileges "$value" ;;
    CapEff:) fact capabilities "$value" ;;
    esac
done </proc/self/status
check input_read cat @INPUT@
check workspace_write written
check credential_hidden absent @HOME@/auth.json
check configuration_hidden absent @HOME@/config.toml
check sessions_hidden absent @HOME@/sessions
check control_hidden absent /xgent/plan.sh
check user_namespace apart user "$1"
check process_namespace apart pid "$2"
check network_closed no_network "$3"
if command -v npm >/dev/null 2>&1; then
    check npm_runs npm --version
    fact npm "$(npm --version 2>/dev/null)"
fi
[ "$failed" = 0 ] && echo sandbox-ok
"""
"""What is tried in the sandbox; its arguments are the namespaces around it."""

_FIRST = "mkdir -p @HOME@/sessions && echo '{}' >@AUTH@ || exit 1\n"
"""Something to find, where the driver has its sessions and its credential."""


def probe_command(runtime: Runtime, workdir: str, profile: str, *, path: str) -> bytes:
    """Return the command that proves the sandbox; `path` is the PATH of the image."""
    within = (
        _WITHIN.replace("@PATH@", shlex.quote(path))
        .replace("@INPUT@", f"{codex.TASK_INPUT}/task/instruction.md")
        .replace("@HOME@", codex.CODEX_HOME)
    )
    words = ["sandbox", "-P", profile, "--", "/bin/sh", "-c", within, "probe"]
    arguments = '"$(inside user)" "$(inside pid)" "$(inside net)"'
    first = _FIRST.replace("@AUTH@", codex.CREDENTIAL).replace("@HOME@", codex.CODEX_HOME)
    start = f"cd {shlex.quote(workdir)} && exec {codex.driver(runtime, words)} {arguments}\n"
    return (_AROUND + first + start).encode()


@dataclass(frozen=True, slots=True)
class SandboxReport:
    """What one check found."""

    facts: dict[str, str] = field(default_factory=dict[str, str])
    """architecture, confinement (AppArmor's word for it), seccomp_mode, no_new_privileges,
    capabilities, npm; those that could be read."""
    checks: dict[str, bool] = field(default_factory=dict[str, bool])
    """Whether each thing that was tried ended as it should."""

    def document(self) -> dict[str, Json]:
        """Return the JSON form."""
        return {"facts": {**self.facts}, "checks": {**self.checks}}


def read_report(stdout: bytes) -> SandboxReport:
    """Return what a check printed; lines of anything else are passed over. Pure."""
    report = SandboxReport()
    for line in stdout.decode("utf-8", "replace").split("\n"):
        word, _, rest = line.partition(" ")
        name, _, value = rest.partition(" ")
        if word == "fact" and value:
            report.facts.setdefault(name, value.strip()[:200])
        elif word == "check" and value in ("ok", "failed"):
            report.checks[name] = value == "ok"
    return report


def failures(report: SandboxReport, runtime: Runtime) -> list[str]:
    """Return in words what does not hold; nothing when all does, or when nothing was printed."""
    found = [f"{name} failed" for name, held in report.checks.items() if not held]
    wanted = runtime.apparmor_profile
    if wanted is not None and report.checks:
        inside = report.facts.get("confinement", "")
        name, _, mode = inside.partition(" ")
        if name != wanted or (name != "unconfined" and mode != "(enforce)"):
            found.append(f"AppArmor has {inside or 'nothing'} in force, not {wanted}")
    return found
