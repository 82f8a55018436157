"""Durable storage of a run: bytes by hash, the journal, the lock, the run directory."""
