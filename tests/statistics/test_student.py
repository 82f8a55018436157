"""Student's t against an oracle."""

from __future__ import annotations

import pytest
from scipy import stats

from xgent_evolve.measure.student import t_quantile


@pytest.mark.parametrize("degrees", [*range(1, 31), 49, 50, 199, 1000, 9999])
def test_the_quantile_is_that_of_scipy(degrees: int) -> None:
    for probability in (0.5, 0.75, 0.9, 0.95, 0.975, 0.995, 0.9995):
        expected = float(stats.t.ppf(probability, degrees))
        assert t_quantile(probability, degrees) == pytest.approx(expected, rel=1e-8, abs=1e-8)


@pytest.mark.parametrize(("probability", "degrees"), [(0.4, 5), (1.0, 5), (0.9, 0)])
def test_a_quantile_that_does_not_exist_is_refused(probability: float, degrees: int) -> None:
    with pytest.raises(ValueError, match="no quantile"):
        t_quantile(probability, degrees)
