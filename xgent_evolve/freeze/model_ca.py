"""The certificates of a private authority, for the model driver alone."""

from __future__ import annotations

import ssl

from xgent_evolve.errors import InvalidError
from xgent_evolve.freeze.places import place
from xgent_evolve.freeze.reading import take_content
from xgent_evolve.freeze.snapshot import require_no_secrets
from xgent_evolve.ids import Digest
from xgent_evolve.spec.load import LoadedSpec
from xgent_evolve.store.bundles import Blobs

MAX_BYTES = 4 << 20
"""More than the public authorities together have."""


def freeze_model_ca(loaded: LoadedSpec, blobs: Blobs) -> Digest | None:
    """Keep the certificates of `runtime.model_ca`; None when the JobSpec names none.

    Raises:
        InvalidError: E_SPEC_CA: the file cannot be read, or holds no certificates.
        DriftError: E_FREEZE_SECRET: it holds a private key too.

    """
    if loaded.spec.runtime.model_ca is None:
        return None
    path = loaded.resolve(loaded.spec.runtime.model_ca)
    where = f"{path} ({place(loaded, 'runtime', 'model_ca')})"
    try:
        with path.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise _refusal(where, error.strerror or "a file that cannot be read") from error
    require_no_secrets([take_content(path.name, content)], str(path.parent))
    if len(content) > MAX_BYTES:
        raise _refusal(where, f"more than {MAX_BYTES} bytes")
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=content.decode("ascii"))
    except (ssl.SSLError, ValueError) as error:
        raise _refusal(where, str(error)) from error
    if not context.get_ca_certs():
        raise _refusal(where, "certificates, none of which is an authority's")
    return blobs.put(content)


def _refusal(where: str, found: str) -> InvalidError:
    return InvalidError(
        "the certificates for the model's service cannot be used",
        code="E_SPEC_CA",
        where=where,
        expected="a PEM file with the certificate of at least one authority",
        found=found,
        fix="name the authority's certificate file, or remove runtime.model_ca",
    )
