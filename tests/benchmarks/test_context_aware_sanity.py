"""The sanity tasks of context-aware layers, for a few steps."""

import pytest

from benchmarks.experiments import context_aware_sanity as sanity

STEPS = 3


def test_one_per_cent_of_the_grid_is_trained_on():
    x, y, trained = sanity.surface(seed=0)
    assert x.shape == (81 * 81, 2) and int(trained.sum()) == 66
    assert float(y.max()) == pytest.approx(2**-0.5 * 2.718281828**-0.5, abs=1e-3)


def test_the_report_says_what_was_measured():
    results = {"command": "c", "machine": "m", "steps": STEPS, "residual": sanity.residual_difference(STEPS)}
    results |= {"xor": sanity.run_xor(2, STEPS), "surface": sanity.run_surface(2, STEPS)}
    assert results["residual"] == 0
    text = sanity.report(results)
    for name in (*sanity.XOR_MODELS, *sanity.SURFACE_MODELS):
        assert f"| {name} |" in text
    assert "| 7 | Adam | 0 of 2 |" in text and "| 0.0063 |" in text
