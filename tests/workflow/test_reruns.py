"""What a change reruns, and what it does not: dry runs and real reruns on copies of the finished smoke study."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import get_args

import pytest
from running import Study

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
ALL_BELOW_CAPTURE = {"capture", "untrained"} | READS_ROWS | BELOW_TABLES
MODULES = {"embed": "gpt_neox.embed_in", "blocks": "gpt_neox.layers", "final_norm": "gpt_neox.final_layer_norm"}

# A change, and every rule that is to run again.
CHANGES = [
    ({"bases.ranks": [3, 4]}, {"subspaces"} | ENERGY),
    (
        {"bases.ranks": [2, 4, 8]},
        {"bases", "moving", "subspaces", "isotropy", "geometry"} | ENERGY,
    ),
    ({"energy.resamples": 210}, ENERGY),
    ({"subspaces.draws": 50}, {"subspaces", "table", "figure", "report"}),
    ({"controls.outlier_dimensions": 2}, {"controls", "table", "figure", "card", "report"}),
    ({"energy.draws": {"complement": 50, "ambient": 99, "variance_weighted": 39}}, ENERGY - {"controls"}),
    ({"isotropy.draws": 50}, {"isotropy", "table", "figure"} | BELOW_TABLES),
    ({"frequency.min_types": 10}, {"frequency", "table", "figure"} | BELOW_TABLES),
    ({"figures.venue": "acl"}, {"figure", "report"}),
    ({"buckets.number": 3}, {"sample"} | ALL_BELOW_CAPTURE),
    ({"sample.rows_per_bucket": {"fit": 100, "eval": 200}}, {"sample"} | ALL_BELOW_CAPTURE),
    ({"capture.batch_size": 8}, ALL_BELOW_CAPTURE),
    ({"capture.moments_tokens": "all"}, {"sample"} | ALL_BELOW_CAPTURE),
    ({"capture.weight_gradients": "moments"}, ALL_BELOW_CAPTURE - {"untrained"}),
    ({"store.dtype": "float16"}, ALL_BELOW_CAPTURE - {"untrained"}),
    ({"models.decoder.modules": MODULES}, ALL_BELOW_CAPTURE),
    ({"masking.rate": 0.25}, {"sample", "train", "audit_checkpoint", "lock"} | ALL_BELOW_CAPTURE),
    (
        {"bases.pool_center": "checkpoint"},
        {"bases", "moving", "subspaces", "controls", "energy", "isotropy", "geometry", "table", "figure"}
        | BELOW_TABLES,
    ),
    ({"bases.late_fraction": 0.8}, {"table", "figure"} | BELOW_TABLES),
    ({"dynamics.resamples": 600}, BELOW_TABLES),
    ({"card.causes": {"bucket_gap": 0.3}}, {"card", "report"}),
    ({"geometry.groups": 10}, {"geometry", "untrained", "table", "figure"} | BELOW_TABLES),
    ({"execution.batch_buckets": False}, {"report"}),
]


@pytest.fixture(scope="module")
def plans(smoke):
    """What a dry run of each change plans in the folder of the finished study, all from one process."""
    return smoke.plans({str(edits): edits for edits, _ in CHANGES})


@pytest.mark.parametrize(("edits", "rules"), CHANGES, ids=[next(iter(edits)) for edits, _ in CHANGES])
def test_a_key_reruns_what_reads_it_and_what_is_below(plans, edits, rules):
    assert set(plans[str(edits)]) == rules


RANDOM = {
    "model_type": "gpt_neox",
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
}


def test_a_model_more_touches_no_other(smoke):
    source = {"kind": "init", "architecture": RANDOM, "vocabulary": 512, "seeds": [0, 1]}
    planned = smoke.plans({"": {"models.random": {"objective": "clm", "source": source}}})[""]
    twice = ("initialise", "audit_checkpoint", "capture", "attention", "energy", "controls", "isotropy", "geometry")
    assert {rule: planned[rule] for rule in twice} == dict.fromkeys(twice, 2)
    assert {rule: planned[rule] for rule in ("tokenizer", "tokens", "sample", "lock", "moving", "subspaces")} == (
        dict.fromkeys(("tokenizer", "tokens", "sample", "lock", "moving", "subspaces"), 1)
    )
    assert "train" not in planned


def test_a_mask_reruns_the_masked_model_only(smoke, tmp_path):
    edited = Study(smoke.repo, tmp_path, smoke.config).changed({"masking.rate": 0.25})
    planned = Study(smoke.repo, smoke.folder, edited.config).planned()
    assert (planned["train"], planned["sample"], planned["capture"]) == (1, 1, 3)


def test_a_second_run_has_nothing_to_do(own):
    began = time.monotonic()
    assert "Nothing to be done" in own.done()
    assert time.monotonic() - began < 60
    assert own.planned() == {}


def git(folder: Path, *words: str) -> None:
    who = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


def test_another_place_seed_of_hashes_and_commit_plan_nothing(own, monkeypatch):
    energy = own.repo / "workflow" / "isotrace" / "geometry" / "energy.py"
    git(own.repo, "init")
    git(own.repo, "add", ".")
    git(own.repo, "commit", "-m", "one")
    git(own.repo, "checkout", "-b", "other")
    for file in (energy, own.repo / "config" / "claims.yaml", own.config):
        file.write_text(file.read_text() + "\n# here\n")
    git(own.repo, "commit", "-am", "two")
    git(own.repo, "checkout", "main")
    monkeypatch.setenv("PYTHONHASHSEED", "4711")
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


def test_cleaned_rows_are_captured_again_by_leave_only(own, refused):
    own.done("clean_cache")
    edited = own.changed({"bases.ranks": [2, 4, 8]})
    line = refused(edited.snakemake())
    assert "cleaned rows of 6 checkpoints (decoder step0, decoder step3, decoder step10, encoder step0" in line
    assert "of jobs when last done" in line
    assert "isotrace run --recapture" in line
    assert not own.at("cache").exists()
    assert "cleaned rows of 6 checkpoints" in isotrace(edited, "plan")
    shown = isotrace(edited, "run", "-n", "--snakefile", str(edited.repo / "Snakefile"))
    assert "bases         4  rank 4 -> 8" in shown
    assert "cleaned rows of 6 checkpoints" in shown
    leave = ("--config", "recapture=true")
    assert own.planned(*leave) == {}
    assert edited.planned(*leave)["capture"] == 6
    edited.done("results/cache/decoder/step3.json", *leave)
    assert own.at("cache/decoder/step3.json").exists()


def isotrace(study: Study, *words: str) -> str:
    command = [sys.executable, "-m", "isotrace", *words, "--configfile", str(study.config)]
    environment = study.environment()
    return subprocess.run(command, cwd=study.folder, env=environment, capture_output=True, text=True, check=True).stdout


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


def page_but_runtime(study):
    """The report without what its jobs took, which no two runs share."""
    page, cut = re.subn("<section id=runtime>.*?</section>", "", study.at("report.html").read_text(), flags=re.DOTALL)
    assert cut == 1
    return page


@pytest.mark.slow
def test_another_folder_and_number_of_cores_give_the_same_bytes(smoke, fresh):
    fresh.done(cores=1)
    assert digests(fresh.at("tables")) == digests(smoke.at("tables"))
    assert digests(fresh.at("figures")) == digests(smoke.at("figures"))
    assert page_but_runtime(fresh) == page_but_runtime(smoke)
