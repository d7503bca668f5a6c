"""Figures from tables alone: without anything of the workflow installed, and the same bytes as the workflow's own."""

import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import synthetic

from isotrace import tables
from isotrace.errors import ConfigError, DataError
from isotrace.figures.frames import one_a_group
from isotrace.gather import with_status
from isotrace.paper.drawing import draw
from isotrace.paper.redraw import redraw

ROOT = Path(__file__).parents[2]
MADE = {"models": ("run-seed1", "run-seed2"), "buckets": ("b0", "b1"), "steps": (0, 4, 800)}
GROUPS = {"run-seed1": "run", "run-seed2": "run"}
LOCKS = [
    {"model": model, "checkpoints": [{"id": "step0", "status": "ok"}, {"id": "step4", "status": status}]}
    for model, status in (("run-seed1", "ok"), ("run-seed2", "duplicate"))
]
OPTIONS = {"venue": "acl-column", "rank": 8, "method": "pca", "confidence": 0.9}
NAME = "energy_over_training"
HEAVY = ("torch", "transformers", "zarr", "xarray", "snakemake", "pydantic", "yaml", "scipy", "statsmodels", "skdim")
BARE = f"""
import sys
import zipfile
from pathlib import Path

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {HEAVY!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Refuse())
from isotrace.cli import main
assert main(["figures", "--tables", sys.argv[1], "--out", sys.argv[2]]) == 0
loaded = {{name.split(".")[0] for name in sys.modules}}
assert not loaded & set({HEAVY!r}), loaded
assert main(["plan"]) == 1
"""


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """A results folder with tables, what the figures were drawn with, and one caption."""
    folder = tmp_path_factory.mktemp("results")
    frame = synthetic.energy(**MADE)
    frame["seed"] = frame["model"].str[-1].astype(int)
    tables.write(folder / "tables" / "energy.parquet", frame, "energy")
    (folder / "paper").mkdir()
    drawing = {"groups": GROUPS, "options": {NAME: OPTIONS}, "locks": LOCKS}
    (folder / "paper" / "drawing.json").write_text(json.dumps(drawing))
    (folder / "figures").mkdir()
    (folder / "figures" / f"{NAME}.rst").write_text("**When?** Then.\n\nOld facts.\n")
    return folder


def files_of(folder):
    return {kind: folder / f"{NAME}.{kind}" for kind in ("pdf", "png", "csv", "tex", "rst")}


def test_without_the_workflow_a_figure_is_the_workflows_own_byte_for_byte(study, tmp_path):
    command = [sys.executable, "-W", "error", "-c", BARE, str(study / "tables"), str(tmp_path / "again")]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stderr == "isotrace: error: pydantic is not installed; pip install 'isotrace[workflow]'\n"
    assert result.stdout.split() == [str(tmp_path / "again" / f"{NAME}.pdf")]
    frame = with_status(tables.read(study / "tables" / "energy.parquet"), LOCKS)
    files = files_of(tmp_path / "own")
    draw(NAME, one_a_group({"energy": frame}, GROUPS), OPTIONS, text="**When?** Then.", files=files)
    again = files_of(tmp_path / "again")
    assert {k: p.read_bytes() for k, p in files.items()} == {k: p.read_bytes() for k, p in again.items()}
    assert "Old facts" not in again["rst"].read_text()
    assert "hollow triangle" in again["rst"].read_text()


def test_what_is_missing_is_said_in_one_line(study, tmp_path):
    with pytest.raises(DataError, match=r"figure toy: .* lacks toy\.parquet; copy it there"):
        redraw(study / "tables", tmp_path, names=["toy"])
    with pytest.raises(ConfigError, match="no figure is called 'pie'"):
        redraw(study / "tables", tmp_path, names=["pie"])
    with pytest.raises(DataError, match=r"drawing\.json: not there"):
        redraw(study / "tables", tmp_path, drawing=tmp_path / "drawing.json")
    with pytest.raises(DataError, match="no tables of a study"):
        redraw(tmp_path, tmp_path / "out")
    with pytest.raises(ConfigError, match="'poster' is not one of acl, acl-column"):
        redraw(study / "tables", tmp_path, options={"venue": "poster"})


@pytest.mark.slow
def test_the_built_package_holds_the_styles(tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, source / name)
    shutil.copytree(ROOT / "workflow" / "isotrace", source / "workflow" / "isotrace")
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*pip, "--wheel-dir", str(tmp_path), str(source)], check=True, capture_output=True)
    (wheel,) = tmp_path.glob("isotrace-*.whl")
    held = set(zipfile.ZipFile(wheel).namelist())
    styles = {path.name for path in (ROOT / "workflow" / "isotrace" / "figures" / "styles").iterdir()}
    assert {f"isotrace/figures/styles/{name}" for name in styles} <= held
