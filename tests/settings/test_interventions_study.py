"""The study of interventions: each variant is the plain training but for one key, and impossible keys are refused."""

from typing import Any

import pytest
from pydantic import ValidationError

from configs import ROOT
from isotrace.params import Params
from isotrace.settings.sources import Training
from isotrace.study import read

CHANGED = {
    "plain": {},
    "qk-norm": {"architecture.qk_layernorm": True},
    "tied": {"architecture.tie_word_embeddings": True},
    "logits-half": {"attention_scale": 0.5},
    "logits-double": {"attention_scale": 2.0},
    "smoothing": {"label_smoothing": 0.1},
    "isotropic": {"isotropy_weight": 0.1},
    "isotropic-strong": {"isotropy_weight": 1.0},
    "anisotropic": {"isotropy_weight": -1.0},
}


def leaves(block: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in block.items():
        found |= leaves(value, f"{prefix}{name}.") if isinstance(value, dict) else {f"{prefix}{name}": value}
    return found


def test_every_variant_differs_from_the_plain_training_in_one_key() -> None:
    study = read(ROOT / "config" / "interventions.yaml")
    params = {model: leaves(Params(study).train(model)) for model in study.models}
    plain = params["plain"]
    found = {
        model: {name: value for name, value in spec.items() if name not in plain or plain[name] != value}
        for model, spec in params.items()
    }
    assert found == CHANGED
    assert all(set(plain) <= set(spec) for spec in params.values())


@pytest.mark.parametrize(
    "change",
    [
        {"label_smoothing": 1.0},
        {"label_smoothing": -0.1},
        {"attention_scale": 0.0},
        {"isotropy_shrinkage": 1.0},
        {"isotropy_site": "blocks"},
    ],
    ids=str,
)
def test_a_value_without_a_meaning_is_refused(change: dict[str, Any]) -> None:
    whole: dict[str, Any] = {"kind": "train", "architecture": {"model_type": "phi"}, "steps": [0, 10]}
    Training.model_validate(whole)
    with pytest.raises(ValidationError, match=next(iter(change))):
        Training.model_validate(whole | change)
