"""`python -m xgent_evolve` is the same as the command `xgent-evolve`."""

from __future__ import annotations

import sys

from xgent_evolve.cli.entry import main

sys.exit(main())
