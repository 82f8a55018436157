"""One SSH connection to a host, with host keys always checked.

asyncssh and operating-system errors end here: above this module there are only `SshError`s.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING

from xgent_evolve.errors import SshError
from xgent_evolve.spec.models_v1 import Ssh

if TYPE_CHECKING:
    import asyncssh

CONNECT_TIMEOUT_S = 20
KEEPALIVE_INTERVAL_S = 10
KEEPALIVE_COUNT = 3


async def connect(ssh: Ssh) -> asyncssh.SSHClientConnection:
    """Return an authenticated connection to the host of a JobSpec.

    Raises:
        SshError: E_SSH_UNREACHABLE, E_SSH_HOSTKEY_UNKNOWN, E_SSH_HOSTKEY_CHANGED,
            E_SSH_HOSTKEY_REVOKED, E_SSH_AUTH, E_SSH_TOO_MANY_KEYS or E_SSH.

    """
    import asyncssh

    known_hosts = known_hosts_path(ssh)
    # What is absent here comes from ~/.ssh/config, as for `ssh`.
    options: dict[str, object] = {}
    if ssh.port is not None:
        options["port"] = ssh.port
    if ssh.known_hosts is not None or not known_hosts.exists():
        options["known_hosts"] = str(known_hosts) if known_hosts.exists() else ([], [], [])
    if ssh.user is not None:
        options["username"] = ssh.user
    if ssh.identity is not None:
        options["client_keys"] = [expanded(ssh.identity)]
        options["agent_path"] = None
    with ssh_errors(ssh):
        try:
            return await asyncssh.connect(
                ssh.host,
                connect_timeout=CONNECT_TIMEOUT_S,
                login_timeout=CONNECT_TIMEOUT_S,
                keepalive_interval=KEEPALIVE_INTERVAL_S,
                keepalive_count_max=KEEPALIVE_COUNT,
                agent_forwarding=False,
                **options,  # pyright: ignore[reportArgumentType]
            )
        except asyncssh.HostKeyNotVerifiable as error:
            raise await _host_key_error(ssh, known_hosts, str(error)) from error


def address(ssh: Ssh) -> str:
    """Return host and port as a message shows them."""
    return ssh.host if ssh.port is None else f"{ssh.host}:{ssh.port}"


def expanded(path: str) -> str:
    """Return a path with `~` replaced."""
    return str(Path(path).expanduser())


def known_hosts_path(ssh: Ssh) -> Path:
    """Return the known-hosts file that is used."""
    return Path(ssh.known_hosts or "~/.ssh/known_hosts").expanduser()


@contextlib.contextmanager
def ssh_errors(ssh: Ssh) -> Generator[None]:
    """Turn what asyncssh and the operating system raise into `SshError`."""
    import asyncssh

    where = f"runtime.ssh: {address(ssh)}"
    try:
        yield
    except asyncssh.PermissionDenied as error:
        raise SshError(
            f"the host refused the login: {error.reason}",
            code="E_SSH_AUTH",
            where=where,
            fix="check runtime.ssh.user and runtime.ssh.identity; `ssh` must log in without asking",
        ) from error
    except asyncssh.ProtocolError as error:
        many = "Too many authentication failures" in str(error)
        raise SshError(
            f"the host ended the login: {error.reason}",
            code="E_SSH_TOO_MANY_KEYS" if many else "E_SSH",
            where=where,
            fix="name one key in runtime.ssh.identity" if many else "look into the host's SSH log",
        ) from error
    except (asyncssh.Error, asyncssh.KeyImportError) as error:
        raise SshError(
            f"the SSH connection failed: {error}", where=where, fix="try the same with `ssh -v`"
        ) from error
    except (OSError, TimeoutError) as error:
        raise SshError(
            f"the host does not answer: {error or type(error).__name__}",
            code="E_SSH_UNREACHABLE",
            where=where,
            fix="check the address and that the host's SSH server runs; then resume",
        ) from error


async def _host_key_error(ssh: Ssh, known_hosts: Path, reason: str) -> SshError:
    """Return the error that tells unknown, changed and revoked host keys apart."""
    import asyncssh

    presented = await asyncssh.get_server_host_key(ssh.host, ssh.port or 22)
    fingerprint = presented.get_fingerprint() if presented else "none"
    keys, revoked = _recorded_keys(ssh, known_hosts)
    where = f"{known_hosts}: {address(ssh)}"
    if presented is not None and presented.public_data in revoked:
        return SshError(
            "the host presents a revoked key",
            code="E_SSH_HOSTKEY_REVOKED",
            where=where,
            found=fingerprint,
            fix="do not connect; ask the host's owner for the new key",
        )
    if keys:
        return SshError(
            "the host presents another key than the one on record",
            code="E_SSH_HOSTKEY_CHANGED",
            where=where,
            expected=", ".join(keys),
            found=fingerprint,
            fix="find out why it changed before you replace the line in the known-hosts file",
        )
    name = ssh.host if ssh.port in (None, 22) else f"[{ssh.host}]:{ssh.port}"
    return SshError(
        f"the host's key is unknown: {reason}",
        code="E_SSH_HOSTKEY_UNKNOWN",
        where=where,
        found=fingerprint,
        fix=f"compare the fingerprint with the host's owner, then add its key for {name} to the"
        " known-hosts file",
    )


def _recorded_keys(ssh: Ssh, known_hosts: Path) -> tuple[list[str], list[bytes]]:
    """Return fingerprints on record for the host, and the data of its revoked keys."""
    import asyncssh

    if not known_hosts.exists():
        return [], []
    matched = asyncssh.match_known_hosts(str(known_hosts), ssh.host, ssh.host, ssh.port or 22)
    trusted, revoked = matched[0], matched[2]
    return (
        [key.get_fingerprint() for key in trusted],
        [key.public_data for key in revoked],
    )
