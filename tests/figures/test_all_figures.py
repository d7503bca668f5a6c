"""What holds of every figure: any number of models and buckets, missing values, no input changed, stable drawn rows."""

import numpy as np
import pandas as pd
import pytest
import synthetic

from isotrace.figures import registry, style

NAMES = (
    "energy_over_training", "isotropy_ablation", "early_late", "cosine_over_training", "frequency_geometry",
    "attention_over_training", "cosine_by_depth", "rank_curve", "alternatives",
    "subspace_overlap", "component_tokens", "attention_sinks", "loss_against_isotropy",
)  # fmt: skip
REALS = ("energy", "null_m", "null_sd", "ratio")
VALUES = {
    "energy": [c for c in synthetic.energy(("m",), ("b0",), (0,)) if c.startswith(REALS)],
    "isotropy": [c for c in synthetic.isotropy(("m",), ("b0",), (0,)) if c.startswith(("score", "delta"))],
    "geometry": ["value", "lo", "hi"],
    "frequency": ["spearman", "lo", "hi"],
    "attention": ["drift_q", "drift_k", "entropy"],
    "attention_mass": ["log_ratio", "lo", "hi"],
    "attention_intervals": ["value", "lo", "hi"],
    "controls": [c for c in synthetic.controls(("m",), ("b0",), (0,)) if c.startswith(("ratio", "optimism", "n_eff"))],
    "rank_curve": ["value", "lo", "hi", "isotropic"],
    "subspaces": ["overlap", "angle_min", "angle_max", "haar_mean", "haar_sd", "z", "p_value"],
    "components": ["score"],
}


@pytest.fixture(scope="module")
def tables():
    return synthetic.all_tables(buckets=("b0", "b1"), steps=(0, 4, 800))


def render(name, tables, options=None):
    fig, drawn = registry.find(name)(tables, options or {})
    with style.style():
        fig.draw_without_rendering()
    return fig, drawn


def emptied(tables, keep=lambda frame: frame["model"] != ""):
    """The tables with values only where ``keep`` says so."""
    out = {}
    for stage, frame in tables.items():
        frame = frame.copy()
        gone = ~keep(frame)
        frame.loc[gone, VALUES[stage]] = np.nan
        frame.loc[gone, "reason"] = "12 rows, fewer than 32"
        out[stage] = frame
    return out


@pytest.mark.parametrize("name", NAMES)
def test_draws_and_leaves_its_tables_alone(name, tables):
    before = {stage: frame.copy() for stage, frame in tables.items()}
    fig, drawn = render(name, tables, {"venue": "icml"})
    assert len(drawn) > 0
    assert set(drawn["model"]) == {"decoder", "encoder"}
    assert fig.get_figwidth() == style.width({"venue": "icml"})
    for stage, frame in tables.items():
        pd.testing.assert_frame_equal(frame, before[stage])


@pytest.mark.parametrize("name", NAMES)
def test_the_order_of_rows_does_not_matter(name, tables):
    module = __import__(f"isotrace.figures.{name}", fromlist=["data"])
    shuffled = {stage: frame.sample(frac=1, random_state=0) for stage, frame in tables.items()}
    pd.testing.assert_frame_equal(module.data(tables, {}), module.data(shuffled, {}))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", [(("m",), ("all",), (0,)), (("k", "l", "m"), ("b0", "b1", "b10"), (5,))])
def test_any_number_of_models_and_buckets(name, shape):
    models, buckets, steps = shape
    _, drawn = render(name, synthetic.all_tables(models, buckets, steps), {"venue": "icml-column"})
    assert set(drawn["model"]) <= set(models)


@pytest.mark.parametrize("name", NAMES)
def test_missing_values_are_said_not_dropped(name, tables):
    fig, drawn = render(name, emptied(tables, lambda frame: frame["model"] == "decoder"))
    lost = drawn[drawn["model"] == "encoder"]
    if name == "early_late":  # a phase without a value has no point to draw
        assert lost.empty
        return
    assert set(lost["reason"]) == {"12 rows, fewer than 32"}
    assert any("fewer than 32" in text.get_text() for ax in fig.axes for text in ax.texts)


@pytest.mark.parametrize("name", NAMES)
def test_tables_without_rows_say_so(name, tables):
    fig, drawn = render(name, {stage: frame[:0] for stage, frame in tables.items()})
    assert drawn.empty
    assert any("n/a" in text.get_text() for ax in fig.axes for text in ax.texts)
