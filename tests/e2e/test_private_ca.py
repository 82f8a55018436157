"""A model's service with a certificate of a private authority, reached by the real Codex."""

from __future__ import annotations

import datetime
import ipaddress
import json
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from xgent_evolve.demo.model import ScriptedModel

KEY = "key-0123456789abcdef"


class Authority:
    """A certificate authority of the test, and a server certificate that it has signed."""

    def __init__(self, directory: Path) -> None:
        self.certificate = directory / "ca.pem"
        self.server = directory / "server.pem"
        self.private_key = directory / "ca.key"
        key, own = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "xgent-evolve test authority")])
        root = self._certificate(name, name, key, key, x509.BasicConstraints(True, None))
        address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
        leaf = self._certificate(x509.Name([]), name, own, key, address)
        pem, raw = serialization.Encoding.PEM, serialization.NoEncryption()
        form = serialization.PrivateFormat.PKCS8
        self.certificate.write_bytes(root.public_bytes(pem))
        self.private_key.write_bytes(key.private_bytes(pem, form, raw))
        self.server.write_bytes(own.private_bytes(pem, form, raw) + leaf.public_bytes(pem))

    def _certificate(
        self, subject: x509.Name, issuer: x509.Name, key: Any, signer: Any, extension: Any
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=30))
            .add_extension(extension, critical=True)
            .sign(signer, hashes.SHA256())
        )


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def secure_model(authority: Authority) -> Iterator[ScriptedModel]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.server)
    with ScriptedModel(key=KEY, tls=context) as model:
        yield model


@pytest.mark.codex
def test_codex_trusts_a_private_authority_that_is_named_and_no_other(
    make_study: Callable[..., Any], authority: Authority, secure_model: ScriptedModel
) -> None:
    study = make_study(cases=1, key=KEY)

    def secure(document: dict[str, Any]) -> None:
        document["runtime"]["base_url"] = secure_model.base_url
        document["budget"]["max_retries"] = 0

    def trusting(document: dict[str, Any]) -> None:
        secure(document)
        document["runtime"]["model_ca"] = str(authority.certificate)

    distrusting = study.edit(secure, "distrusting.json")
    said = study.call("doctor", "--spec", distrusting).stdout
    assert f"does not reach {secure_model.base_url} itself (SSLCertVerificationError: " in said
    run = study.directory / "refused"
    done = study.call("run", "--spec", distrusting, "--output", run, check=4)
    assert "error[E_TRIAL_MODEL_UNREACHABLE]" in done.stderr
    assert "model_ca" in done.stderr
    assert secure_model.requests_by_thread == {}

    spec = study.edit(trusting, "trusting.json")
    assert "does not reach" not in study.call("doctor", "--spec", spec).stdout
    run = study.directory / "run"
    study.call("run", "--spec", spec, "--output", run)
    document = json.loads((run / "report.json").read_text())
    assert document["comparison"]["missing"]["missing_trials"] == 0
    assert len(secure_model.requests_by_thread) == 2
    authority.certificate.write_text("gone")
    study.call("verify", "--run", run)


@pytest.mark.parametrize(
    ("content", "code", "status"),
    [
        (None, "E_SPEC_CA", 2),
        ("no certificate", "E_SPEC_CA", 2),
        ("leaf", "E_SPEC_CA", 2),
        ("key", "E_FREEZE_SECRET", 3),
    ],
)
def test_a_file_without_an_authority_is_refused_before_anything_begins(
    make_study: Callable[..., Any],
    authority: Authority,
    content: str | None,
    code: str,
    status: int,
) -> None:
    study = make_study(cases=1, key=KEY)
    file = study.directory / "given.pem"
    texts = {
        "leaf": "-----BEGIN" + authority.server.read_text().split("-----BEGIN")[2],
        "key": authority.certificate.read_text() + authority.private_key.read_text(),
    }
    if content is not None:
        file.write_text(texts.get(content, content))

    def trusting(document: dict[str, Any]) -> None:
        document["runtime"].update(base_url="https://127.0.0.1:1", model_ca=str(file))

    spec = study.edit(trusting)
    for words in (("validate",), ("run", "--output", study.directory / "run")):
        done = study.call(words[0], "--spec", spec, *words[1:], check=status)
        assert f"error[{code}]" in done.stderr
        assert "given.pem" in done.stderr
    assert not (study.directory / "run").exists()
