"""``snakemake --report`` of the finished smoke study: every file with caption, category and labels, and no network."""

import json
import os
import re
import subprocess
import zipfile
from dataclasses import dataclass
from typing import Any

import pytest

CATEGORIES = {"Claims", "Dynamics", "Geometry", "Attention", "Audit", "Runtime"}
NOWHERE = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Reported:
    """What the report holds: its page, and files by path with what it says of each."""

    page: str
    files: dict[str, Any]
    categories: dict[str, Any]
    raw: set[str]


def variable(page: str, name: str) -> Any:
    """The JSON that a script of the report gives to a variable."""
    start = re.search(rf'<script id="{name}">\s*var {name} = ', page).end()
    return json.JSONDecoder().raw_decode(page[start:])[0]


@pytest.fixture(scope="module")
def reported(smoke, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "shown.zip"
    done = subprocess.run(
        smoke.command("--report", str(path)),
        cwd=smoke.repo,
        env=smoke.environment() | NOWHERE | {"no_proxy": "", "NO_PROXY": ""},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    assert "Missing metadata" not in done.stdout
    with zipfile.ZipFile(path) as held:
        page = held.read("shown/report.html").decode()
        raw = {os.path.basename(name) for name in held.namelist()}
    return Reported(page, variable(page, "results"), variable(page, "categories"), raw)


def test_every_file_has_a_caption_and_the_same_labels(reported):
    assert len(reported.files) > 15
    for path, file in reported.files.items():
        assert file["caption"].strip(), path
        assert "system-message" not in file["caption"], path
        assert set(file["labels"]) == {"name", "kind"}, path


def test_categories_are_those_of_the_questions(reported):
    assert set(reported.categories) == CATEGORIES
    names = {file["labels"]["name"] for file in reported.files.values()}
    assert {"claims", "dynamics", "audit", "runtime", "decoder", "encoder", "energy_over_training", "toy"} <= names


def test_the_files_are_in_it_and_figures_say_what_they_show(smoke, reported):
    assert {"claims.csv", "runtime.csv", "energy_over_training.png"} <= reported.raw
    figures = {f["labels"]["name"]: f["caption"] for f in reported.files.values() if f["labels"]["kind"] == "figure"}
    assert set(figures) == {path.stem for path in smoke.at("figures").glob("*.png")}
    assert "Do gradients concentrate in the tangent subspace" in figures["energy_over_training"]
