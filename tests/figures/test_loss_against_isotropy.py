"""Points of the figure are means over the same buckets at every checkpoint, of the deepest site, with both values."""

import numpy as np
import pandas as pd
import pytest
import synthetic

from isotrace.figures import registry, style
from isotrace.figures.loss_against_isotropy import data


def made(models=("decoder",), steps=(0, 4, 800)) -> dict[str, pd.DataFrame]:
    """Scores of activations at two sites; losses at the last site."""
    scores = synthetic.isotropy(models, ("b0", "b1"), steps).query("quantity == 'activation'")
    shallow = scores.assign(site="block.0", layer=0, score=0.9)
    again = scores.assign(basis="moving", convention="ambient")
    losses = synthetic.geometry(models, ("b0", "b1"), steps).query("site == 'final_norm'")
    return {"isotropy": pd.concat([shallow, scores, again], ignore_index=True), "geometry": losses}


def test_a_point_is_the_mean_over_buckets_of_the_deepest_site():
    tables = made()
    drawn = data(tables, {}).set_index("step")
    rows = tables["isotropy"].query("estimator == 'corrected' and basis == 'fixed' and site == 'block.3'")
    want = rows.groupby("step")[["score", "score_lo", "score_hi"]].mean()
    np.testing.assert_allclose(drawn[["isotropy", "isotropy_lo", "isotropy_hi"]], want)
    want = tables["geometry"].query("metric == 'loss'").groupby("step")[["value", "lo", "hi"]].mean()
    np.testing.assert_allclose(drawn[["loss", "loss_lo", "loss_hi"]], want)
    assert set(drawn["site"]) == {"block.3"}
    assert drawn.index[drawn["last"]].tolist() == [800]


@pytest.mark.parametrize("table", ["isotropy", "geometry"])
def test_a_bucket_that_lacks_one_value_once_is_in_no_mean(table):
    tables = made()
    frame = tables[table]
    lost = (frame["step"] == 4) & (frame["bucket"] == "b1")
    frame.loc[lost, ["score", "score_lo", "score_hi"] if table == "isotropy" else ["value", "lo", "hi"]] = np.nan
    frame.loc[lost, "reason"] = "20 rows, fewer than 32"
    drawn = data(tables, {})
    alone = {name: f[f["bucket"] == "b0"] for name, f in made().items()}
    pd.testing.assert_frame_equal(drawn, data(alone, {}))
    assert set(drawn["buckets"]) == {1}


def test_without_a_whole_bucket_the_reason_is_said_and_nothing_is_last():
    tables = made()
    tables["geometry"] = tables["geometry"].query("metric != 'loss'")
    fig, drawn = registry.find("loss_against_isotropy")(tables, {})
    assert set(drawn["reason"]) == {"no loss in the tables"}
    assert drawn["loss"].isna().all()
    assert not drawn["last"].any()
    assert any("decoder: n/a, no loss in the tables" in text.get_text() for ax in fig.axes for text in ax.texts)


def test_a_copy_is_a_hollow_mark_beside_the_line_and_never_the_last():
    tables = {n: f.assign(status=f["step"].map({800: "duplicate"}).fillna("ok")) for n, f in made().items()}
    fig, drawn = registry.find("loss_against_isotropy")(tables, {})
    assert drawn.loc[drawn["last"], "step"].tolist() == [4]
    copy = drawn[drawn["step"] == 800].iloc[0]
    path, *others = fig.axes[0].lines
    assert copy["loss"] not in path.get_ydata()
    hollow = [line for line in others if line.get_marker() == "<"]
    assert [line.get_ydata().tolist() for line in hollow] == [[copy["loss"]]]
    assert "copy of another checkpoint, in no line" in {text.get_text() for text in fig.legends[-1].get_texts()}


def test_untrained_models_are_points_without_a_path():
    tables = made(steps=(0,))
    several = {n: pd.concat([f, f.assign(checkpoint="step0-init-1", seed=1)]) for n, f in tables.items()}
    fig, drawn = registry.find("loss_against_isotropy")(several, {})
    assert len(drawn) == 2
    assert drawn["last"].all()
    assert {line.get_linestyle() for line in fig.axes[0].lines} == {"None"}


@pytest.mark.parametrize("venue", ["icml", "acl-column"])
def test_nine_models_are_told_apart_and_have_a_row_each(venue):
    models = tuple(f"m{i}" for i in range(9))
    fig, drawn = registry.find("loss_against_isotropy")(made(models), {"venue": venue})
    with style.style():
        fig.draw_without_rendering()
    last = drawn[drawn["last"]].set_index("model")
    for ax, name in zip(fig.axes[1:], ("isotropy", "loss"), strict=True):
        assert ax.yaxis.get_major_formatter().format_ticks(range(9)) == list(models)
        assert len({(line.get_color(), line.get_marker()) for line in ax.lines}) == 9
        points = [(line.get_xdata().tolist(), line.get_ydata().tolist()) for line in ax.lines]
        assert points == [([last.loc[model, name]], [k]) for k, model in enumerate(models)]
