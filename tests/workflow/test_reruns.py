"""What a change reruns, and what it does not: dry runs and real reruns on copies of the finished smoke study."""

import hashlib
import os
import re
import shutil
import time
from fnmatch import fnmatch
from pathlib import Path
from typing import get_args

import pytest
from running import ROOT, Study

from isotrace.settings.analysis import FigureName

BELOW_TABLES = {"dynamics", "claims", "card", "report"}
READS_ROWS = {
    "attention",
    "bases",
    "moving",
    "subspaces",
    "controls",
    "energy",
    "isotropy",
    "geometry",
    "frequency",
    "table",
    "figure",
}
ENERGY = {"energy", "controls", "table", "figure"} | BELOW_TABLES
ALL_BELOW_CAPTURE = {"capture"} | READS_ROWS | BELOW_TABLES
MODULES = {"embed": "gpt_neox.embed_in", "blocks": "gpt_neox.layers", "final_norm": "gpt_neox.final_layer_norm"}

# A change, what config/README.md says of its key, and every rule that is to run again.
CHANGES = [
    ({"bases.ranks": [3, 4]}, "energy", {"subspaces"} | ENERGY),
    (
        {"bases.ranks": [2, 4, 8]},
        "a new largest rank",
        {"bases", "moving", "subspaces", "isotropy", "geometry"} | ENERGY,
    ),
    ({"energy.resamples": 210}, "energy", ENERGY),
    ({"subspaces.draws": 50}, "overlaps and of tokens", {"subspaces", "table", "figure", "report"}),
    ({"controls.outlier_dimensions": 2}, "controls", {"controls", "table", "figure", "card", "report"}),
    ({"energy.draws": {"complement": 50, "ambient": 99, "variance_weighted": 39}}, "energy", ENERGY - {"controls"}),
    ({"isotropy.draws": 50}, "that analysis", {"isotropy", "table", "figure"} | BELOW_TABLES),
    ({"frequency.min_types": 10}, "that analysis", {"frequency", "table", "figure"} | BELOW_TABLES),
    ({"figures.venue": "column"}, "figures", {"figure", "report"}),
    ({"buckets.number": 3}, "sample, and so capture", {"sample"} | ALL_BELOW_CAPTURE),
    ({"sample.rows_per_bucket": {"fit": 100, "eval": 200}}, "sample, and so capture", {"sample"} | ALL_BELOW_CAPTURE),
    ({"capture.batch_size": 8}, "capture", ALL_BELOW_CAPTURE),
    ({"capture.moments_tokens": "all"}, "also the sample", {"sample"} | ALL_BELOW_CAPTURE),
    ({"capture.weight_gradients": "moments"}, "capture", ALL_BELOW_CAPTURE),
    ({"store.dtype": "float16"}, "capture", ALL_BELOW_CAPTURE),
    ({"models.decoder.modules": MODULES}, "capture", ALL_BELOW_CAPTURE),
    ({"masking.rate": 0.25}, "sample and", {"sample", "train", "audit_checkpoint", "lock"} | ALL_BELOW_CAPTURE),
    (
        {"bases.pool_center": "checkpoint"},
        "bases, energy, isotropy, geometry",
        {"bases", "moving", "subspaces", "controls", "energy", "isotropy", "geometry", "table", "figure"}
        | BELOW_TABLES,
    ),
    ({"bases.late_fraction": 0.8}, "all tables", {"table", "figure"} | BELOW_TABLES),
    ({"dynamics.resamples": 600}, "dynamics and claims", BELOW_TABLES),
    ({"card.causes": {"bucket_gap": 0.3}}, "the card", {"card", "report"}),
    ({"geometry.groups": 10}, "that analysis", {"geometry", "table", "figure"} | BELOW_TABLES),
    ({"execution.batch_buckets": False}, "nothing that is done", {"report"}),
]


def row_of(key: str) -> str:
    """The right-hand cell of the README's row for a key; rows name keys, groups (`energy.*`) and short names."""
    table = (ROOT / "config" / "README.md").read_text().partition("## Keys")[0]
    for left, right in re.findall(r"^\| (`.+?) \| (.+?) \|$", table, flags=re.MULTILINE):
        block = re.findall(r"`([\w.*]+)`", left)[0].rpartition(".")[0]
        names = [name if "." in name else f"{block}.{name}" for name in re.findall(r"`([\w.*]+)`", left)]
        if any(fnmatch(key, name.replace("NAME", "*")) for name in names):
            return right
    raise AssertionError(f"config/README.md does not say what {key} reruns")


@pytest.mark.parametrize(("edits", "said", "rules"), CHANGES, ids=[next(iter(edits)) for edits, *_ in CHANGES])
def test_a_key_reruns_what_the_readme_says(smoke, tmp_path, edits, said, rules):
    assert said in row_of(next(iter(edits)))
    edited = Study(smoke.repo, tmp_path, smoke.config).changed(edits)
    planned = Study(smoke.repo, smoke.folder, edited.config).planned()
    assert set(planned) == rules


def test_a_mask_reruns_the_masked_model_only(smoke, tmp_path):
    edited = Study(smoke.repo, tmp_path, smoke.config).changed({"masking.rate": 0.25})
    planned = Study(smoke.repo, smoke.folder, edited.config).planned()
    assert (planned["train"], planned["sample"], planned["capture"]) == (1, 1, 3)


def test_a_second_run_has_nothing_to_do(own):
    began = time.monotonic()
    assert "Nothing to be done" in own.done()
    assert time.monotonic() - began < 60
    assert own.planned() == {}


def test_touching_files_and_editing_comments_plans_nothing(own):
    for path in (own.repo / "workflow").rglob("*.*"):
        os.utime(path)
    assert own.planned() == {}
    for path in (own.repo / "workflow").rglob("*.py"):
        path.write_text(path.read_text() + "\n# a remark\n")
    energy = own.repo / "workflow" / "isotrace" / "geometry" / "energy.py"
    energy.write_text('"""Another opening."""\n' + energy.read_text())
    assert own.planned() == {}


def replace_in(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_editing_an_analysis_reruns_it_and_what_is_below(own):
    energy = own.repo / "workflow" / "isotrace" / "geometry" / "energy.py"
    energy.write_text(energy.read_text() + "\nUNUSED = 1\n")
    planned = own.planned()
    assert set(planned) == ENERGY
    assert planned["table"] == 3


def test_another_look_of_one_figure_redraws_only_that_figure(own):
    module = own.repo / "workflow" / "isotrace" / "figures" / "energy_over_training.py"
    replace_in(module, "(0, (3, 1.5))", "(0, (1, 1.5))")
    assert own.planned() == {"figure": 1, "report": 1}
    before = digests(own.at("figures"))
    own.done()
    after = digests(own.at("figures"))
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"energy_over_training.pdf", "energy_over_training.png"}


def test_without_the_cache_nothing_is_planned_and_figures_come_from_the_tables(own):
    own.done("clean_cache")
    assert not own.at("cache").exists()
    assert own.at("moments/decoder/step3.json").exists()
    assert own.planned() == {}
    before = digests(own.at("figures"))
    shutil.rmtree(own.at("figures"))
    assert own.planned() == {"figure": len(get_args(FigureName)), "report": 1}
    own.done()
    assert digests(own.at("figures")) == before
    assert not own.at("cache").exists()


def test_buckets_in_one_job_or_a_job_each_give_the_same_bytes(own):
    each = own.changed({"execution.batch_buckets": False})
    stages = ("energy", "controls", "rank_curve", "isotropy", "geometry")
    files = [f"{s}/encoder/step3/{b}.parquet" for s in stages for b in ("b0", "b1")]
    before = {name: own.at(name).read_bytes() for name in files}
    for name in files:
        own.at(name).unlink()
    output = each.done(*(f"results/{name}" for name in files))
    assert counted_jobs(output) == {"energy": 2, "controls": 2, "isotropy": 2, "geometry": 2}
    assert {name: own.at(name).read_bytes() for name in files} == before


def counted_jobs(output: str) -> dict[str, int]:
    rules = re.findall(r"^(?:local)?rule (\w+):$", output, flags=re.MULTILINE)
    return {rule: rules.count(rule) for rule in set(rules)}


def digests(folder: Path) -> dict[str, str]:
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(folder.iterdir()) if p.is_file()}


@pytest.mark.slow
def test_another_folder_and_number_of_cores_give_the_same_bytes(smoke, fresh):
    fresh.done(cores=1)
    assert digests(fresh.at("tables")) == digests(smoke.at("tables"))
    assert digests(fresh.at("figures")) == digests(smoke.at("figures"))
    assert fresh.at("report.html").read_bytes() == smoke.at("report.html").read_bytes()
