"""Harbor-style tasks run by Codex CLI: what an execution is asked to do and what it left."""
