"""Records on disk whose models pydantic checks: receipts, facts, artifacts."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """Base of what lies on disk: closed, immutable, documented."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True, defer_build=True
    )
