"""docs/how-to/module.md as written: another workflow takes this one in as a module and builds on its tables."""

import os
import subprocess
import sys

import yaml
from running import counted

from documented import ROOT, write_files

CONFIG = '{"model_type": "gpt_neox", "hidden_size": 32, "max_position_embeddings": 128, "vocab_size": 512}'


def test_the_outer_workflow_of_the_page_plans_the_tables_it_needs(tmp_path):
    write_files("how-to/module.md", tmp_path)
    (tmp_path / "isotrace").symlink_to(ROOT)
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "one.txt").write_text("some text")
    for step in (1, 2, 10):
        folder = tmp_path / "runs" / "mine" / f"checkpoint-{step}"
        folder.mkdir(parents=True)
        for name in ("config.json", "tokenizer.json", "model.safetensors"):
            (folder / name).write_text(CONFIG)
    planned = subprocess.run(
        [sys.executable, "-m", "snakemake", "--dry-run", "--cores", "2"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT / "workflow")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert planned.returncode == 0, planned.stdout
    jobs = counted(planned.stdout)
    assert (jobs["summary"], jobs["isotrace_capture"], jobs["isotrace_energy"]) == (1, 3, 12)


def test_the_catalog_finds_what_it_expects():
    usage = yaml.safe_load((ROOT / ".snakemake-workflow-catalog.yml").read_text())["usage"]
    assert set(usage) == {"mandatory-flags", "software-stack-deployment"}
    assert (ROOT / "workflow" / "Snakefile").is_file()
    assert (ROOT / "config" / "README.md").read_text().startswith("# The config")
    readme = (ROOT / "README.md").read_text().lower()
    assert "snakemake" in readme
    assert "workflow" in readme
    assert list((ROOT / "workflow" / "rules").glob("*.smk"))
