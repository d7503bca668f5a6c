"""The config: what ships is valid, every kind of mistake is one line, and parsing stays light."""

import json
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from configs import REMOVED, ROOT, smoke
from isotrace.errors import ConfigError
from isotrace.study import load, read

LOCAL = {"kind": "local", "path": "runs/checkpoint-{step}"}

# The change, and what the one line must hold: the key's path, the value, what is allowed.
MISTAKES = [
    ({"energy.draw": 5}, ["energy.draw: ", "unknown key", "config/README.md"]),
    ({"enrgy": {}}, ["enrgy: ", "unknown key"]),
    ({"models.decoder.source.stepz": [1]}, ["models.decoder.source.stepz: ", "unknown key"]),
    ({"tokens.sequence_length": "long"}, ["tokens.sequence_length: ", "'long'", "valid integer"]),
    ({"tokens.sequence_length": 2.5}, ["tokens.sequence_length: ", "2.5", "valid integer"]),
    ({"tokens.sequence_length": 4}, ["tokens.sequence_length: ", "4", "greater than or equal to 8"]),
    ({"seed": -1}, ["seed: ", "-1", "greater than or equal to 0"]),
    ({"study": "my study"}, ["study: ", "'my study'", "[A-Za-z0-9.-]"]),
    ({"study": REMOVED}, ["study: ", "required"]),
    ({"models": {}}, ["models: ", "at least 1"]),
    ({"models": None}, ["models: ", "None", "dictionary"]),
    ({"models.de coder": {}}, ["models.de coder", "[A-Za-z0-9.-]"]),
    ({"models.decoder.objective": "lm"}, ["models.decoder.objective: ", "'lm'", "'clm', 'mlm' or 'none'"]),
    ({"models.decoder.source.kind": "ftp"}, ["models.decoder.source: ", "'ftp'", "'train', 'local'"]),
    ({"models.decoder.source.steps": [0, 0]}, ["models.decoder.source", "steps", "[0, 0]", "without repeats"]),
    ({"models.decoder.source.steps": [5]}, ["models.decoder.source.steps: ", "[5]", "at least 2"]),
    (
        {"models.decoder.source.architecture": {"hidden_size": 4}},
        ["models.decoder.source", "architecture.model_type", "gpt_neox"],
    ),
    ({"models.decoder.total_steps": 5}, ["models.decoder.total_steps: ", "5", "below the largest stored step 10"]),
    ({"models.decoder.corpus": "books"}, ["models.decoder.corpus: ", "'books'", "['wiki']"]),
    ({"models.decoder.source": LOCAL | {"path": "runs/x"}}, ["models.decoder.source.path: ", "'runs/x'", r"\{step\}"]),
    ({"models.decoder.source": LOCAL}, ["models.decoder.source.path: ", "no folder", "runs/checkpoint-{step}"]),
    ({"corpora.wiki.source": "web"}, ["corpora.wiki: ", "'web'", "'source'", "'mediawiki', 'files', 'datasets'"]),
    ({"corpora.wiki.path": []}, ["corpora.wiki.path: ", "unknown key"]),
    ({"corpora.wiki.paths": []}, ["corpora.wiki.paths: ", "at least 1"]),
    ({"corpora.wiki": None}, ["corpora.wiki: ", "None"]),
    ({"bases.ranks": [8, 4]}, ["bases", "ranks", "[8, 4]", "rising"]),
    ({"bases.ranks": [4, 17]}, ["bases.ranks: ", "17", "half the width 32", "models.decoder"]),
    ({"bases.early_fraction": 0.2}, ["bases.early_fraction: ", "0.2", "1 early", "[0, 3, 10]", "two are needed"]),
    ({"bases.early_fraction": 0.9}, ["bases", "early_fraction", "0.9", "below late_fraction 0.7"]),
    ({"bases.early_fraction": 1.5}, ["bases.early_fraction: ", "1.5", "less than 1"]),
    ({"isotropy.ranks": [3]}, ["isotropy.ranks: ", "[3]", "bases.ranks [2, 4]"]),
    ({"dynamics.rank": 2}, ["dynamics.rank: ", "2", "isotropy.ranks"]),
    ({"dynamics.method": "svd"}, ["dynamics.method: ", "svd", "['pca']"]),
    ({"tokens.sequence_length": 65}, ["tokens.sequence_length: ", "65", "context 64", "models.decoder"]),
    ({"buckets.kind": "count"}, ["buckets", "edges", "[1000, 100, 10]"]),
    ({"masking.replace": [0.5, 0.1, 0.1]}, ["masking", "replace", "[0.5, 0.1, 0.1]", "sum to 1"]),
    ({"capture.dtype": "float16"}, ["capture.dtype: ", "'float16'", "'float32' or 'bfloat16'"]),
    ({"geometry.metrics": ["cosine"]}, ["geometry.metrics.0: ", "'cosine'", "'mean_cosine'"]),
    ({"figures.names": ["pie"]}, ["figures.names.0: ", "'pie'", "'energy_over_training'"]),
    ({"energy": [1]}, ["energy: ", "[1]", "dictionary"]),
]


@pytest.mark.parametrize(("edits", "said"), MISTAKES, ids=[next(iter(edits)) for edits, _ in MISTAKES])
def test_a_mistake_is_one_line_with_the_keys_path_the_value_and_what_is_allowed(edits, said):
    with pytest.raises(ConfigError) as caught:
        load(smoke(edits))
    line = str(caught.value)
    assert "\n" not in line
    assert line.startswith(said[0].removesuffix(": ")) or f"config: {said[0]}" in line
    assert [part for part in said if part not in line] == []


def test_two_mistakes_are_counted():
    with pytest.raises(ConfigError, match=r"tokens.sequence_length: .* 1 more"):
        load(smoke({"tokens.sequence_length": "long", "energy.draw": 5}))


def test_several_corpora_must_be_chosen_from():
    wiki = smoke()["corpora"]["wiki"]
    with pytest.raises(ConfigError, match=r"models.decoder.corpus: name one of \['books', 'wiki'\]"):
        load(smoke({"corpora.books": wiki}))


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
BLOCKS = [
    "tokens",
    "buckets",
    "sample",
    "masking",
    "capture",
    "bases",
    "energy",
    "isotropy",
    "dynamics",
    "models",
    "corpora",
]


@given(
    key=st.sampled_from([*BLOCKS, "seed", "study", "models.decoder", "models.decoder.source", "bases.ranks"]),
    value=values,
)
def test_no_value_whatever_gets_past_without_a_line(key, value):
    assert "\n" not in line_of(smoke({key: value}))


def line_of(raw):
    """What a config is refused with; nothing for one that is accepted. Anything but a `ConfigError` is an error."""
    try:
        load(raw)
    except ConfigError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("name", ["demo", "smoke"])
def test_shipped_configs_are_valid(name):
    study = read(ROOT / "config" / f"{name}.yaml")
    assert study.study == name
    for model, series in study.series.items():
        assert len(series.early(study.bases.early_fraction)) >= 2
        assert study.models[model].objective in ("clm", "mlm")


def test_the_demo_is_what_it_promises():
    """Step 0 first, at least ten checkpoints, three of them late, four buckets or more, steps at most 400."""
    study = read(ROOT / "config" / "demo.yaml")
    assert {m.objective for m in study.models.values()} == {"clm", "mlm"}
    assert len(study.bucket_names) >= 4
    for series in study.series.values():
        steps = [found.step for found in series.found]
        assert steps[0] == 0
        assert len(steps) >= 10
        assert steps[-1] <= 400
        assert sum(step >= 0.7 * series.total_steps for step in steps) >= 3


@pytest.mark.parametrize("content", ["", "- 1\n", "a: [1\n", "\x00"])
def test_a_file_that_is_no_mapping_is_one_line(tmp_path, content):
    file = tmp_path / "mine.yaml"
    file.write_text(content)
    with pytest.raises(ConfigError, match=r"mine.yaml: ") as caught:
        read(file)
    assert "\n" not in str(caught.value)
    with pytest.raises(ConfigError, match=r"none\.yaml"):
        read(tmp_path / "none.yaml")


def test_a_study_cannot_be_changed():
    with pytest.raises(ValidationError, match="frozen"):
        load(smoke()).seed = 2


def folders(tmp_path, steps, config='{"hidden_size": 32, "max_position_embeddings": 64}', weights=True):
    for step in steps:
        folder = tmp_path / f"checkpoint-{step}"
        folder.mkdir()
        (folder / "config.json").write_text(config)
        (folder / "tokenizer.json").write_text("{}")
        if weights:
            (folder / "model.safetensors").touch()
    return {"models.decoder.source": {"kind": "local", "path": str(tmp_path / "checkpoint-{step}")}}


def test_a_local_series_is_found_in_order_of_step(tmp_path):
    study = load(smoke(folders(tmp_path, [1000, 0, 90, 200])))
    assert study.series["decoder"].ids == ["step0", "step90", "step200", "step1000"]
    assert study.series["decoder"].total_steps == 1000
    assert study.series["decoder"].early(0.2) == ["step0", "step90", "step200"]


def test_a_local_series_is_checked_before_any_job(tmp_path):
    edits = folders(tmp_path, [0, 10, 100])
    with pytest.raises(ConfigError, match=r"bases.ranks: 17 is above half the width 32 of .*checkpoint-0"):
        load(smoke(edits | {"bases.ranks": [4, 17]}))
    with pytest.raises(ConfigError, match=r"tokens.sequence_length: 65 is above the context 64 of .*checkpoint-0"):
        load(smoke(edits | {"tokens.sequence_length": 65}))


def test_a_local_series_without_weights_is_refused_and_one_folder_without_is_not(tmp_path):
    edits = folders(tmp_path, [0, 10, 100], weights=False)
    with pytest.raises(ConfigError, match=r"models.decoder.source.path: none of the 3 folders .* holds weights"):
        load(smoke(edits))
    (tmp_path / "checkpoint-10" / "model.safetensors").touch()
    assert len(load(smoke(edits)).series["decoder"].found) == 3


LIGHT = """
import json, sys
import isotrace.study, isotrace.params
study = isotrace.study.read(sys.argv[1])
isotrace.params.Params(study).capture("decoder", "step3")
print(json.dumps(sorted(name for name in sys.modules if "." not in name)))
"""


def test_parsing_imports_nothing_heavy():
    """Every job of a cluster parses again."""
    command = [sys.executable, "-c", LIGHT, str(ROOT / "config" / "smoke.yaml")]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    heavy = {"torch", "zarr", "xarray", "matplotlib", "transformers", "pandas", "numpy", "scipy", "h5netcdf"}
    assert heavy & set(json.loads(out)) == set()


def test_a_local_series_without_a_tokenizer_is_refused(tmp_path):
    edits = folders(tmp_path, [0, 10, 100])
    (tmp_path / "checkpoint-0" / "tokenizer.json").unlink()
    with pytest.raises(ConfigError, match=r"models.decoder.source.tokenizer: .*checkpoint-0 holds no tokenizer.json"):
        load(smoke(edits))
