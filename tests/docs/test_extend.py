"""docs/how-to/extend.md as written: its blocks are applied to a copy of the library, and what they add is used."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from running import copy_repository

from documented import ROOT, blocks

PAGE = "how-to/extend.md"
USE = """
import json, sys
import numpy as np, pandas as pd
from pathlib import Path
from isotrace.corpus.sources import documents
from isotrace.figures.registry import find
from isotrace.geometry.cloud import Cloud
from isotrace.geometry.metrics import METRICS
from isotrace.geometry.subspaces import METHODS, Pooled
from isotrace.study import read

rows = np.random.default_rng(0).normal(size=(400, 6)) + np.array([9, 0, 0, 0, 0, 0])
cloud = Cloud(rows, np.arange(400) // 4, seed=0, max_rows=400)
covariance, mean = np.diag([7.0, 6, 5, 4, 3, 2]), np.array([1.0, 0, 0, 0, 0, 0])
fitted = METHODS["mean_free"](Pooled(400, mean, covariance, covariance), 2, 0, None)
Path("lines.txt").write_text("one line\\nanother\\n")
of_lines = {"corpus": "text", "source": "lines", "paths": ["lines.txt"], "min_characters": 0, "max_documents": None,
            "language": "en"}
losses = pd.DataFrame({"model": "mine", "checkpoint": ["step0", "step1"], "progress": [0.0, 1.0], "value": [8.0, 5.0],
                       "quantity": "activation", "metric": "loss", "reason": ""})
figure, drawn = find("loss_over_training")({"geometry": losses}, {})
study = read("study.yaml")
print(json.dumps({
    "median_norm": METRICS["median_norm"].measure(cloud),
    "isotropy_share": METRICS["isotropy_share"].measure(cloud),
    "basis": np.abs(fitted).round(6).tolist(),
    "texts": [d.text for d in documents(of_lines)],
    "drawn": drawn["value"].tolist(),
    "label": figure.axes[0].get_ylabel(),
    "steps": [[f.id, f.path] for f in study.series["mine"].found],
    "metrics": study.geometry.metrics,
}))
"""
STUDY = """
study: mine
corpora: {text: {source: lines, paths: [lines.txt]}}
models: {mine: {objective: clm, source: {kind: listed, path: series.txt}}}
bases: {methods: [pca, mean_free]}
dynamics: {method: mean_free}
figures: {names: [loss_over_training]}
"""


@pytest.fixture(scope="module")
def extended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the repository with every titled block of the page applied."""
    repo = copy_repository(tmp_path_factory.mktemp("extended"))
    for block in blocks(PAGE):
        block.apply(repo)
    return repo


def test_every_block_names_the_file_it_belongs_to():
    assert {block.language for block in blocks(PAGE)} == {"python", "diff", "rst"}
    assert [block.text for block in blocks(PAGE) if not block.title] == []


def test_what_the_page_adds_is_in_the_house_style(extended):
    changed = sorted({str(extended / block.title) for block in blocks(PAGE) if block.title.endswith(".py")})
    for command in (["check"], ["format", "--check"]):
        ran = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--config", str(ROOT / "pyproject.toml"), "--no-cache", *changed],
            capture_output=True,
            text=True,
        )
        assert ran.returncode == 0, ran.stdout


def test_metrics_bases_sources_and_figures_of_the_page_work(extended, tmp_path):
    for name in ("start", "middle", "end"):
        (tmp_path / name).mkdir()
    for name in ("config.json", "tokenizer.json"):
        (tmp_path / "start" / name).write_text("{}")
    (tmp_path / "lines.txt").write_text("text")
    (tmp_path / "series.txt").write_text("200 middle\n0 start\n1000 end\n")
    (tmp_path / "study.yaml").write_text(STUDY)
    environment = os.environ | {"PYTHONPATH": str(extended / "workflow"), "OMP_NUM_THREADS": "1"}
    ran = subprocess.run([sys.executable, "-c", USE], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert 9 < found["median_norm"] < 10
    assert 0.9 < found["isotropy_share"] <= 1
    assert found["basis"] == [[0, 0], [1, 0], [0, 1], [0, 0], [0, 0], [0, 0]]
    assert found["texts"] == ["one line", "another"]
    assert found["drawn"] == [8.0, 5.0]
    assert found["label"] == "held-out loss (nats a token)"
    assert found["steps"] == [["step0", "start"], ["step200", "middle"], ["step1000", "end"]]
    assert {"median_norm", "isotropy_share"} < set(found["metrics"])
