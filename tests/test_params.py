"""Params of rules: plain, sorted, the same in every process, and only what the rule reads."""

import json
import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from configs import ROOT, smoke
from isotrace.input_params import SCRIPTS, plain
from isotrace.params import Params
from isotrace.study import load

CALLS = {
    "corpus": ("wiki",),
    "tokenizer": ("decoder",),
    "tokens": ("decoder",),
    "sample": ("encoder",),
    "train": ("encoder",),
    "initialise": ("decoder", "init"),
    "dequantise": ("decoder",),
    "audit": ("decoder", ["step3"]),
    "lock": ("decoder",),
    "capture": ("decoder", "step3"),
    "bases": ("decoder", "pca"),
    "moving": ("decoder", "pca"),
    "subspaces": ("decoder",),
    "energy": ("decoder",),
    "controls": ("decoder",),
    "isotropy": ("decoder",),
    "geometry": ("decoder",),
    "frequency": ("decoder",),
    "attention": (),
    "untrained": ("decoder",),
    "toy": (),
    "tables": ("energy",),
    "dynamics": ("dynamics",),
    "claims": ("claims",),
    "figure": ("early_late",),
    "paper": (),
    "report": (),
    "card": (),
    "clean_cache": (),
    "calibration": (),
    "plan": (),
}
ANALYSES = ("energy", "controls", "isotropy", "geometry")


def params_of(raw):
    """What every rule gets, by rule."""
    params = Params(load(raw))
    found = {}
    for rule, given_ in CALLS.items():
        arguments = (rule, *given_) if rule in ANALYSES else given_
        method = "analysis" if rule in ANALYSES else "dynamics" if rule == "claims" else rule
        found[rule] = getattr(params, method)(*arguments)
    return found


def changed(edits):
    """The rules whose params differ after a change of the config."""
    before, after = params_of(smoke()), params_of(smoke(edits))
    return {rule for rule in before if before[rule] != after[rule]}


def assert_plain(value):
    assert type(value) in (str, int, float, bool, list, dict, type(None))
    if isinstance(value, dict):
        assert list(value) == sorted(value)
        assert all(type(key) is str for key in value)
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        assert_plain(inner)


@pytest.mark.parametrize("rule", CALLS)
def test_params_are_plain_and_sorted(rule):
    found = params_of(smoke())[rule]
    assert_plain(found)
    assert {"code", "threads"} <= set(found)
    assert json.loads(json.dumps(found)) == found


@pytest.mark.parametrize("rule", CALLS)
def test_params_hold_no_path_of_this_machine(rule):
    text = repr(params_of(smoke())[rule])
    assert str(ROOT) not in text
    assert os.uname().nodename not in text or len(os.uname().nodename) < 4


PRINT = """
import sys
sys.path.insert(0, sys.argv[1])
from test_params import params_of, smoke
print(repr(params_of(smoke())))
"""


def test_params_are_the_same_in_every_process():
    def printed(seed):
        command = [sys.executable, "-W", "ignore", "-c", PRINT, str(ROOT / "tests")]
        environment = os.environ | {"PYTHONHASHSEED": seed}
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    assert printed("0") == printed("4711") == repr(params_of(smoke())) + "\n"


def test_a_key_reaches_the_rules_that_read_it_and_no_other():
    assert changed({"energy.resamples": 210}) == {"energy", "controls", "report"}
    draws = {"complement": 99, "ambient": 99, "variance_weighted": 39}
    assert changed({"energy.draws": draws | {"ambient": 9}}) == {"energy", "report"}
    assert changed({"energy.draws": draws | {"variance_weighted": 9}}) == {"energy", "controls", "report"}
    assert changed({"controls.outlier_dimensions": 2}) == {"controls", "report"}
    assert changed({"subspaces.draws": 98}) == {"subspaces", "report"}
    assert changed({"untrained.seeds": [1, 2]}) == {"untrained", "report"}
    assert changed({"isotropy.draws": 98}) == {"isotropy", "report"}
    assert changed({"geometry.confidence": 0.9}) == {"geometry", "attention", "untrained", "paper", "report"}
    assert changed({"frequency.occurrences": 9}) == {"frequency", "report"}
    assert changed({"figures.venue": "acl"}) == {"figure", "paper", "report"}
    assert changed({"dynamics.resamples": 600}) == {"dynamics", "claims", "card", "report"}
    assert changed({"card.causes.bucket_gap": 0.3}) == {"card", "report"}
    assert changed({"corpora.wiki.max_documents": 11}) == {"corpus", "report"}
    assert changed({"models.encoder.source.learning_rate": 0.002}) == {"train", "report"}
    assert changed({"sample.exclude_first": False}) == {"sample", "report"}
    assert changed({"capture.batch_size": 8}) == {"capture", "untrained", "report"}
    assert changed({"capture.moments_tokens": "all"}) == {"sample", "capture", "report"}
    assert changed({"capture.weight_gradients": "moments"}) == {"capture", "report"}
    assert changed({"store.dtype": "bfloat16"}) == {"capture", "report"}
    assert changed({"models.decoder.modules": {"embed": "a.b", "blocks": "a.c"}}) == {"capture", "untrained", "report"}
    assert changed({"execution.batch_buckets": False}) == {"report"}
    assert changed({"execution.train_threads": 2}) == {"train", "report"}
    assert changed({"bases.late_fraction": 0.8}) == {"tables", "dynamics", "claims", "figure", "paper", "report"}
    assert changed({"pathvars": {"results": "elsewhere"}}) <= {"report"}
    assert changed({"storage.weights": "elsewhere"}) == {"report"}
    assert changed({"execution.numeric_threads": 2}) == set(CALLS) - {"train"}


def test_every_script_is_digested_in_some_rules_params():
    codes = {found["code"] for found in params_of(smoke()).values()}
    # A download is known by its commit and hashes: an edit of the code must not fetch a series again.
    downloads = {"prefetch", "prefetch_tokenizer"}
    dumped = {"audit_vectors", "vectors", "frequency_vectors"}  # the smoke study has none: tests/vectors
    perceived = {"perceive", "byte_tokenizer"}  # nor of these: tests/perception
    assert len(codes) == len({script.stem for script in SCRIPTS.glob("*.py")} - downloads - dumped - perceived)


@given(st.dictionaries(st.text(max_size=4), st.integers() | st.lists(st.integers(), max_size=3), max_size=6))
def test_the_order_of_keys_is_forgotten(mapping):
    backwards = dict(reversed(mapping.items()))
    assert repr(plain(mapping)) == repr(plain(backwards))


@pytest.mark.parametrize("value", [{1, 2}, ROOT, object(), b"x"])
def test_values_that_snakemake_would_drop_or_reorder_are_refused(value):
    with pytest.raises(TypeError, match="plain values only"):
        plain({"a": [value]})
