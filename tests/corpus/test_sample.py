"""Sampled positions keep the rules (split, specials, first, last); masks depend on seed, sequence and draw alone."""

from typing import Any

import numpy as np
import pytest

from isotrace.corpus.buckets import bucket_of_ids
from isotrace.corpus.sample import IGNORED, masks, sample
from isotrace.corpus.tokens import Tokens, tokenize
from isotrace.errors import ConfigError, DataError

SPECIAL = (0, 1)


@pytest.fixture
def tokens() -> Tokens:
    """60 sequences of 20 Zipf-like ids; a special id begins each and appears within."""
    rng = np.random.default_rng(0)
    ids = (2 + np.minimum(rng.zipf(1.4, (60, 20)), 40)).astype(np.int32)
    ids[:, 0] = 0
    ids[rng.random(ids.shape) < 0.05] = 1
    counts = np.bincount(ids.ravel(), minlength=50)
    counts[list(SPECIAL)] = 0
    split = (np.arange(60) % 3 == 0).astype(np.int8)
    return Tokens(ids, np.zeros_like(ids), counts, split, SPECIAL, "digest")


def spec(objective: str = "clm", **changes: Any) -> dict[str, Any]:
    base = {
        "seed": 0,
        "objective": objective,
        "sequences": {"fit": 30, "eval": 15},
        "rows_per_bucket": {"fit": 40, "eval": 25},
        "exclude_first": True,
        "bucket_by": "input",
        "mask_rate": 0.3,
        "mask_draws": 2,
        "mask_token_id": 1,
        "random_ids": 43,
        "replace": [0.8, 0.1, 0.1],
    }
    return {**base, **changes}


@pytest.fixture
def bucket_of(tokens: Tokens) -> np.ndarray:
    return bucket_of_ids(tokens.counts, SPECIAL, "rank", edges=[1, 4])


@pytest.mark.parametrize("objective", ["clm", "mlm"])
def test_every_sampled_position_is_what_it_says(tokens: Tokens, bucket_of: np.ndarray, objective: str) -> None:
    found = sample(tokens, bucket_of, spec(objective))
    assert np.array_equal(tokens.ids[found.sequence, found.position], found.token_id)
    assert np.array_equal(bucket_of[found.token_id], found.bucket)
    assert np.array_equal(tokens.split[found.sequence], found.split)
    assert not np.isin(found.token_id, SPECIAL).any()
    assert found.position.min() > 0
    for split, rows in ((0, 40), (1, 25)):
        sizes = [int(((found.bucket == b) & (found.split == split)).sum()) for b in range(3)]
        assert max(sizes) == rows
        assert min(sizes) > 0
    keys = np.stack([found.sequence, found.draw, found.position], axis=1)
    assert np.array_equal(np.unique(keys, axis=0), keys)


def test_a_causal_target_is_the_next_id(tokens: Tokens, bucket_of: np.ndarray) -> None:
    found = sample(tokens, bucket_of, spec())
    assert found.position.max() < 19
    assert np.array_equal(tokens.ids[found.sequence, found.position + 1], found.target_id)
    assert not found.masked.any()


def test_a_bucket_may_follow_the_target(tokens: Tokens, bucket_of: np.ndarray) -> None:
    found = sample(tokens, bucket_of, spec(bucket_by="target"))
    assert np.array_equal(bucket_of[found.target_id], found.bucket)


def test_masked_positions_keep_their_original_id(tokens: Tokens, bucket_of: np.ndarray) -> None:
    found = sample(tokens, bucket_of, spec("mlm"))
    assert set(found.draw.tolist()) == {0, 1}
    assert np.array_equal(found.target_id[found.masked], found.token_id[found.masked])
    assert np.all(found.target_id[~found.masked] == -1)
    assert all(np.any(found.masked & (found.bucket == b) & (found.split == s)) for b in range(3) for s in (0, 1))


@pytest.mark.parametrize("objective", ["clm", "mlm"])
def test_the_sample_is_seeded(tokens: Tokens, bucket_of: np.ndarray, objective: str) -> None:
    first, again = (vars(sample(tokens, bucket_of, spec(objective))) for _ in range(2))
    other = vars(sample(tokens, bucket_of, spec(objective, seed=1)))
    assert all(np.array_equal(first[name], again[name]) for name in first)
    assert not np.array_equal(first["position"], other["position"])


def test_masks_depend_on_the_sequence_and_draw_alone(tokens: Tokens) -> None:
    sequence, draw = np.array([5, 9, 2]), np.array([0, 1, 0])
    together = masks(tokens.ids[sequence], sequence, draw, spec("mlm"), SPECIAL)
    alone = masks(tokens.ids[[9]], np.array([9]), np.array([1]), spec("mlm"), SPECIAL)
    assert all(np.array_equal(a[1], b[0]) for a, b in zip(together, alone, strict=True))


def test_masks_follow_the_rates() -> None:
    ids = np.random.default_rng(0).integers(2, 1000, (200, 100)).astype(np.int32)
    ids[:, ::10] = 0
    rule = spec("mlm", random_ids=1000)
    inputs, labels = masks(ids, np.arange(200), np.zeros(200, int), rule, SPECIAL)
    chosen = labels != IGNORED
    assert np.array_equal(labels[chosen], ids[chosen])
    assert np.array_equal(inputs[~chosen], ids[~chosen])
    assert not chosen[:, ::10].any()
    assert np.all(chosen.sum(axis=1) == 27)  # 0.3 of the 90 ordinary positions
    assert abs(np.mean(inputs[chosen] == 1) - 0.8) < 0.03
    assert abs(np.mean(inputs[chosen] == ids[chosen]) - 0.1) < 0.03
    assert not np.any(inputs[chosen] == 0)


def test_a_sequence_always_has_a_mask_unless_all_is_special() -> None:
    ids = np.array([[0, 5, 0, 0], [0, 0, 1, 0]], np.int32)
    _, labels = masks(ids, np.arange(2), np.zeros(2, int), spec("mlm", mask_rate=0.01), SPECIAL)
    assert labels.tolist() == [[-100, 5, -100, -100], [-100] * 4]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"sequences": {"fit": 41, "eval": 15}}, "sample.sequences.fit: 41 are asked for, the text has 40"),
        ({"sequences": {"fit": 30, "eval": 0}}, "bucket b0 has no token in the eval sequences"),
    ],
)
def test_too_little_text_is_an_error(tokens: Tokens, bucket_of: np.ndarray, change: dict[str, Any], says: str) -> None:
    with pytest.raises(DataError, match=says):
        sample(tokens, bucket_of, spec(**change))


def test_a_bucket_without_a_masked_token_is_named(tokens: Tokens, bucket_of: np.ndarray) -> None:
    few = spec("mlm", rows_per_bucket={"fit": 1, "eval": 1}, mask_rate=0.05, mask_draws=1)
    with pytest.raises(DataError, match="has no masked token in the fit sequences"):
        sample(tokens, bucket_of, few)


def test_an_unknown_objective_is_a_config_error(tokens: Tokens, bucket_of: np.ndarray) -> None:
    with pytest.raises(ConfigError, match=r"clm \| mlm"):
        sample(tokens, bucket_of, spec("plm"))


def test_real_tokens_are_sampled(texts: list[str], tokenizers: dict[str, Any], token_spec: dict[str, Any]) -> None:
    tokens = tokenize(texts, tokenizers["mlm"], token_spec)
    bucket_of = bucket_of_ids(tokens.counts, tokens.special_ids, "mass", n=2)
    sizes = {"sequences": {"fit": 10, "eval": 10}, "mask_token_id": tokenizers["mlm"].mask_token_id, "random_ids": 280}
    found = sample(tokens, bucket_of, spec("mlm", **sizes))
    assert found.n > 50
