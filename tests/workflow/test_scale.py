"""What docs/how-to/scale.md tells for large studies: a part at a time, and one file for all metadata."""

import sqlite3

import pytest

from isotrace.bench.workload.study import write_study

TABLE = "results/tables/energy.parquet"
DATABASE = ("--persistence-backend", "db", "--persistence-backend-db-url", "sqlite:///.snakemake/metadata.db")


@pytest.mark.slow
def test_a_batch_of_a_table_plans_its_part_and_batches_go_in_order(fresh):
    sizes = {"models": 2, "checkpoints": 5, "buckets": 2}
    config = write_study(fresh.folder, sizes, batched=False)
    study = type(fresh)(fresh.repo, fresh.folder, config)
    first = study.planned("--batch", "table=1/2", "--", TABLE)
    assert 0 < first["energy"] < 2 * 5 * 2
    assert "table" not in first
    assert study.planned(TABLE)["energy"] == 2 * 5 * 2
    told = study.snakemake("--dry-run", "--batch", "table=2/2", "--", TABLE)
    assert told.returncode != 0
    assert "not all previous batches have been completed" in told.stdout


@pytest.mark.slow
def test_metadata_in_one_file_trigger_as_those_in_many(fresh):
    target = "results/corpus/wiki.json"
    fresh.done(target, *DATABASE)
    folder = fresh.folder / ".snakemake"
    assert not (folder / "metadata").exists() or not any((folder / "metadata").iterdir())
    with sqlite3.connect(folder / "metadata.db") as base:
        assert base.execute("select count(*) from sqlite_master").fetchone()[0] > 0
    base.close()
    assert fresh.planned(target, *DATABASE) == {}
    changed = fresh.changed({"corpora.wiki.max_documents": 11})
    assert changed.planned(target, *DATABASE) == {"corpus": 1}
