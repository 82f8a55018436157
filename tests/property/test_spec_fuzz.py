"""Twenty thousand broken JobSpecs: each ends in a spec or in complete faults, and soon.

The mutations are drawn from seeds alone, so a failure names the seed that makes it again.
"""

from __future__ import annotations

import copy
import json
import re
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest

from xgent_evolve.cli.main import main
from xgent_evolve.errors import SpecError
from xgent_evolve.spec.load import load_spec

EXAMPLES = Path(__file__).parents[2] / "examples"
CHUNKS, CHUNK = 20, 1000
FILLINGS = {
    "TARGET_REPO": "repo",
    "TARGET_GIT_SHA": "a" * 40,
    "REMOTE_ROOT": "/srv/x",
    "SSH_HOST": "host",
    "DOCKER_VERSION": "28",
    "CODEX_ARCHITECTURE": "x86_64",
    "INFORMATION_CUTOFF": "2026-01-31",
    "MIN_GAIN": "0.05",
    "MIN_GROUPS": "6",
}

type Path_ = tuple[str | int, ...]


def filled(name: str) -> str:
    def value(match: re.Match[str]) -> str:
        image = f"sha256:{'0' * 64}"
        return FILLINGS.get(match[1], image if match[1].endswith("DIGEST") else match[1].lower())

    text = (EXAMPLES / name).read_text(encoding="utf-8")
    text = re.sub(r'"<(MIN_GAIN|MIN_GROUPS)>"', lambda match: FILLINGS[match[1]], text)
    return re.sub(r"<([A-Z_]+)>", value, text)


TEXTS = [filled(name) for name in ("skill-compare.json", "quality-calibration.json")]
SEARCH = json.loads(TEXTS[0]) | {
    "mode": "search",
    "optimizer": {
        "strategy": "rrsi",
        "model": "m",
        "effort": "high",
        "method_path": "method.md",
        "method_sha256": "0" * 64,
        "rrsi": {"T": 3, "delta": 0.02},
    },
}
SEARCH["budget"]["max_candidates"] = 2
QUALITY = json.loads(TEXTS[1])
QUALITY["authority"]["allow_typesafe_auxiliary"] = True
QUALITY["budget"]["max_auxiliary_calls"] = 4
QUALITY["evaluation"]["auxiliary"] = {
    "provider": "typesafe",
    "model": "jev-1.14.0",
    "criterion_ids": ["scope"],
    "rubric_path": "task_one_rubric",
    "calibration_path": "calibration_manifest",
    "authentication": {"source": "controller_env", "name": "KEY"},
}
STUDIES: list[dict[str, Any]] = [json.loads(TEXTS[0]), SEARCH, QUALITY]
BASES = [json.dumps(study, separators=(",", ":")) for study in STUDIES]

NUMBERS = ["1e999", "-1e999", "1e-999", "9" * 400, "9223372036854775808", "-0", "0.1e1", "1E+2"]
NUMBERS += [
    "NaN",
    "-Infinity",
    "nan",
    "+1",
    "01",
    ".5",
    "5.",
    "0x10",
    "1_000",
    "--1",
    "1e",
    "Ⅳ",
    "٣",
]
STRINGS = [
    "",
    " ",
    "\0",
    "\x1b[31m",
    "\u202e",
    "\ufeff",
    "é",
    "e\u0301",
    "\U0001d54f" * 40,
    "x" * 100_000,
]
STRINGS += [
    "../up",
    "/abs",
    "~/home",
    "a//b",
    "a/./b",
    ".git/config",
    "a\\b",
    "<NAME>",
    "null",
    "-",
]
STRINGS += [
    "\u017ftrategy",
    "\uff29\uff24",
    "\u0130",
    "ﬀ",
    "\U000e0001",
    "a" * 256,
    "a/" * 3000,
    "$",
    "$schema",
]
VALUES: list[Any] = [None, True, False, 0, -1, 1, 2, 1.5, 10**18, 1e300, [], {}, [[]], {"": 0}]
ESCAPES = [r"\ud800", r"\udc00\ud800", r"\u0000", r"\x41", r"\u12", "\\", '\\"', r"\ud83d\ude00"]


def places(value: object, path: Path_ = ()) -> list[Path_]:
    found = [path] if path else []
    match value:
        case dict():
            items = list(value.items())
        case list():
            items = list(enumerate(value))
        case _:
            return found
    for key, item in items:
        found += places(item, (*path, key))
    return found


def at(value: Any, path: Path_) -> Any:
    for element in path:
        value = value[element]
    return value


PLACES = [places(study) for study in STUDIES]


def restructured(random: Random) -> str:
    """Return a study with values swapped, moved, removed, renamed, repeated or added."""
    number = random.randrange(len(STUDIES))
    study = json.loads(BASES[number])
    for _ in range(random.randint(1, 4)):
        path = random.choice(PLACES[number])
        try:
            parent, last = at(study, path[:-1]), path[-1]
            value = parent[last]
        except (KeyError, IndexError, TypeError):
            continue  # an earlier mutation removed it
        if isinstance(parent, str):
            continue
        match random.randrange(9):
            case 0:
                parent[last] = random.choice(VALUES)
            case 1:
                parent[last] = random.choice(STRINGS)
            case 2:
                del parent[last]
            case 3:
                other = random.randrange(len(STUDIES))
                parent[last] = copy.deepcopy(at(STUDIES[other], random.choice(PLACES[other])))
            case 4 if isinstance(parent, dict):
                parent[typo(str(last), random)] = parent.pop(last)
            case 5 if isinstance(parent, list):
                parent.extend([value] * random.choice([1, 2, 50]))
            case 6 if isinstance(parent, dict):
                parent[random.choice(STRINGS)] = random.choice(VALUES)
            case 7:
                parent[last] = [value] if random.random() < 0.5 else {str(last): value}
            case _:
                study["schema_version"] = random.choice([1, 2, 1, 2, 3, "1", True, 2.0, None])
    return json.dumps(study, separators=(",", ":"), ensure_ascii=random.random() < 0.5)


def typo(word: str, random: Random) -> str:
    index = random.randrange(len(word) + 1)
    return random.choice(
        [
            word[:index] + word[index + 1 :],
            word[:index] + "x" + word[index:],
            word.upper(),
            word * 2,
        ]
    )


def retyped(random: Random) -> str:
    """Return a text with a number, a string, a key or a bracket replaced as text."""
    text = random.choice(BASES)
    match random.randrange(6):
        case 0:
            spots = list(re.finditer(r"(?<=:)[0-9.]+", text))
            new = random.choice(NUMBERS)
        case 1:
            spots = list(re.finditer(r'(?<=")[a-z-]+(?=")', text))
            new = random.choice(ESCAPES)
        case 2:
            spots = list(re.finditer(r'"[a-z_]+":', text))
            new = (spot := random.choice(spots))[0] + "0," + spot[0]  # the key twice
        case 3:
            spots = list(re.finditer(r"(?<=:)[0-9]+", text))
            depth = random.choice([5, 63, 64, 65, 1000, 100_000])
            new = random.choice(["[" * depth, "[" * depth + "]" * depth, '{"a":' * depth])
        case 4:
            spots = list(re.finditer(r"[\[\]{},:]", text))
            new = random.choice([*"[]{},:", "", " // ", "/* */", "\u00a0", "\x00", "\n\n"])
        case _:
            spots = list(re.finditer(r'"[^"]*"', text))
            new = random.choice(["'x'", "True", "None", '"', "x", '"\t"', '"\n"', "$"])
    spot = random.choice(spots)
    return text[: spot.start()] + new + text[spot.end() :]


def rebyted(random: Random) -> bytes:
    """Return the bytes of a text with some flipped, cut, doubled, or taken from another."""
    content = bytearray(random.choice(BASES).encode())
    for _ in range(random.choice([1, 1, 2, 8])):
        start = random.randrange(len(content) + 1)
        end = min(len(content), start + random.choice([1, 1, 2, 16, 200]))
        match random.randrange(6):
            case 0 if start < len(content):
                content[start] ^= 1 << random.randrange(8)
            case 1:
                content[start:start] = random.randbytes(random.randint(1, 4))
            case 2:
                del content[start:end]
            case 3:
                content[start:start] = content[start:end]
            case 4:
                content[start:end] = random.choice(BASES).encode()[start:end]
            case _:
                content[start:start] = random.choice(
                    [b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xc0\xaf"]
                )
    if random.random() < 0.05:
        del content[random.randrange(len(content) + 1) :]
    return bytes(content)


def mutant(seed: int) -> bytes:
    """Return the JobSpec of a seed."""
    random = Random(seed)
    match random.randrange(10):
        case 0 | 1 | 2:
            return rebyted(random)
        case 3 | 4 | 5:
            return retyped(random).encode("utf-8", "surrogatepass")
        case _:
            return restructured(random).encode("utf-8", "surrogatepass")


def refusal(path: Path) -> SpecError | None:
    """Load a JobSpec and return its refusal; whatever else is raised fails the test."""
    try:
        load_spec(path)
    except SpecError as error:
        return error
    return None


@pytest.mark.timeout(120)
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_a_mutant_ends_in_a_spec_or_in_complete_faults(chunk: int, tmp_path: Path) -> None:
    path = tmp_path / "job.json"
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        path.write_bytes(mutant(seed))
        error = refusal(path)
        assert error is None or error.exit_code == 2, seed
        for fault in error.faults if error else ():
            assert fault.code.startswith("E_SPEC"), seed
            assert fault.where.startswith(str(path)), seed
            assert all((fault.message, fault.expected, fault.found, fault.fix)), (seed, fault)
            assert len(fault.found) < 1000, seed


def test_the_mutants_are_the_same_everywhere_and_of_every_kind(tmp_path: Path) -> None:
    codes: set[str] = set()
    path = tmp_path / "job.json"
    for seed in range(400):
        assert mutant(seed) == mutant(seed)
        path.write_bytes(mutant(seed))
        error = refusal(path)
        codes |= {fault.code for fault in error.faults} if error else {"valid"}
    assert codes >= {
        "valid",
        "E_SPEC_READ",
        "E_SPEC_SYNTAX",
        "E_SPEC_DUPLICATE_KEY",
        "E_SPEC_NUMBER",
        "E_SPEC_TYPE",
        "E_SPEC_VALUE",
        "E_SPEC_UNKNOWN_KEY",
        "E_SPEC_MISSING_KEY",
        "E_SPEC_VERSION",
    }


@pytest.mark.timeout(120)
def test_the_command_ends_in_an_exit_class_and_without_a_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A few dozen command lines, every eighth in a process of its own."""
    for seed in range(0, CHUNKS * CHUNK, 400):
        path = tmp_path / "job.json"
        path.write_bytes(mutant(seed))
        words = ["validate", "--spec", str(path), *(["--json"] if seed % 3 else [])]
        if seed % 3200:
            monkeypatch.setattr("sys.argv", ["xgent-evolve", *words])
            code, (out, err) = main(), capsys.readouterr()
        else:
            command = [sys.executable, "-m", "xgent_evolve", *words]
            answer = subprocess.run(command, capture_output=True, text=True, check=False)
            code, out, err = answer.returncode, answer.stdout, answer.stderr
        assert code in {0, 2}, (seed, err)
        assert "Traceback" not in out + err, seed
        assert ("E_" in out + err) == (code == 2), seed


def huge(part: str) -> str:
    """Return a study in which one part has as many items as fit into the limits of the text."""
    study = copy.deepcopy(STUDIES[0])
    many = 60_000
    match part:
        case "unknown keys":
            study |= {f"key_{number}": 0 for number in range(many)}
        case "paths":
            study["source"]["paths"] = [f"skill_path/{number}" for number in range(many)]
            study["authority"]["export_paths"] = [f"other/{number}" for number in range(many)]
        case "allowed paths":
            study["source"]["paths"] = [f"skill_path/{number}" for number in range(10_000)]
            study["authority"]["export_paths"] = [f"other/{number}" for number in range(10_000)]
        case "views":
            study["cases"][0] |= {
                "public_paths": ["instruction.md", *(f"p/{number}" for number in range(999))],
                "grader_paths": ["tests", *(f"p/{number}/x" for number in range(999))],
            }
            study["cases"] *= 20
        case "conditions":
            study["conditions"] *= 5000
        case "cases":
            study["cases"] *= 1500
        case "overrides":
            texts = {f"skill_path/{number}": "x" for number in range(many)}
            study["conditions"][2]["overrides"] = texts
        case _:
            return "[" + "1," * 8_000_000 + "1]"
    return json.dumps(study)


PARTS = ["unknown keys", "paths", "allowed paths", "views", "conditions", "cases", "overrides"]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("part", [*PARTS, "array of millions"])
def test_a_huge_study_ends_soon_and_tells_a_readable_number_of_faults(
    part: str, tmp_path: Path
) -> None:
    path = tmp_path / "job.json"
    path.write_text(huge(part))
    error = refusal(path)
    assert error is not None
    assert len(error.faults) <= 201
    assert all(len(fault.expected) < 2000 for fault in error.faults)
