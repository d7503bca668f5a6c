"""The sample page compiles as it is: every number, figure and table on paper, nothing overfull, nothing blank."""

import re
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest
import synthetic

from isotrace import tables
from isotrace.figure_tables import FIGURE_TABLES
from isotrace.paper.redraw import redraw
from isotrace.paper.write import write_paper
from isotrace.tables import read

NEEDED = [tool for tool in ("pdflatex", "pdftoppm", "pdftotext", "pdffonts") if not shutil.which(tool)]
MADE = {"buckets": ("b0", "b1"), "steps": (0, 4, 64, 800)}
FIGURES = [name for name in FIGURE_TABLES if name != "toy"]
NASTY = r"50 % of $x_1$ & #2 ^ ~ {brace} \input{evil} <tag> | ≤ 3 é 猫"


def written(folder, venue):
    made = synthetic.all_tables(**MADE)
    for name, frame in made.items():
        tables.write(folder / "tables" / f"{name}.parquet", frame, name)
    options = {name: {"venue": venue} for name in FIGURES}
    redraw(folder / "tables", folder / "figures", names=FIGURES, options={"venue": venue})
    read_back = {name: read(folder / "tables" / f"{name}.parquet") for name in ("energy", "isotropy", "geometry")}
    claim = {"claim": "c_1", "model": "decoder", "aggregate": NASTY, "estimate": -1.5e-7, "lo": -2.0, "hi": 1.0}
    read_back["claims"] = pd.DataFrame([claim | {"p_adjusted": 0.02, "expected": "> 0", "verdict": "undecided"}])
    row = {"family": "f", "test": "trend", "unit": "run", "model": "m", "site": "final_norm", "bucket": "b0"}
    row |= {"statistic": "tau", "effect": 0.9, "lo": 0.5, "hi": 1.0, "n": 6, "p_adjusted": 0.004}
    read_back["dynamics"] = pd.DataFrame([row] * 50)
    spec = {"study": "a_b", "rank": 8, "method": "pca", "groups": {}, "options": options}
    write_paper(folder / "paper", tables=read_back, locks=[], sentences={"c_1": NASTY}, spec=spec)
    return folder / "paper"


def run(*command, cwd):
    result = subprocess.run(command, cwd=cwd, capture_output=True, text=True, errors="replace")
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-1000:]
    return result.stdout


@pytest.mark.slow
@pytest.mark.skipif(bool(NEEDED), reason=f"not installed: {', '.join(NEEDED)}")
def test_the_page_compiles_and_shows_everything(tmp_path):
    folder = written(tmp_path, "neurips")
    for _ in range(2):  # the second time for the numbers of references
        log = run("pdflatex", "-interaction=nonstopmode", "-halt-on-error", "sample.tex", cwd=folder)
    wide = [float(found) for found in re.findall(r"Overfull \\hbox \(([\d.]+)pt", log)]
    assert max(wide, default=0) < 20
    assert "undefined" not in log.replace("undefined on input line 0", "")
    text = run("pdftotext", "-layout", "sample.pdf", "-", cwd=folder)
    assert len(re.findall(r"Figure \d+:", text)) == len(FIGURES)
    assert re.search("name of the study: a.b", text)
    assert "U+732B" in text
    assert "n = 1,024" in " ".join(text.split())
    assert "Type 3" not in run("pdffonts", "sample.pdf", cwd=folder)
    run("pdftoppm", "-r", "40", "-gray", "sample.pdf", "page", cwd=folder)
    assert all(_ink(page) > 0.0005 for page in folder.glob("page*.pgm"))


def _ink(page):
    """The share of dots of a grey picture that are not white."""
    header, _, body = page.read_bytes().partition(b"255\n")
    assert header.startswith(b"P5")
    return float((np.frombuffer(body, np.uint8) < 250).mean())
