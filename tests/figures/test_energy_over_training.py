"""The energy figure draws the table's ratios, with intervals in odds and the exact null's band."""

import numpy as np
import synthetic

from isotrace.figures.energy_over_training import data, draw


def test_known_ratios_come_out_at_the_end_blocks():
    drawn = data({"energy": synthetic.energy()}, {})
    assert set(drawn["site"]) == {"block.0", "block.3"}
    assert set(drawn["basis"]) == {"fixed", "moving"}
    row = drawn.query("model == 'decoder' and site == 'block.0' and basis == 'fixed' and bucket == 'b0' and step == 64")
    assert len(row) == 1
    np.testing.assert_allclose(row[["ratio", "lo", "hi"]].to_numpy()[0], [56, 56 / 1.05, 56 * 1.05])
    np.testing.assert_allclose(row[["null_lo", "null_hi"]].to_numpy()[0], [0.82, 1.18])


def test_options_choose_rank_null_and_sites():
    energy = synthetic.energy(models=("decoder",))
    assert data({"energy": energy.assign(rank=4)}, {"rank": 4})["ratio"].notna().all()
    assert set(data({"energy": energy}, {"sites": ["embed"]})["site"]) == {"embed"}
    assert data({"energy": energy}, {"null_space": "ambient"}).empty


def test_all_panels_share_one_scale():
    fig, _ = draw({"energy": synthetic.energy()}, {})
    limits = {tuple(np.round(ax.get_ylim(), 6)) for ax in fig.axes}
    assert len(fig.axes) == 4
    assert len(limits) == 1
