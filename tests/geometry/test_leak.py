"""Leaks that are planted are found; shared first words, zero rows and models without context are no leaks."""

from dataclasses import replace

import numpy as np
import pytest
from made_bucket import SITES, bucket

from isotrace.geometry.leak import leaked_rows, warning


@pytest.fixture
def splits():
    rng = np.random.default_rng(0)
    return bucket(rng, sites=SITES), bucket(rng, n=120, sites=SITES, first=100)


def with_rows(one, at, other, source):
    """``one`` with its rows ``at`` taken from rows ``source`` of the other, sequences aside."""
    arrays = {}
    for name in ("activations", "gradients"):
        values = getattr(one, name).copy()
        values[:, at] = getattr(other, name)[:, source]
        arrays[name] = values
    for name in ("token_id", "position", "loss"):
        values = getattr(one, name).copy()
        values[at] = getattr(other, name)[source]
        arrays[name] = values
    return replace(one, **arrays)


def found(evaluation, fit, fitted=None):
    sequences = np.unique(fit.sequence) if fitted is None else np.array(fitted)
    return leaked_rows(evaluation, fit, fitted=sequences, model_sites=SITES)


def test_splits_that_share_nothing_have_no_leak(splits):
    leaked, untold = found(*splits)
    assert (int(leaked.sum()), untold) == (0, "")
    assert warning(leaked, where="m step3 b0") == ""


def test_a_sequence_in_both_splits_is_found_whichever_bucket_holds_it(splits):
    evaluation, fit = splits
    leaked, _ = found(evaluation, fit, [3, 7])
    assert leaked.tolist() == np.isin(evaluation.sequence, [3, 7]).tolist()


def test_fit_rows_under_other_sequences_are_found_by_their_gradients(splits):
    evaluation, fit = splits
    leaked, untold = found(with_rows(evaluation, [4, 90], fit, [11, 12]), fit)
    assert np.flatnonzero(leaked).tolist() == [4, 90]
    assert untold == ""
    assert "m step3 b0: 2 of 160 evaluation rows are fit rows too" in warning(leaked, where="m step3 b0")


def test_a_shared_beginning_is_no_leak(splits):
    evaluation, fit = splits
    shared = with_rows(evaluation, [4], fit, [11])
    shared = replace(shared, gradients=evaluation.gradients)
    assert (shared.activations[:, 4] == fit.activations[:, 11]).all()
    assert not found(shared, fit)[0].any()


def test_rows_without_a_gradient_are_alike_and_no_leak(splits):
    evaluation, fit = (replace(one, gradients=np.zeros_like(one.gradients)) for one in splits)
    assert not found(evaluation, fit)[0].any()


def test_a_gradient_at_another_position_is_no_proof(splits):
    evaluation, fit = splits
    planted = with_rows(evaluation, [4], fit, [11])
    moved = replace(planted, position=planted.position + (np.arange(160) == 4))
    leaked, untold = found(moved, fit)
    assert not leaked.any()
    assert untold.endswith("equal at different positions, so they hold no context")


@pytest.mark.parametrize("first", [2, 3])
def test_above_the_last_attention_contents_prove_nothing(splits, first):
    evaluation, fit = splits
    planted = with_rows(evaluation, [4], fit, [11])
    high = [
        replace(one, sites=SITES[first:], activations=one.activations[first:], gradients=one.gradients[first:])
        for one in (planted, fit)
    ]
    leaked, untold = found(*high)
    assert not leaked.any()
    assert untold == f"no attention lies above {SITES[first]}, the first site that was read"
    assert found(*high, [3])[0].any()
