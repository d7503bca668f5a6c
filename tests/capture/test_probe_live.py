"""A probe leaves the model that is being trained as it found it; the Trainer logs what it measures."""

import numpy as np
import pytest
import torch
from samples import sample_of
from transformers import Trainer, TrainingArguments

from isotrace.callback import IsotropyCallback, every_steps
from isotrace.capture.probe import Probe
from isotrace.corpus.held_out import held_out_passes
from isotrace.errors import ConfigError, DataError


def probe_of(case):
    return Probe(sample_of(case, copies=12), rank=2, min_rows=8, groups=5)


def states(model):
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def test_the_model_is_as_before(make_case):
    case = make_case("llama")
    case.model.train().requires_grad_(True)
    frozen = next(case.model.parameters()).requires_grad_(False)
    case.model.config.use_cache = True
    trained = [p.requires_grad for p in case.model.parameters()]
    case.model(input_ids=case.ids, labels=case.ids).loss.backward()
    before, gradients = states(case.model), [p.grad for p in case.model.parameters()]
    kept = [None if g is None else g.clone() for g in gradients]
    random = torch.get_rng_state()
    assert probe_of(case).measure(case.model)
    assert (case.model.training, case.model.config.use_cache) == (True, True)
    assert [p.requires_grad for p in case.model.parameters()] == trained
    assert frozen.grad is None
    assert torch.equal(torch.get_rng_state(), random)
    for name, tensor in states(case.model).items():
        assert torch.equal(tensor, before[name])
    for now, then, copy in zip(case.model.parameters(), gradients, kept, strict=True):
        assert now.grad is then
        assert copy is None or torch.equal(now.grad, copy)


def test_two_probes_of_one_model_are_equal_and_mode_does_not_matter(make_case):
    case = make_case("modernbert")
    first = probe_of(case).measure(case.model)
    assert probe_of(case).measure(case.model.train()) == first
    assert {name.partition("/")[0] for name in first} >= {
        "mean_cosine",
        "norm_drift",
        "energy_ratio",
        "drift_q",
    }


def test_a_family_whose_attention_cannot_be_read_has_the_other_measures(make_case, monkeypatch):
    from isotrace.capture import attention

    case = make_case("gpt2")
    everything = probe_of(case).measure(case.model)
    monkeypatch.setattr(attention, "NAME", "sdpa")  # nothing reads what this one computes
    without = probe_of(case).measure(case.model)
    assert set(everything) - set(without) == {"drift_q", "drift_k", "sharpness"}
    assert without.items() <= everything.items()


class Texts(torch.utils.data.Dataset):
    def __init__(self, ids):
        self.ids = ids

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "labels": self.ids[i]}


def test_the_trainer_logs_measures_at_their_steps(make_case, tmp_path):
    case = make_case("gpt_neox")
    case.model.requires_grad_(True)
    arguments = TrainingArguments(
        output_dir=str(tmp_path), max_steps=5, report_to=[], use_cpu=True, save_strategy="no", disable_tqdm=True
    )
    trainer = Trainer(model=case.model, args=arguments, train_dataset=Texts(case.ids.repeat(4, 1)))
    untrained = {f"isotrace/{k}": v for k, v in probe_of(case).measure(case.model).items()}
    trainer.add_callback(IsotropyCallback(probe_of(case), trainer.log, every=2))
    trainer.train()
    logged = {entry["step"]: entry for entry in trainer.state.log_history if "isotrace/loss" in entry}
    assert sorted(logged) == [0, 2, 4]
    assert {k: v for k, v in logged[0].items() if k.startswith("isotrace/")} == untrained
    assert logged[4]["isotrace/loss"] < logged[0]["isotrace/loss"]


def test_a_plain_loop_measures_when_it_is_due(make_case):
    case = make_case("gpt_neox")
    logged = []
    hook = every_steps(probe_of(case), logged.append, every=3)
    wrapped = torch.nn.DataParallel(case.model)
    assert [hook(wrapped, step) for step in range(5)] == [True, False, False, True, False]
    assert len(logged) == 2
    with pytest.raises(ConfigError, match="every: 0"):
        every_steps(probe_of(case), logged.append, every=0)


class Tokenizer:
    all_special_ids = (0,)

    def __init__(self, mask):
        self.mask_token_id = mask

    def __len__(self):
        return 40


def test_held_out_sequences_are_divided_and_counted(make_case):
    ids = np.random.default_rng(0).integers(1, 40, (30, 12))
    passes = held_out_passes(ids, Tokenizer(None), sequences=(4, 6), rows_per_bucket=(20, 20), buckets=2)
    assert np.bincount(passes.split).tolist() == [4, 6]
    assert set(passes.sequence[passes.split == 0] % 2) == {0}
    assert passes.counts.sum() == ids.size
    for bucket in range(2):
        assert np.sum((passes.rows["bucket"] == bucket) & (passes.rows["split"] == 1)) == 20
    case = make_case("gpt_neox")
    assert Probe(passes, rank=2, min_rows=8, groups=5).measure(case.model)["loss"] > 0
    masked = held_out_passes(ids, Tokenizer(3), objective="mlm", sequences=(4, 6), buckets=2)
    assert (masked.inputs == 3).sum() > (ids == 3).sum() / 3
    with pytest.raises(DataError, match="no mask token"):
        held_out_passes(ids, Tokenizer(None), objective="mlm")
    with pytest.raises(DataError, match="the text has 15"):
        held_out_passes(ids, Tokenizer(None))
