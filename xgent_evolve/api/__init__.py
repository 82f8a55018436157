"""What the command line calls, as ordinary functions.

from pathlib import Path
from xgent_evolve.api.study import resume, run

outcome = run(Path("job.json"), Path("runs/first"))
print(outcome.document["verdict"])
"""
