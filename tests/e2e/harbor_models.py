"""Run by Harbor's own Python: read an export with Harbor's models and its trajectory validator."""

import json
import sys
from pathlib import Path

from harbor.models.job.config import JobConfig
from harbor.models.job.result import JobResult, JobStats
from harbor.models.trial.config import TrialConfig
from harbor.models.trial.result import TrialResult
from harbor.utils.trajectory_validator import TrajectoryValidator

count = {"jobs": 0, "trials": 0, "trajectories": 0}
for job in sorted(Path(sys.argv[1]).iterdir()):
    JobConfig.model_validate_json((job / "config.json").read_text())
    told = JobResult.model_validate_json((job / "result.json").read_text())
    count["jobs"] += 1
    results = []
    for place in sorted(path for path in job.iterdir() if path.is_dir()):
        TrialConfig.model_validate_json((place / "config.json").read_text())
        results.append(TrialResult.model_validate_json((place / "result.json").read_text()))
        assert results[-1].trial_name == place.name
        count["trials"] += 1
        validator = TrajectoryValidator()
        assert validator.validate(place / "agent" / "trajectory.json"), validator.get_errors()
        count["trajectories"] += 1
    # Harbor's own sums over the trials are the ones that the job tells.
    own = JobStats.from_trial_results(results)
    for name in ("n_completed_trials", "n_errored_trials", "n_input_tokens", "n_output_tokens"):
        assert getattr(own, name) == getattr(told.stats, name), name
    assert own.evals.keys() == told.stats.evals.keys()
    for key, found in own.evals.items():
        assert found.reward_stats == told.stats.evals[key].reward_stats
sys.stdout.write(json.dumps(count))
