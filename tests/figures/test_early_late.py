"""Early against late: geometric means over the phase's checkpoints and over buckets, by hand."""

import numpy as np
import synthetic

from isotrace.figures.early_late import data


def test_phases_are_geometric_means_over_checkpoints_and_buckets():
    energy = synthetic.energy()
    drawn = data({"energy": energy}, {})
    for phase in ("early", "late"):
        here = f"model == 'decoder' and site == 'block.3' and basis == 'fixed' and phase == '{phase}'"
        want, got = energy.query(here)["ratio"], drawn.query(here)
        np.testing.assert_allclose(got["ratio"], np.exp(np.log(want).mean()))
        assert (got["lo"] < got["ratio"]).all()
        assert (got["ratio"] < got["hi"]).all()


def test_leave_one_out_is_kept_for_early_points_only():
    drawn = data({"energy": synthetic.energy()}, {})
    assert set(drawn.loc[drawn["basis"] == "leave_one_out", "phase"]) == {"early"}
    assert "mid" not in set(drawn["phase"])
