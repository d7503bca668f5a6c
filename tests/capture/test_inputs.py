"""What a forward call is given, for both ways of padding and for what an encoder-decoder denoises."""

import pytest
import torch
from families import EOS, LENGTHS, to_the_left

from isotrace.capture.inputs import forward_arguments
from isotrace.checkpoints.load import load_model

POSITIONED = ("roberta", "camembert")


def test_without_padding_a_model_is_given_ids_only(case):
    given = forward_arguments(case.model, case.ids, case.targets, torch.ones_like(case.ids))
    alone = forward_arguments(case.model, case.ids, case.targets)
    assert given.keys() == alone.keys() == {"input_ids"} | ({"position_ids"} if case.family in POSITIONED else set())


def test_positions_count_what_is_real_and_start_where_the_family_starts(case):
    mask = to_the_left(case.attention_mask)
    given = forward_arguments(case.model, *case.padded_left)
    assert given["attention_mask"].equal(mask)
    first = EOS + 1 if case.family in POSITIONED else 0
    for row, n, real in zip(given["position_ids"], LENGTHS, mask.bool(), strict=True):
        assert row[real].tolist() == list(range(first, first + n))
        assert ((row >= first) & (row < first + n)).all()


def test_logits_of_what_is_real_do_not_depend_on_padding(every):
    """Padded at the right, at the left, or not at all; a real eos has the padding's id in every sequence."""
    assert (every.padded_ids[every.attention_mask.bool()] == EOS).sum() >= 3
    right = every.model(**forward_arguments(every.model, *every.padded)).logits
    left = every.model(**forward_arguments(every.model, *every.padded_left)).logits
    for i, n in enumerate(LENGTHS):
        ids, targets = every.padded_ids[i : i + 1, :n], every.padded_targets[i : i + 1, :n]
        alone = every.model(**forward_arguments(every.model, ids, targets)).logits[0]
        for padded in (right[i, :n], left[i, -n:]):
            assert (padded - alone).abs().max() <= 1e-5 * alone.abs().max()


@pytest.mark.parametrize("family", ["gpt2", "bert", "roberta", "t5"])
def test_an_eos_hidden_as_if_it_were_padding_changes_the_logits(make_case, family):
    """Without this, the test above could not tell whether the mask or the id decides."""
    case = make_case(family)
    by_id = case.attention_mask * (case.padded_ids != EOS)
    right = case.model(**forward_arguments(case.model, *case.padded)).logits
    wrong = case.model(**forward_arguments(case.model, case.padded_ids, case.padded_targets, by_id)).logits
    assert (right - wrong)[case.attention_mask.bool()].abs().max() > 1e-3


def test_a_decoder_reads_the_original_ids_one_later_from_the_first_attended_position(make_case):
    model = make_case("t5").model
    masked, mask = torch.tensor([[3, 11, 3, 13], [9, 9, 3, 22]]), torch.tensor([[1, 1, 1, 1], [0, 0, 1, 1]])
    targets = torch.tensor([[10, -100, 12, -100], [-100, -100, 21, -100]])
    given = forward_arguments(model, masked, targets, mask)
    assert given["input_ids"].equal(masked)
    assert given["decoder_input_ids"][0].tolist() == [0, 10, 11, 12]
    assert given["decoder_input_ids"][1, 2:].tolist() == [0, 21]
    assert given["attention_mask"].equal(mask)
    assert given["decoder_attention_mask"].equal(mask)
    alone = forward_arguments(model, masked[1:, 2:], targets[1:, 2:])
    assert alone["decoder_input_ids"].tolist() == [[0, 21]]
    assert "attention_mask" not in alone


def test_a_denoiser_is_loaded_with_its_decoder(make_case, tmp_path):
    case = make_case("t5")
    case.model.save_pretrained(tmp_path)
    loaded = load_model(tmp_path, "mlm")
    arguments = forward_arguments(loaded, *case.padded)
    assert torch.equal(loaded(**arguments).logits, case.model(**arguments).logits)
