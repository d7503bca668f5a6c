"""Interventions in training do what they say: losses equal their definitions, factors end up in stored weights."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from test_train import Killed, digests
from test_train import spec as training

from isotrace.checkpoints.attention_scale import LAYERS, folded, scale_attention
from isotrace.checkpoints.initialise import initial_model
from isotrace.checkpoints.load import load_model
from isotrace.checkpoints.train import train
from isotrace.checkpoints.training_loss import TrainingLoss, isoscore_star, smoothed
from isotrace.corpus.tokenizer import load_tokenizer
from isotrace.errors import ConfigError
from isotrace.geometry.isotropy import isoscore_star as reference
from isotrace.geometry.moments import moments

SIZES = {
    "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32,
    "max_position_embeddings": 16,
}  # fmt: skip
FAMILIES: dict[str, dict[str, Any]] = {
    "gpt_neox": {"model_type": "gpt_neox", **SIZES},
    "llama": {"model_type": "llama", **SIZES},
    "grouped": {"model_type": "llama", **SIZES, "num_attention_heads": 4, "num_key_value_heads": 2},
    "olmo2": {"model_type": "olmo2", **SIZES},
    "phi": {"model_type": "phi", **SIZES},
    "phi with QK-norm": {"model_type": "phi", **SIZES, "qk_layernorm": True},
    "qwen3": {"model_type": "qwen3", **SIZES, "num_key_value_heads": 2, "head_dim": 8},
}
SCALES = [0.3, 2.0]


@pytest.fixture
def make(tokenizer_folders: dict[str, Path]) -> Any:
    """An untrained model with biases and norms that are not at their trivial start."""

    def made(architecture: dict[str, Any], objective: str = "clm") -> Any:
        model = initial_model(architecture, objective, load_tokenizer(tokenizer_folders[objective]), 0).eval()
        draw = torch.Generator().manual_seed(1)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.3 * torch.randn(parameter.shape, generator=draw))
        return model

    return made


@pytest.fixture
def batch(ids: NDArray[np.int32]) -> torch.Tensor:
    return torch.from_numpy(ids[:4].astype(np.int64))


def logits(model: Any, batch: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        found: torch.Tensor = model(input_ids=batch).logits
    return found


@pytest.mark.parametrize("objective", ["clm", "mlm"])
@pytest.mark.parametrize("smoothing", [0.1, 0.5])
def test_a_smoothed_loss_is_torchs_and_the_mixture_it_stands_for(
    make: Any, batch: torch.Tensor, objective: str, smoothing: float
) -> None:
    model = make(training(objective)["architecture"], objective)
    labels = batch.clone()
    if objective == "mlm":
        labels[:, ::3] = -100
    got = TrainingLoss(model, training(objective, label_smoothing=smoothing))(batch, labels)
    scores = logits(model, batch)
    scores, wanted = (scores[:, :-1], labels[:, 1:]) if objective == "clm" else (scores, labels)
    cross = torch.nn.functional.cross_entropy
    torchs = cross(scores.flatten(0, 1), wanted.flatten(), label_smoothing=smoothing)
    torch.testing.assert_close(got.detach(), torchs, rtol=0, atol=0)
    logs = scores.double().log_softmax(-1)[wanted != -100]
    nll = -logs.gather(-1, wanted[wanted != -100][:, None]).mean()
    mixture = (1 - smoothing) * nll - smoothing * logs.mean()
    torch.testing.assert_close(got.detach().double(), mixture, rtol=1e-5, atol=0)


def test_unsmoothed_it_is_the_models_own_loss(make: Any, batch: torch.Tensor) -> None:
    model = make(FAMILIES["phi"])
    own = model(input_ids=batch, labels=batch).loss
    torch.testing.assert_close(smoothed(logits(model, batch), batch, 0.0, shift=True), own.detach())
    assert torch.equal(TrainingLoss(model, training())(batch, batch), own)


@pytest.mark.parametrize("shrinkage", [0.0, 0.1, 0.7])
@pytest.mark.parametrize("shape", [(50, 8), (6, 20)])
def test_the_term_is_the_geometrys_star_score(shape: tuple[int, int], shrinkage: float) -> None:
    rows = np.random.default_rng(0).standard_normal(shape) * np.arange(1, shape[1] + 1) + 5
    want = reference(moments(rows), c0="scaled_identity", shrinkage=shrinkage)
    assert float(isoscore_star(torch.from_numpy(rows), shrinkage)) == pytest.approx(want, rel=1e-12)


def test_the_terms_gradient_is_that_of_finite_differences() -> None:
    rows = torch.randn((9, 5), dtype=torch.float64, generator=torch.Generator().manual_seed(0), requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: isoscore_star(x, 0.1), (rows,))


@pytest.mark.parametrize("site", ["embed", "block.1", "final_norm"])
@pytest.mark.parametrize("weight", [2.0, -0.5])
def test_the_loss_gains_the_term_of_its_site(make: Any, batch: torch.Tensor, site: str, weight: float) -> None:
    model = make(FAMILIES["phi"])
    plain = TrainingLoss(model, training())(batch, batch)
    modules = {"embed": model.model.embed_tokens, "block.1": model.model.layers[1]}
    kept: list[torch.Tensor] = []
    norm = modules.get(site, model.model.final_layernorm)
    norm.register_forward_hook(lambda _module, _given, output: kept.append(output))
    loss = TrainingLoss(model, training(isotropy_weight=weight, isotropy_shrinkage=0.2, isotropy_site=site))
    got = loss(batch, batch)
    rows = moments(kept[-1].detach().flatten(0, 1).numpy())
    want = float(plain.detach()) + weight * (1 - reference(rows, c0="scaled_identity", shrinkage=0.2))
    assert float(got.detach()) == pytest.approx(want, rel=1e-6)
    got.backward()
    assert all(parameter.grad is None or parameter.grad.isfinite().all() for parameter in model.parameters())


@pytest.mark.parametrize("weight", [5.0, -5.0])
def test_training_moves_isotropy_where_the_weight_says(
    tokenizer_folders: dict[str, Path], ids: NDArray[np.int32], tmp_path: Path, weight: float
) -> None:
    scores = {}
    for name, w in (("plain", 0.0), ("moved", weight)):
        train(
            training(isotropy_weight=w, steps=[30], total_steps=30),
            ids, tokenizer_folders["clm"], tmp_path / name, threads=1,
        )  # fmt: skip
        model: Any = load_model(tmp_path / name / "checkpoint-30", "clm")
        hidden = model.gpt_neox(input_ids=torch.from_numpy(ids.astype(np.int64))).last_hidden_state
        scores[name] = float(isoscore_star(hidden.flatten(0, 1), 0.1))
    assert np.sign(scores["moved"] - scores["plain"]) == np.sign(weight)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("scale", SCALES)
def test_folded_weights_give_the_scaled_logits_without_the_factor(
    make: Any, batch: torch.Tensor, family: str, scale: float
) -> None:
    model, plain = make(FAMILIES[family]), make(FAMILIES[family])
    before = logits(model, batch)
    scale_attention(model, scale)
    scaled = logits(model, batch)
    assert (scaled - before).abs().max() > 0.01
    weights = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with folded(model, scale):
        plain.load_state_dict(model.state_dict())
    torch.testing.assert_close(logits(plain, batch), scaled, rtol=1e-4, atol=1e-4)
    assert all(torch.equal(tensor, weights[name]) for name, tensor in model.state_dict().items())


def test_the_factor_is_one_of_the_logits(make: Any, batch: torch.Tensor) -> None:
    """Eager attention: the weights are the softmax of logits that are ``scale`` times as large."""
    model = make(FAMILIES["phi"])
    model.set_attn_implementation("eager")
    one = model(input_ids=batch, output_attentions=True).attentions[0].double()
    scale_attention(model, 0.3)
    got = model(input_ids=batch, output_attentions=True).attentions[0].double()
    want = one**0.3 / (one**0.3).sum(-1, keepdim=True)
    torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-6)


def test_every_layer_that_may_be_scaled_is_tested(make: Any) -> None:
    found = {type(m).__name__ for a in FAMILIES.values() for m in make(a).modules() if type(m).__name__ in LAYERS}
    assert found == set(LAYERS)


def test_a_factor_of_one_changes_no_bit(make: Any, batch: torch.Tensor) -> None:
    model = make(FAMILIES["gpt_neox"])
    before, state = logits(model, batch), {n: t.clone() for n, t in model.state_dict().items()}
    scale_attention(model, 1.0)
    with folded(model, 1.0):
        assert torch.equal(logits(model, batch), before)
        assert all(torch.equal(tensor, state[name]) for name, tensor in model.state_dict().items())


CHANGES = {"attention_scale": 0.3, "label_smoothing": 0.1, "isotropy_weight": 1.0}


@pytest.mark.parametrize("change", [{name: value} for name, value in CHANGES.items()], ids=list(CHANGES))
def test_each_change_is_resumed_to_the_same_bytes(
    tokenizer_folders: dict[str, Path], ids: NDArray[np.int32], tmp_path: Path, change: dict[str, Any]
) -> None:
    def stop(step: int, loss: float) -> None:
        if step == 8:
            raise Killed

    folder, changed = tokenizer_folders["clm"], training(**change)
    train(changed, ids, folder, tmp_path / "whole", threads=1)
    with pytest.raises(Killed):
        train(changed, ids, folder, tmp_path / "killed", threads=1, progress=stop)
    train(changed, ids, folder, tmp_path / "killed", threads=1)
    train(training(), ids, folder, tmp_path / "plain", threads=1)
    assert digests(tmp_path / "killed") == digests(tmp_path / "whole")
    assert digests(tmp_path / "whole") != digests(tmp_path / "plain")


def test_a_tied_embedding_is_one_tensor_after_training(
    tokenizer_folders: dict[str, Path], ids: NDArray[np.int32], tmp_path: Path
) -> None:
    architecture = {**FAMILIES["phi"], "tie_word_embeddings": True}
    train(training(architecture=architecture), ids, tokenizer_folders["clm"], tmp_path, threads=1)
    model: Any = load_model(tmp_path / "checkpoint-9", "clm")
    assert model.get_output_embeddings().weight is model.get_input_embeddings().weight


@pytest.mark.parametrize(
    ("objective", "change", "says"),
    [
        ("mlm", {"attention_scale": 2.0}, "attention_scale: ModernBertForMaskedLM has no layer among GPTNeoX"),
        ("clm", {"isotropy_weight": 1.0, "isotropy_site": "block.7"}, "'block.7' is not a site of this model"),
    ],
)
def test_what_a_family_cannot_do_is_refused(
    tokenizer_folders: dict[str, Path], ids: NDArray[np.int32], tmp_path: Path,
    objective: str, change: dict[str, Any], says: str,
) -> None:  # fmt: skip
    with pytest.raises(ConfigError, match=says):
        train(training(objective, **change), ids, tokenizer_folders[objective], tmp_path, threads=1)
