"""task.toml: what is honoured, and what is refused by name (SPEC-02, requirement M1)."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from xgent_evolve.tasks.findings import Findings
from xgent_evolve.tasks.folder import folder_faults
from xgent_evolve.tasks.prompt import prompt_of
from xgent_evolve.tasks.settings import TaskSettings, read_settings
from xgent_evolve.tasks.sizes import find_mib


def read(text: str | bytes) -> tuple[TaskSettings, Findings]:
    findings = Findings()
    content = text.encode() if isinstance(text, str) else text
    return read_settings(content, "task.toml", findings), findings


def faults(text: str | bytes) -> list[tuple[str, str]]:
    """Return code and place of every fault."""
    return [(fault.code, fault.where) for fault in read(text)[1].faults]


def test_an_empty_file_means_all_defaults() -> None:
    settings, findings = read("")
    assert settings == TaskSettings()
    assert findings == Findings()


def test_everything_that_is_honoured_arrives() -> None:
    settings, findings = read(
        """
        schema_version = "1.4"
        artifacts = ["out.txt", {source = "/app/log"}]
        [task]
        name = "team/task"
        authors = [{name = "A", email = "a@example.invalid"}]
        [metadata]
        anything = {goes = [1, 2.5, 1979-05-27]}
        [agent]
        timeout_sec = 120.5
        [verifier]
        timeout_sec = 60
        env = {B = "${not} a template", A = ""}
        environment_mode = "shared"
        user = "root"
        collect = []
        [solution.env]
        S = "s"
        [environment]
        docker_image = "name:1"
        workdir = "/app"
        cpus = 1.5
        memory_mb = 8192
        storage_mb = 10240
        build_timeout_sec = 600.0
        gpus = 0
        os = "linux"
        network_mode = "no-network"
        mcp_servers = []
        env = {GREETING = "hello"}
        """
    )
    assert findings == Findings()
    assert settings == TaskSettings(
        docker_image="name:1",
        workdir="/app",
        cpus=Decimal("1.5"),
        memory_mb=8192,
        storage_mb=10240,
        agent_timeout_s=121,
        verifier_timeout_s=60,
        environment={"GREETING": "hello"},
        verifier_environment={"A": "", "B": "${not} a template"},
        solution_environment={"S": "s"},
        artifacts=("out.txt", "/app/log"),
    )


@pytest.mark.parametrize(
    ("size", "mib"),
    [
        ("8G", 8192),
        ("8g", 8192),
        ("8GB", 8192),
        ("8 GiB", 8192),
        ("2.5g", 2560),
        ("512M", 512),
        ("1T", 1 << 20),
        ("65536K", 64),
        ("1000K", None),
        ("0m", None),
        ("-1g", None),
        ("", None),
        ("abc", None),
        ("8", None),
        ("1e3M", None),
        ("٣G", None),
        ("G", None),
        ("8GG", None),
    ],
)
def test_sizes_are_powers_of_1024_and_whole(size: str, mib: int | None) -> None:
    assert find_mib(size) == mib


@pytest.mark.parametrize("size", ["2.51g", "-1g", "0m", "", "abc", "8", "32M"])
def test_memory_that_is_no_amount_is_refused(size: str) -> None:
    assert faults(f'[environment]\nmemory = "{size}"') == [
        ("E_SPEC_RESOURCE", "task.toml:2: environment.memory")
    ]


def test_both_spellings_of_memory_have_one_meaning() -> None:
    assert read('[environment]\nmemory = "8G"')[0] == read("[environment]\nmemory_mb = 8192")[0]
    assert faults('[environment]\nmemory = "8G"\nmemory_mb = 8192') == []
    assert faults('[environment]\nmemory = "8G"\nmemory_mb = 2048') == [
        ("E_SPEC_RESOURCE", "task.toml:2: environment.memory")
    ]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("memory_mb = 0", "E_SPEC_RESOURCE"),
        ("memory_mb = -5", "E_SPEC_RESOURCE"),
        ("memory_mb = 63", "E_SPEC_RESOURCE"),
        ("memory_mb = 1e3", "E_SPEC_RESOURCE"),
        ("memory_mb = true", "E_SPEC_RESOURCE"),
        (f"memory_mb = {'9' * 400}", "E_SPEC_RESOURCE"),
        ("storage_mb = 0", "E_SPEC_RESOURCE"),
        ("cpus = 0", "E_SPEC_RESOURCE"),
        ("cpus = -1", "E_SPEC_RESOURCE"),
        ("cpus = nan", "E_SPEC_RESOURCE"),
        ("cpus = inf", "E_SPEC_RESOURCE"),
        ("cpus = 257", "E_SPEC_RESOURCE"),
        ('cpus = "2"', "E_SPEC_RESOURCE"),
        (f"cpus = 0x{'f' * 9000}", "E_SPEC_RESOURCE"),
        ("build_timeout_sec = 0", "E_SPEC_TASK_TOML"),
        ("build_timeout_sec = 86401", "E_SPEC_TASK_TOML"),
        ("build_timeout_sec = true", "E_SPEC_TASK_TOML"),
        ("docker_image = 3", "E_SPEC_TASK_TOML"),
        ('workdir = "app"', "E_SPEC_TASK_TOML"),
        ('workdir = "/"', "E_SPEC_TASK_TOML"),
        ('workdir = "/app/../etc"', "E_SPEC_TASK_TOML"),
        ("env = {A = 1}", "E_SPEC_TASK_TOML"),
        ('env = {"A B" = "x"}', "E_SPEC_TASK_TOML"),
        ('env = {KEY = "${API_KEY}"}', "E_SPEC_TASK_FEATURE"),
        ('env = {KEY = "${API_KEY:-none}"}', "E_SPEC_TASK_FEATURE"),
        ('env = {LD_PRELOAD = "/x.so"}', "E_SPEC_TASK_FEATURE"),
        ("gpus = 1", "E_SPEC_TASK_FEATURE"),
        ("gpus = false", "E_SPEC_TASK_FEATURE"),
        ('gpu_types = ["a"]', "E_SPEC_TASK_FEATURE"),
        ('os = "windows"', "E_SPEC_TASK_FEATURE"),
        ('tpu = {type = "v5"}', "E_SPEC_TASK_FEATURE"),
        ('skills_dir = "/skills"', "E_SPEC_TASK_FEATURE"),
        ('network_mode = "bridge"', "E_SPEC_TASK_FEATURE"),
        ('network_mode = "allowlist"', "E_SPEC_TASK_FEATURE"),
        ('allowed_hosts = ["a.example"]', "E_SPEC_TASK_FEATURE"),
        ("allow_internet = 1", "E_SPEC_TASK_FEATURE"),
        ('healthcheck = {command = "true"}', "E_SPEC_TASK_FEATURE"),
        ('mcp_servers = [{name = "x"}]', "E_SPEC_TASK_FEATURE"),
    ],
)
def test_each_wrong_value_of_the_environment_has_its_code_and_its_line(
    line: str, code: str
) -> None:
    key = line.partition(" ")[0]
    assert faults(f"[environment]\n{line}") == [(code, f"task.toml:2: environment.{key}")]


@pytest.mark.parametrize(
    ("text", "feature"),
    [
        ('[[steps]]\nname = "a"', "steps"),
        ('multi_step_reward_strategy = "mean"', "multi_step_reward_strategy"),
        ('[agent]\nuser = "nobody"', "agent.user"),
        ("[verifier]\nuser = 1000", "verifier.user"),
        ('[verifier]\nenvironment_mode = "separate"', "verifier.environment_mode"),
        ('[verifier.environment]\ndocker_image = "x"', "verifier.environment"),
        ('[[verifier.collect]]\ncommand = "x"', "verifier.collect"),
    ],
)
def test_a_feature_that_is_not_run_is_refused_by_its_name(text: str, feature: str) -> None:
    (fault,) = read(text)[1].faults
    assert fault.code == "E_SPEC_TASK_FEATURE"
    assert feature in fault.message
    assert fault.where.endswith(f": {feature}")


@pytest.mark.parametrize(
    "text",
    [
        "[environment",
        "environment = 3",
        b"\xff\xfe",
        "\ufefftimeout = 1",
        "a = " + "[" * 20_000,
        "a = " + "{b = " * 20_000,
        f"a = {'1' * 5000}",
        "a." * 30_000 + "a = 1",
        f"[{'a.' * 30_000}a]",
        '""."".' * 10_000 + "a = 1",
        "x" * (64 * 1024 + 1),
        "date = 2026-02-30",
        "a = 1\na = 2",
        'task = {name = "no-slash"}',
        "[metadata]\n[metadata]\n",
    ],
    ids=range(15),
)
def test_a_file_that_cannot_be_read_is_a_fault(text: str | bytes) -> None:
    assert {code for code, _ in faults(text)} == {"E_SPEC_TASK_TOML"}


def test_an_unknown_version_is_refused() -> None:
    assert faults('schema_version = "9.9"') == [
        ("E_SPEC_TASK_FEATURE", "task.toml:1: schema_version")
    ]


def test_unknown_keys_are_warned_of_with_the_nearest_known_one() -> None:
    settings, findings = read("[agent]\ntimeout_secs = 5\n[enviroment]\ncpus = 1\n")
    assert settings == TaskSettings()
    assert findings.faults == []
    assert [item.text() for item in findings.warnings] == [
        'W_TASK_UNKNOWN_KEY: the key "agent.timeout_secs" is unknown and ignored; the nearest known'
        ' key is "timeout_sec" (task.toml:2: agent.timeout_secs)',
        'W_TASK_UNKNOWN_KEY: the key "enviroment" is unknown and ignored; the nearest known key is'
        ' "environment" (task.toml:3: enviroment)',
    ]


def test_many_unknown_keys_are_counted() -> None:
    warnings = read("\n".join(f"key{number} = 1" for number in range(4000)))[1].warnings
    assert len(warnings) == 21
    assert "3980 further" in warnings[-1].message


def test_all_faults_are_told_at_once() -> None:
    text = '[agent]\nuser = "x"\ntimeout_sec = -1\n[environment]\ncpus = 0\ngpus = 2\n'
    assert [code for code, _ in faults(text)] == [
        "E_SPEC_TASK_FEATURE",
        "E_SPEC_TASK_TOML",
        "E_SPEC_RESOURCE",
        "E_SPEC_TASK_FEATURE",
    ]


def test_a_secret_in_a_variable_is_not_shown() -> None:
    fault = read('[verifier]\nenv = {KEY = "x", TOKEN = ["hunter2"]}')[1].faults[0]
    assert "hunter2" not in str(fault)


@pytest.mark.parametrize(
    ("paths", "image", "feature"),
    [
        (["environment/docker-compose.yaml"], None, "a compose file"),
        (["environment/docker-compose.yml"], None, "a compose file"),
        (["steps/a/instruction.md"], None, "steps"),
        (["trajectory.json"], None, "an earlier trajectory"),
        (["environment/data.csv", "environment/.gitkeep"], "x", "files of environment/"),
        (["environment/data.csv", "environment/Dockerfile"], "x", None),
        (["environment/data.csv"], None, None),
        (["environment/.gitkeep"], "x", None),
    ],
)
def test_files_of_the_folder_ask_for_features_too(
    paths: list[str], image: str | None, feature: str | None
) -> None:
    found = folder_faults(paths, TaskSettings(docker_image=image), "task")
    assert [fault.code for fault in found] == ["E_SPEC_TASK_FEATURE"] * (feature is not None)
    assert feature is None or feature in found[0].message


@pytest.mark.parametrize(
    ("table", "line"),
    [
        ("agent", 'network_mode = "public"'),
        ("verifier", 'network_mode = "public"'),
        ("environment", 'network_mode = "public"'),
        ("environment", "allow_internet = true"),
    ],
)
def test_a_network_that_is_permitted_is_a_warning_and_no_fault(table: str, line: str) -> None:
    _, findings = read(f"[{table}]\n{line}\n".encode())
    assert findings.faults == []
    [warning] = findings.warnings
    assert warning.code == "W_TASK_NETWORK"
    assert warning.where == f"task.toml:2: {table}.{line.partition(' ')[0]}"


REAL = {
    "acp_smoke": ["a compose file"],
    "demo_task": [],
    "hello-world-task": [],
    "multi-reward": [],
    "multi-step": ["steps", "steps"],
    "nanofirm-task": [],
    "simple-task": [],
    "skills-task": ["environment.skills_dir"],
}
"""What the collected real tasks ask for that is not run here."""


def test_each_real_task_has_its_stated_outcome(inputs: Path) -> None:
    tasks = sorted(path for path in (inputs / "tasks").iterdir() if path.is_dir())
    assert {task.name for task in tasks} == set(REAL)
    for task in tasks:
        settings, findings = read((task / "task.toml").read_bytes())
        paths = [path.relative_to(task).as_posix() for path in task.rglob("*") if path.is_file()]
        found = [*findings.faults, *folder_faults(paths, settings, task.name)]
        features = [fault.message.split(" asks for ")[1].split(", which")[0] for fault in found]
        assert features == REAL[task.name], task.name
        told = [warning.code for warning in findings.warnings]
        assert told == ["W_TASK_NETWORK"] * (task.name == "multi-step"), task.name


@pytest.mark.parametrize(
    ("instruction", "prompt"),
    [
        ("Do it.\n", "Do it.\n"),
        ("<!-- harbor-canary GUID 1 -->\n\nDo it.\n", "Do it.\n"),
        ("# CANARY guid\n<!-- canary -->\n\n\n# Title\n", "# Title\n"),
        ("Do it.\n# canary\n", "Do it.\n# canary\n"),
        ("# Feed the bird\n", "# Feed the bird\n"),
        ("<!-- canary -->", ""),
        ("A canary sings.\n", "A canary sings.\n"),
    ],
)
def test_leading_canary_lines_are_no_part_of_the_prompt(instruction: str, prompt: str) -> None:
    assert prompt_of(instruction) == prompt
