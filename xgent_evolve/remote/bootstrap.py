"""How the host runner gets onto the host: as one verified file, through the connection's stdin."""

from __future__ import annotations

import base64
import hashlib
import io
import zipfile
from collections.abc import Mapping

_BOOTSTRAP = """\
import hashlib,os,sys,tempfile
root,size,digest={root!r},{size},{digest!r}
home=os.path.join(root,"runner")
new=[] if os.path.isdir(root) else ["new"]
os.makedirs(home,mode=0o700,exist_ok=True)
content=b""
while len(content)<size:
    chunk=os.read(0,size-len(content))
    if not chunk:sys.exit(97)
    content+=chunk
if hashlib.sha256(content).hexdigest()!=digest:sys.exit(98)
path=os.path.join(home,digest+".pyz")
if not os.path.exists(path):
    number,name=tempfile.mkstemp(dir=home)
    with os.fdopen(number,"wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    os.rename(name,path)
os.execv(sys.executable,[sys.executable,"-I",path,"serve",root,*new])
"""

RUNNER_PREFIX = "host_runner/"
"""Where the runner's modules lie among the payload files."""


def runner_archive(payload: Mapping[str, bytes]) -> bytes:
    """Return the host runner as one executable archive, byte for byte the same everywhere."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(payload):
            if name.startswith(RUNNER_PREFIX) and name.endswith(".py"):
                info = zipfile.ZipInfo(name.removeprefix(RUNNER_PREFIX), (1980, 1, 1, 0, 0, 0))
                archive.writestr(info, payload[name])
    return buffer.getvalue()


def start_command(archive: bytes, remote_root: str) -> str:
    """Return the command line that stores and starts the runner.

    It holds one pair of single quotes around characters that no login shell treats specially, so
    that it means the same in sh, bash, fish and csh.
    """
    script = _BOOTSTRAP.format(
        root=remote_root, size=len(archive), digest=hashlib.sha256(archive).hexdigest()
    )
    encoded = base64.b64encode(script.encode()).decode()
    return f"exec python3 -c 'import base64;exec(base64.b64decode(\"{encoded}\"))'"
