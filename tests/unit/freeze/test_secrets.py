"""SEC-01: what looks like a secret does not leave the machine, and no message repeats it.

Every token here is drawn at random in the form of its issuer; none was ever issued.
"""

from __future__ import annotations

import base64
import json
import random
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xgent_evolve.errors import RefusedError
from xgent_evolve.freeze.build import build_protocol
from xgent_evolve.freeze.secrets import SecretSearch, find_secrets
from xgent_evolve.store.memory import MemoryBlobs
from xgent_evolve.store.rundir import RunDir

DICE = random.Random(7)
ALNUM = string.ascii_letters + string.digits


def drawn(length, alphabet=ALNUM):
    return "".join(DICE.choices(alphabet, k=length))


def base64url(document):
    return base64.urlsafe_b64encode(json.dumps(document).encode()).decode().rstrip("=")


def private_key(kind="RSA "):
    body = "\n".join(drawn(64) for _ in range(12))
    return f"-----BEGIN {kind}PRIVATE KEY-----\n{body}\n-----END {kind}PRIVATE KEY-----\n"


TOKENS = {
    "OpenAI key": "sk-" + drawn(48),
    "OpenAI key, project": "sk-proj-" + drawn(60) + "-" + drawn(40) + "_" + drawn(20),
    "Anthropic key": "sk-ant-api03-" + drawn(90),
    "GitHub token": "ghp_" + drawn(36),
    "GitHub token, server": "ghs_" + drawn(36),
    "GitHub token, fine": "github_pat_" + drawn(22) + "_" + drawn(59),
    "AWS access key": "AKIA" + drawn(15, string.ascii_uppercase) + "7",
    "Slack token": f"xoxb-{drawn(12, '2345679')}-{drawn(12, '2345679')}-{drawn(24)}",
    "npm token": "npm_" + drawn(36),
    "GitLab token": "glpat-" + drawn(20),
    "Google key": "AIza" + drawn(35),
    "Hugging Face token": "hf_" + drawn(34),
    "Stripe key": "sk_live_" + drawn(24),
    "JSON Web Token": f"{base64url({'alg': 'HS256', 'typ': 'JWT'})}."
    f"{base64url({'sub': '8817', 'scope': 'all'})}.{drawn(43)}",
}


@pytest.mark.parametrize("kind", TOKENS)
@pytest.mark.parametrize("around", ["{}", "key = '{}'\n", "KEY={}", "Bearer {} and more", "({})"])
def test_a_token_of_a_known_form_is_found_with_its_line(kind, around):
    content = "first\nsecond\n" + around.format(TOKENS[kind]) + "\nlast\n"
    (found,) = find_secrets("src/any.py", content.encode())
    assert found.line == 3
    assert found.kind == kind.partition(",")[0]


@pytest.mark.parametrize("kind", ["", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "])
def test_a_private_key_is_found_in_pem_and_in_a_service_account(kind):
    key = private_key(kind)
    assert [item.kind for item in find_secrets("a", b"x\n" + key.encode())] == ["private key"]
    account = json.dumps({"type": "service_account", "private_key": key}, indent=1)
    assert [item.line for item in find_secrets("a.json", account.encode())] == [3]


VALUE = drawn(20)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (".env", f"PORT=80\nDB_PASSWORD={VALUE}\n"),
        (".env.production", f"export API_KEY='{VALUE}'\n"),
        ("prod.env", f"URL=postgres://admin:{VALUE}@db/x\n"),
        ("auth.json", json.dumps({"OPENAI_API_KEY": VALUE})),
        ("auth.json", json.dumps({"OPENAI_API_KEY": None, "tokens": {"access_token": VALUE}})),
        (".netrc", f"machine a login b password {VALUE}\n"),
        (".pypirc", f"[pypi]\nusername = u\npassword = {VALUE}\n"),
        (".npmrc", f"//registry/:_authToken={VALUE}\n"),
        (".git-credentials", f"https://user:{VALUE}@host\n"),
    ],
)
def test_a_value_in_a_file_that_holds_credentials_is_found(name, content):
    assert find_secrets(f"deep/er/{name}", content.encode())
    assert not find_secrets("deep/er/text.md", content.encode())


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.md", "export OPENAI_API_KEY=sk-...\n"),
        ("a.md", "sk-your-key-goes-here-please-and-thanks-0001"),
        ("a.md", "AKIAIOSFODNN7EXAMPLE"),
        ("a.md", "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"),
        ("a.md", "ghp_" + "a1" * 18),
        ("a.py", "sk-qa-canary-1"),
        ("a.css", ".sk-estimator-doc-link-parallel-item-hidden {}"),
        ("a.pem", "-----BEGIN PRIVATE KEY-----\nMIIE...\n-----END PRIVATE KEY-----\n"),
        ("a.lock", f'"integrity": "sha512-{drawn(86)}=="'),
        ("a.txt", "commit 0123456789abcdef0123456789abcdef01234567"),
        (".env", "PORT=3000\nSECRET=\nAPI_KEY=${API_KEY}\nTOKEN=<your token>\nPASSWORD=changeme\n"),
        (".env.example", f"API_KEY={VALUE}\n"),
        ("auth.json", json.dumps({"OPENAI_API_KEY": None})),
        ("auth.json", "[]"),
        (".npmrc", "//registry/:_authToken=${NPM_TOKEN}\n"),
        (
            "jwt.md",
            f"{base64url({'alg': 'HS256'})}."
            "eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiaWF0IjoxNTE2MjM5MDIyfQ."
            f"{drawn(43)}",
        ),
    ],
)
def test_placeholders_and_what_only_resembles_a_secret_are_left_alone(name, content):
    assert find_secrets(name, content.encode()) == ()


def test_files_that_are_not_text_are_not_searched():
    assert find_secrets("a.bin", b"\0" + TOKENS["GitHub token"].encode()) == ()


@given(cut=st.integers(1, 5999), lines=st.integers(0, 50))
def test_a_token_is_found_wherever_a_large_file_is_cut(cut, lines):
    content = (
        b"\n" * lines + b"word " * 600 + b"\n" + TOKENS["GitHub token"].encode() + b"\n" * 3000
    )
    search = SecretSearch()
    search.feed(content[:cut])
    search.feed(content[cut:])
    assert search.findings() == find_secrets("a", content)
    assert [item.line for item in search.findings()] == [lines + 2]


def refused(study, blobs=None):
    with pytest.raises(RefusedError) as caught:
        build_protocol(study.load(), blobs or MemoryBlobs())
    error = caught.value
    assert error.code == "E_FREEZE_SECRET"
    assert error.exit_code == 3
    told = f"{error}{error.message}{error.where}{error.expected}{error.found}{error.fix}"
    for token in TOKENS.values():
        assert token not in told
        assert token[8:24] not in told
    return error


SECRET = TOKENS["GitHub token"]


@pytest.mark.parametrize("state", ["committed", "dirty", "new"])
def test_a_secret_in_the_source_is_refused_by_file_and_line(study, state):
    study.write("src/deploy.py", f"import os\ntoken = '{SECRET}'\n" if state != "dirty" else "")
    if state == "new":
        study.spec["source"]["new_paths"] = ["src/deploy.py"]
    else:
        study.commit()
    study.write("src/deploy.py", f"import os\ntoken = '{SECRET}'\n")
    error = refused(study)
    assert error.where.endswith("src/deploy.py:2")
    assert "GitHub token" in error.found
    study.spec["authority"]["allow_secrets_in"] = ["src/deploy.py"]
    build_protocol(study.load(), MemoryBlobs())


def test_a_secret_in_an_older_base_is_refused(study):
    study.write("src/deploy.py", SECRET)
    old = study.commit()
    study.write("src/deploy.py", "")
    study.commit()
    study.spec["target"]["compatible_bases"] = [old]
    study.spec["cases"][1]["source"]["base"] = old
    assert old[:12] in refused(study).where


def test_a_secret_outside_of_the_exported_paths_does_not_matter(study):
    study.write("elsewhere/.env", f"API_KEY={SECRET}\n")
    study.commit()
    study.write("src/.env", f"API_KEY={SECRET}\n")
    build_protocol(study.load(), MemoryBlobs())


@pytest.mark.parametrize("file", ["instruction.md", "tests/data/answer.txt", "solution/solve.sh"])
def test_a_secret_in_a_task_is_refused_and_allowed_by_the_cases_name(study, file):
    (study.task / file).write_text(f"use {SECRET}\n")
    error = refused(study)
    assert error.where.endswith(f"{file}:1")
    assert f"one/{file}" in error.fix
    study.spec["authority"]["allow_secrets_in"] = [f"one/{file}"]
    build_protocol(study.load(), MemoryBlobs())
    study.spec["authority"]["allow_secrets_in"] = [f"two/{file}"]
    refused(study)


def test_a_secret_in_an_override_is_refused(study):
    overrides = study.spec["conditions"][2]["overrides"]
    overrides["skills/demo/SKILL.md"] += f"Use {SECRET}\n"
    error = refused(study)
    assert "overrides of cand" in error.where
    assert "skills/demo/SKILL.md:" in error.where


def test_many_secrets_are_counted_and_the_first_ones_named(study):
    for number in range(9):
        study.write(f"src/s{number}.txt", SECRET)
    study.commit()
    error = refused(study)
    assert "and 4 more" in error.found


def test_nothing_of_a_refused_secret_stays_on_disk(study, tmp_path):
    study.write("src/big.txt", "x" * 1_500_000 + f"\n{SECRET}\n")
    study.write("src/small.txt", SECRET)
    study.commit()
    output = tmp_path / "out" / "run"
    with pytest.raises(RefusedError), RunDir.draft(output) as draft:
        build_protocol(study.load(), draft.blobs)
    assert list(output.parent.iterdir()) == []


def test_a_refused_intake_leaves_no_bytes_in_an_existing_store(study, tmp_path):
    rundir = RunDir.create(tmp_path / "run")
    study.write("src/small.txt", SECRET)
    study.commit()
    refused(study, rundir.blobs)
    assert not any(SECRET.encode() in path.read_bytes() for path in files(rundir.path))


def files(root):
    return [path for path in root.rglob("*") if path.is_file()]


@pytest.mark.parametrize("kind", ["skills", "agents_md", "tasks", "skills_invalid"])
def test_collected_real_material_holds_nothing_that_looks_like_a_secret(inputs, kind):
    found = {str(path): find_secrets(str(path), path.read_bytes()) for path in files(inputs / kind)}
    assert found
    assert {path: items for path, items in found.items() if items} == {}
