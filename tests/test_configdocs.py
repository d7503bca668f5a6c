"""Schema, default config and table of keys are what the model says, and say something of every key."""

import json

import pytest
import yaml

from configs import ROOT, smoke
from isotrace.configdocs import DEFAULTS, SCHEMA, entries, texts
from isotrace.study import Study

FILES = texts()


@pytest.mark.parametrize("path", FILES, ids=str)
def test_generated_files_do_not_drift(path):
    assert (ROOT / path).read_text(encoding="utf-8") == FILES[path], "run: make docs"


def test_the_default_config_is_a_whole_config_of_defaults():
    raw = yaml.safe_load((ROOT / DEFAULTS).read_text())
    study = Study.model_validate(raw)
    given = {name: raw[name] for name in ("study", "corpora", "models")}
    assert study == Study.model_validate(given)


def test_every_key_is_described_and_required_ones_are_marked():
    found = list(entries())
    assert len({e.path for e in found}) == len(found)
    assert [e.path for e in found if len(e.description) < 8] == []
    required = {e.path for e in found if e.required}
    assert {"study", "corpora.NAME(files).source", "corpora.NAME(mixture).parts", "models.NAME.objective"} <= required
    assert "energy.draws.complement" in {e.path for e in found}


def test_counts_and_sizes_have_units():
    units = {e.path: e.unit for e in entries()}
    assert units["tokens.sequence_length"] == "tokens"
    assert units["models.NAME.source(train).batch_size"] == "sequences"
    assert units["bases.ranks"] == "components"


def test_the_schema_forbids_unknown_keys_and_knows_the_shipped_ones():
    schema = json.loads((ROOT / SCHEMA).read_text())
    assert schema["additionalProperties"] is False
    assert set(smoke()) <= set(schema["properties"])
    assert all(d.get("additionalProperties") is False for d in schema["$defs"].values() if "properties" in d)
