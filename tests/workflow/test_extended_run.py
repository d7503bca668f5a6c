"""What docs/how-to/extend.md adds, in a real run: metrics, a basis, a source of checkpoints and a figure."""

import json

import pandas as pd
import pytest
import yaml

from documented import blocks

MADE = (
    "results/tables/geometry.csv",
    "results/bases/decoder/mean_free.nc",
    "results/checkpoints/listed.lock.json",
    "results/figures/loss_over_training.pdf",
)


@pytest.mark.slow
def test_what_the_page_adds_runs_from_the_config_to_a_figure(own):
    for block in blocks("how-to/extend.md"):
        block.apply(own.repo)
    raw = yaml.safe_load(own.config.read_text())
    raw["models"]["listed"] = {"objective": "clm", "source": {"kind": "listed", "path": "series.txt"}}
    del raw["models"]["encoder"]
    raw["geometry"]["metrics"] = ["loss", "median_norm", "isotropy_share"]
    raw["bases"]["methods"] = ["pca", "mean_free"]
    raw["figures"] = {"names": ["loss_over_training"]}
    weights = own.at("weights/decoder")
    series = [f"{n} {weights / f'checkpoint-{n}'}" for n in (10, 0, 3)]
    (own.folder / "series.txt").write_text("\n".join(series) + "\n")
    own.written(raw).done(*MADE)
    assert all((own.folder / path).exists() for path in MADE)
    lock = json.loads(own.at("checkpoints/listed.lock.json").read_text())
    assert [c["status"] for c in lock["checkpoints"]] == ["ok", "ok", "ok"]
    found = own.table("geometry").groupby("metric")["value"].count()
    assert found["median_norm"] == found["isotropy_share"] > 0
    drawn = pd.read_csv(own.at("figures/loss_over_training.csv"))
    assert set(drawn["model"]) == {"decoder", "listed"}
