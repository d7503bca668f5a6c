"""Tables of subspaces and components from sealed stores with planted directions."""

import numpy as np
import pandas as pd
import pytest

from isotrace.bases import fit_bases, moving_basis, write_bases, write_moving
from isotrace.capture.moments_store import write_moments
from isotrace.components import components
from isotrace.gather import series_table
from isotrace.geometry.moments import moments
from isotrace.geometry.subspaces import principal_angles
from isotrace.results import write_model
from isotrace.store import create, put
from isotrace.subspaces import half_of, read_fitted, subspace_table
from sealed import MAKING

D, SEQUENCES, EACH, RANK = 10, 12, 6, 2
SITES, BUCKETS, EARLY, LATE = ("embed", "block.0"), ("b0", "b1"), ("step0", "step4", "step8"), "step20"
IDS = (*EARLY, LATE)
EVERY = ["methods", "moving_to_fixed", "neighbours", "buckets", "halves", "local"]
SPEC = {
    "seed": 0, "methods": ["pca"], "method": "pca", "kinds": ["fixed"], "ranks": [1, 2], "rank": RANK,
    "rank_max": RANK, "buckets": list(BUCKETS), "pool_center": "global", "pool_scale": "none", "draws": 99,
    "comparisons": EVERY, "neighbours": 12, "points": 20, "components": 2, "top_tokens": 3, "min_occurrences": 2,
    "early": list(EARLY),
}  # fmt: skip


def rows_of(checkpoint, bucket, split, site):
    """Rows (n, d) with two long axes; the second differs in bucket b1 and at the late checkpoint."""
    place = (IDS.index(checkpoint), BUCKETS.index(bucket), split, SITES.index(site))
    rng = np.random.default_rng(place)
    spread = np.ones(D)
    second = 4 + (checkpoint == LATE)
    spread[[SITES.index(site), second]] = 9, 6
    if bucket == "b1":
        spread[[second, 7]] = 3, 4
    return rng.standard_normal((SEQUENCES * EACH, D)) * spread


def about():
    """Sequence and token id of every row of one split: sequences of EACH rows, types by turns."""
    return np.repeat(np.arange(SEQUENCES), EACH), np.arange(SEQUENCES * EACH) % 9


def written(folder, checkpoint, sequence=None):
    """Moments and cache of a checkpoint as capture leaves them."""
    attributes = {"tensors_digest": checkpoint, "checkpoint": checkpoint}
    with create(folder / "moments" / f"{checkpoint}.json", attributes, MAKING) as root:
        for bucket in BUCKETS:
            found = {
                (s, "activation", site): moments(rows_of(checkpoint, bucket, s, site)) for s in (0, 1) for site in SITES
            }
            write_moments(root.create_group(bucket), SITES, ["activation", "gradient"], D, found.items())
    with create(folder / "cache" / f"{checkpoint}.json", attributes, MAKING) as root:
        for bucket in BUCKETS:
            _rows(root.create_group(bucket), checkpoint, bucket, about()[0] if sequence is None else sequence)


def _rows(group, checkpoint, bucket, sequence):
    values = np.stack([np.concatenate([rows_of(checkpoint, bucket, s, site) for s in (0, 1)]) for site in SITES])
    token_id = about()[1]
    put(group, "site", np.array(SITES), ("site",))
    for name in ("activations", "gradients"):
        put(group, name, values.astype(np.float32), ("site", "token", "feature"))
    rows = {"token_id": np.tile(token_id, 2), "sequence": np.concatenate([sequence, sequence + SEQUENCES])}
    rows |= {"position": rows["token_id"], "loss": np.ones(len(rows["token_id"]), np.float32)}
    rows |= {"masked": np.zeros(len(rows["token_id"]), bool), "split": np.repeat(np.int8([0, 1]), len(sequence))}
    for name, array in rows.items():
        put(group, name, array, ("token",))


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    for checkpoint in IDS:
        written(folder, checkpoint)
    early = [folder / "moments" / f"{c}.json" for c in EARLY]
    for method in ("pca", "random"):
        fixed, left_out, attributes = fit_bases(early, [], SPEC | {"method": method})
        write_bases(folder / f"{method}.nc", fixed, left_out, attributes)
    moving = {c: moving_basis(folder / "moments" / f"{c}.json", None, "pca", SPEC) for c in IDS}
    write_moving(folder / "pca-moving.nc", moving, {})
    return folder


def fitted_of(study):
    stores = [[study / kind / f"{c}.json" for c in EARLY] for kind in ("moments", "cache")]
    return read_fitted([study / "pca.nc", study / "random.nc"], [study / "pca-moving.nc"], *stores)


@pytest.fixture(scope="module")
def table(study):
    return subspace_table(fitted_of(study), SPEC)


def picked(table, **wanted):
    """The one row with these values, at rank 2 of the block."""
    wanted = {"site": "block.0", "rank": RANK} | wanted
    rows = table[np.logical_and.reduce([table[name] == value for name, value in wanted.items()])]
    assert len(rows) == 1
    return rows.iloc[0]


def directions(rows):
    return np.linalg.svd(rows - rows.mean(axis=0))[2][:RANK].T


def overlap(a, b):
    return np.mean(np.cos(principal_angles(a, b)) ** 2)


def fit_rows(checkpoint, buckets, keep=slice(None), site="block.0"):
    return np.concatenate([rows_of(checkpoint, b, 0, site)[keep] for b in buckets])


def test_every_comparison_is_a_row_a_site_and_rank(table):
    each = {"methods": 1, "moving_to_fixed": 4, "neighbours": 3, "buckets": 2, "halves": 1, "local": 2}
    counts = table.groupby("comparison").size().to_dict()
    assert counts == {name: n * len(SITES) * 2 for name, n in each.items()}
    assert (table["reason"] == "").all()
    assert set(table["n_nulls"]) == {99}
    np.testing.assert_allclose(table["haar_mean"], table["rank"] / D)


def test_overlaps_are_those_of_bases_refitted_by_hand(table):
    early = {c: fit_rows(c, BUCKETS) for c in EARLY}
    fixed = directions(np.concatenate(list(early.values())))
    late = directions(fit_rows(LATE, BUCKETS))
    wanted = {
        ("moving_to_fixed", "fixed", LATE): overlap(late, fixed),
        ("neighbours", "step8", LATE): overlap(late, directions(early["step8"])),
        ("buckets", "b1", ""): overlap(directions(np.concatenate([fit_rows(c, ["b1"]) for c in EARLY])), fixed),
    }
    for (comparison, other, checkpoint), value in wanted.items():
        row = picked(table, comparison=comparison, other=other, checkpoint=checkpoint)
        assert row["overlap"] == pytest.approx(value, abs=1e-5)
    half = np.isin(about()[0], half_of(np.arange(SEQUENCES), 0))
    assert half.sum() == SEQUENCES * EACH // 2
    halves = [directions(np.concatenate([fit_rows(c, BUCKETS, mine) for c in EARLY])) for mine in (half, ~half)]
    assert picked(table, comparison="halves")["overlap"] == pytest.approx(overlap(*halves), abs=1e-5)


def test_what_was_planted_is_seen(table):
    assert picked(table, comparison="moving_to_fixed", checkpoint="step8")["overlap"] > 0.9
    assert picked(table, comparison="moving_to_fixed", checkpoint=LATE)["overlap"] < 0.7
    assert picked(table, comparison="moving_to_fixed", checkpoint=LATE, rank=1)["overlap"] > 0.9
    assert picked(table, comparison="buckets", other="b0")["overlap"] > 0.9
    assert picked(table, comparison="buckets", other="b1")["overlap"] < 0.7
    unrelated = picked(table, comparison="methods", method="pca", other="random")
    assert abs(unrelated["z"]) < 4
    local = table[(table["comparison"] == "local") & (table["checkpoint"] == "step8")]
    assert set(local["method"]) == {"pca", "random"}
    assert picked(local, method="pca")["overlap"] > picked(local, method="random")["overlap"]


def test_a_part_alone_is_the_same_rows(study, table):
    only = subspace_table(fitted_of(study), SPEC | {"comparisons": ["halves"]})
    pd.testing.assert_frame_equal(only, table[table["comparison"] == "halves"].reset_index(drop=True))


def test_too_few_rows_for_a_neighbourhood_is_a_reason(study):
    found = subspace_table(fitted_of(study), SPEC | {"comparisons": ["local"], "neighbours": 500})
    assert set(found["reason"]) == {"144 different rows, too few for neighbourhoods of 500"}
    assert found["overlap"].isna().all()


def test_one_sequence_has_no_halves(study, tmp_path):
    for checkpoint in EARLY:
        written(tmp_path, checkpoint, sequence=np.zeros(SEQUENCES * EACH, int))
    stores = [[tmp_path / kind / f"{c}.json" for c in EARLY] for kind in ("moments", "cache")]
    found = subspace_table(read_fitted([study / "pca.nc"], [], *stores), SPEC | {"comparisons": ["halves"]})
    assert (
        found["reason"].tolist() == ["the data determine 0 of 1 directions", "the data determine 0 of 2 directions"] * 2
    )
    assert found["overlap"].isna().all()


def test_semi_nmf_reads_rows_where_it_is_asked_for(study):
    early, caches = ([study / kind / f"{c}.json" for c in EARLY] for kind in ("moments", "cache"))
    spec = SPEC | {"method": "semi_nmf", "methods": ["semi_nmf"], "comparisons": ["buckets", "halves"]}
    fixed, left_out, attributes = fit_bases(early, caches, spec)
    write_bases(study / "semi_nmf.nc", fixed, left_out, attributes)
    found = subspace_table(read_fitted([study / "semi_nmf.nc"], [], early, caches), spec)
    assert len(found) == 3 * len(SITES) * 2
    assert (found["reason"] == "").all()
    assert found["overlap"].between(0, 1).all()


def test_components_name_their_checkpoint_bucket_and_tokens(study):
    cache = fitted_of(study).caches[-1]
    found = components(cache, [study / "pca.nc", study / "random.nc"], None, SPEC)
    assert set(found["checkpoint"]) == {"step8"}
    assert set(found["method"]) == {"pca"}
    assert set(found["token"]) == {""}
    assert set(found["bucket"]) <= set(BUCKETS)
    first = found.query("site == 'block.0' and component == 1")
    rows = np.concatenate([rows_of("step8", b, 1, "block.0") for b in BUCKETS])
    basis = fitted_of(study).fixed["pca"]["block.0"][:, 0]
    line, token_id = rows @ basis, np.tile(about()[1], 2)
    means = {t: (line[token_id == t].mean() - line.mean()) / line.std() for t in range(9)}
    top = sorted(means, key=means.get, reverse=True)
    assert first.query("sign == '+'")["token_id"].tolist() == top[:3]
    assert first.query("sign == '-'")["token_id"].tolist() == top[:-4:-1]
    np.testing.assert_allclose(first["score"], [means[t] for t in first["token_id"]], rtol=1e-5)


LOCK = {
    "model": "m",
    "total_steps": 20,
    "checkpoints": [
        {"id": c, "step": int(c[4:]), "tokens_seen": None, "status": "ok", "reason": ""} for c in IDS
    ] + [{"id": "step12", "step": 12, "tokens_seen": None, "status": "broken", "reason": "model.safetensors is cut"}],
}  # fmt: skip


def gathered(stage, path):
    return series_table(stage, [path], [LOCK], study="s", seeds={"m": None}, early=0.4, late=0.7)


def test_rows_of_no_checkpoint_have_no_step_and_broken_ones_their_reason(table, tmp_path):
    write_model(tmp_path / "m.parquet", table, "subspaces", SITES)
    found = gathered("subspaces", tmp_path / "m.parquet")
    assert len(found) == len(table) + 1
    nowhere = found[found["checkpoint"] == ""]
    assert set(nowhere["comparison"]) == {"methods", "buckets", "halves"}
    assert nowhere["step"].isna().all()
    assert nowhere["progress"].isna().all()
    [broken] = found[found["checkpoint"] == "step12"].to_dict("records")
    assert (broken["reason"], broken["step"], broken["site"]) == ("model.safetensors is cut", 12, "")
    late = found[found["checkpoint"] == LATE]
    assert set(late["phase"]) == {"late"}
    assert dict(zip(late["site"], late["layer"], strict=True)) == {"embed": -1, "block.0": 0}


def test_components_are_gathered_with_their_step(study, tmp_path):
    frame = components(fitted_of(study).caches[-1], [study / "pca.nc"], None, SPEC)
    write_model(tmp_path / "m.parquet", frame, "components", SITES)
    found = gathered("components", tmp_path / "m.parquet")
    assert set(found["step"]) == {8}
    assert (
        found["score"]
        .groupby([found[n] for n in ("site", "component", "sign")])
        .apply(lambda s: s.is_monotonic_decreasing or s.is_monotonic_increasing)
        .all()
    )
