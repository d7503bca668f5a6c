"""Shipped studies plan their jobs from the committed series files, without a network and before they are resolved."""

from pathlib import Path

import pytest
from running import ROOT, Study

CHECKPOINTS = {"olmo2": 12, "paper": 3 * 13 + 10 + 12, "pythia": 8 * 13, "smollm2": 17 + 12, "untrained": 3 * 5}
DRAWN = {"paper": 2, "smollm2": 2, "untrained": 15}


@pytest.mark.slow
@pytest.mark.parametrize("name", CHECKPOINTS)
def test_a_study_plans_offline(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")  # nobody listens there
    jobs = Study(ROOT, tmp_path, ROOT / "config" / f"{name}.yaml").planned()
    assert jobs["capture"] == CHECKPOINTS[name]
    assert jobs.get("initialise", 0) == DRAWN.get(name, 0)
    fetched = jobs.get("prefetch", 0) + jobs.get("prefetch_and_clean", 0)
    assert fetched == CHECKPOINTS[name] - DRAWN.get(name, 0)
    assert {path.name for path in tmp_path.iterdir()} <= {".snakemake"}
