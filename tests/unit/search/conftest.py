"""The demo's search study, frozen in memory: no host, no engine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from xgent_evolve.demo.search_study import write_search_study
from xgent_evolve.freeze.build import build_protocol
from xgent_evolve.freeze.protocol import FrozenCondition, Protocol
from xgent_evolve.spec.load import load_spec
from xgent_evolve.spec.models_v1 import Ssh
from xgent_evolve.store.memory import MemoryBlobs


@dataclass(frozen=True)
class Frozen:
    """A protocol and its bytes."""

    protocol: Protocol
    blobs: MemoryBlobs

    @property
    def baseline(self) -> FrozenCondition:
        return self.protocol.condition("baseline")


@pytest.fixture(scope="session")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Frozen:
    """The demo study of mode search."""
    directory: Path = tmp_path_factory.mktemp("search")
    spec = write_search_study(
        directory,
        ssh=Ssh(host="build.example"),
        remote_root="/srv/xgent-evolve",
        image=f"sha256:{'a' * 64}",
        docker_path="/usr/bin/docker",
        docker_version="28.2",
        base_url="http://127.0.0.1:1/v1",
        architecture="x86_64",
        key_env="KEY",
    )
    blobs = MemoryBlobs()
    return Frozen(build_protocol(load_spec(spec), blobs), blobs)
