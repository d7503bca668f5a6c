"""Corpora in real runs: a mixture is made of its parts and its languages reach the tokens; a doubled key is refused."""

import json

import pandas as pd
import pytest
import yaml
from running import Study


@pytest.mark.slow
def test_a_mixture_is_made_once_its_parts_are_and_languages_reach_the_tokens(fresh: Study):
    lines = [{"text": f"la pierre et la lune numéro {i} " * 20} for i in range(40)]
    (fresh.folder / "fr.jsonl").write_text("\n".join(map(json.dumps, lines)))
    raw = yaml.safe_load(fresh.config.read_text())
    raw["corpora"]["fr"] = {"source": "files", "paths": ["fr.jsonl"], "language": "fr"}
    raw["corpora"]["mix"] = {"source": "mixture", "parts": {"wiki": 3, "fr": 1}}
    for model in raw["models"].values():
        model["corpus"] = "mix"
    study = fresh.written(raw)
    target = "results/tokens/decoder.json"
    assert study.planned(target) == {"corpus": 3, "tokenizer": 1, "tokens": 1}
    study.done(target)
    manifest = json.loads(study.at("corpus/mix.json").read_text())
    assert {name: part["language"] for name, part in manifest["parts"].items()} == {"fr": "fr", "wiki": "en"}
    documents = pd.read_parquet(study.at("corpus/mix/documents.parquet"))
    assert manifest["n_documents"] == len(documents)
    text = json.loads(study.at("tokens/decoder.json").read_text())["attributes"]["text"]
    assert {name: part["language"] for name, part in text.items()} == {"fr": "fr", "wiki": "en"}
    assert all(part["n_tokens"] > 0 for part in text.values())
    assert study.planned(target) == {}
    assert study.changed({"corpora.mix.parts": {"wiki": 1, "fr": 1}}).planned(target)["corpus"] == 1


def test_a_key_that_stands_twice_is_refused_while_parsing(fresh: Study, refused):
    study = fresh.changed({})
    study.config.write_text(study.config.read_text() + "seed: 3\n")
    assert "edited.yaml: seed: given twice, lines 2 and " in refused(study.snakemake())
