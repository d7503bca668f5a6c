"""A study of dumped vectors alone, through Snakemake: no text, no model, every table, figure and the report."""

from typing import Any

import numpy as np
import pytest
from running import Study

from dumped import arrays, bare, config, model, write
from isotrace.store import read_manifest

STEPS = (0, 10, 20, 90, 100)


@pytest.fixture
def dumped(fresh: Study) -> Study:
    """``full``: .npy folders, step 20 a copy of 10, step 90 not finite; ``bare``: activations of independent rows."""
    dumps = fresh.folder / "dumps"
    for step in STEPS:
        content = arrays(10 if step == 20 else step)
        if step == 90:
            content["acts"][0, 0, 0] = np.nan
        write(dumps / f"full_{step}", content)
    for step in (0, 10, 100):
        write(dumps / f"bare_{step}.npz", {"acts": arrays(step)["acts"]})
    models: dict[str, Any] = {"full": model("dumps/full_{step}"), "bare": bare("dumps/bare_{step}.npz")}
    drawn = ["energy_over_training", "isotropy_ablation", "frequency_geometry", "attention_over_training"]
    edits = {"tokens": {"eval_fraction": 0.5}, "figures": {"names": drawn}}
    return fresh.written(config(models) | edits)


@pytest.mark.slow
def test_everything_downstream_works_on_dumps(dumped: Study) -> None:
    rules = dumped.planned()
    assert (rules["audit_vectors"], rules["vectors"], rules["energy"], rules["energy_all"]) == (8, 8, 5, 3)
    assert not {"corpus", "tokens", "tokenizer", "sample", "train", "capture", "frequency"} & set(rules)
    dumped.done()
    audit = dumped.table("audit")
    assert {(f.checkpoint, f.finding) for f in audit.itertuples()} == {("step20", "duplicate"), ("step90", "broken")}
    for stage, value in (("energy", "energy"), ("isotropy", "score"), ("geometry", "value")):
        table = dumped.table(stage)
        assert set(table.loc[table["model"] == "bare", "bucket"]) == {"all"}
        assert {"b0", "b1"} <= set(table.loc[table["model"] == "full", "bucket"])
        gradient = table[(table["model"] == "bare") & (table["quantity"] == "gradient")]
        assert gradient[value].isna().all()
        assert set(gradient["reason"]) == {"the dump holds no gradients"}
        lost = table[(table["model"] == "full") & (table["checkpoint"] == "step90")]
        assert all("not finite" in reason for reason in lost["reason"])
        assert lost[value].isna().all()
    energy = dumped.table("energy")
    found = energy[(energy["model"] == "full") & (energy["null_space"] == "complement") & (energy["basis"] == "fixed")]
    by_method = found[(found["rank"] == 3) & found["ratio"].notna()].groupby("method")["ratio"]
    assert by_method.min()["pca"] > 3 > by_method.max()["random"]
    assert set(dumped.table("attention")["reason"]) >= {"dumped vectors hold no attention"}
    assert dumped.at("report.html").stat().st_size > 10_000
    assert dumped.planned() == {}


@pytest.mark.slow
def test_a_new_dump_leaves_the_others_alone_and_a_changed_one_is_imported_again(dumped: Study) -> None:
    target = "results/bases/full/pca.nc"
    dumped.done(target)
    write(dumped.folder / "dumps" / "full_5", arrays(5))
    planned = dumped.planned(target)
    assert (planned["audit_vectors"], planned["vectors"]) == (1, 1)
    dumped.done(target)
    seal = dumped.at("cache/full/step0.json")
    before = read_manifest(seal)["attributes"]["tensors_digest"]
    np.save(dumped.folder / "dumps" / "full_0" / "acts.npy", arrays(0, seed=1)["acts"])
    planned = dumped.planned(target)
    assert (planned["audit_vectors"], planned["vectors"]) == (1, 1)
    dumped.done(target)
    assert read_manifest(seal)["attributes"]["tensors_digest"] != before


@pytest.mark.slow
def test_dumps_stand_beside_models_that_are_loaded(smoke: Study, dumped: Study) -> None:
    both = Study(smoke.repo, dumped.folder, smoke.config).changed(
        {"models.bare": bare("dumps/bare_{step}.npz"), "execution.batch_buckets": False}
    )
    planned = both.planned()
    assert planned["capture"] == 6
    assert planned["vectors"] == 3
    assert planned["energy"] == 2 * 3 * 2 + 3
    assert "energy_all" not in planned


def test_a_dump_without_sequences_is_one_line(dumped: Study, refused: Any) -> None:
    arrays_of = {"activations": "acts", "token_id": "ids"}
    edited = dumped.changed({"models.full.source.arrays": arrays_of})
    assert "name the array that says which sequence each row was read in" in refused(edited.snakemake("--dry-run"))
