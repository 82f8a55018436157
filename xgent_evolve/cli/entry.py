"""Where the command begins: what needs no parser is answered before one is loaded."""

from __future__ import annotations

import os
import sys

from xgent_evolve import __version__


def main() -> int:
    """Carry out one command line and return its exit code."""
    if sys.argv[1:] == ["--version"]:
        sys.stdout.write(f"xgent-evolve {__version__}\n")
        return 0
    # No plugin of another package may change what a JobSpec means; looking for some takes time.
    os.environ["PYDANTIC_DISABLE_PLUGINS"] = "__all__"
    from xgent_evolve.cli.main import main as carry_out

    return carry_out()
