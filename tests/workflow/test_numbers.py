"""Numbers of the tables against a plain recomputation from the cache: zarr, h5py and numpy, nothing of the library.

Energy and exact Haar moments, plug-in IsoScore (Rudman et al. 2022), U-statistic (Chen, Zhang, Zhong 2010).
"""

import h5py
import numpy as np
import pytest
import zarr

MODELS = ("decoder", "encoder")
SITES = ["embed", "block.0", "block.1", "final_norm"]
CLOSE = {"rtol": 1e-4, "atol": 1e-9}


def rows_of(smoke, row, split=1):
    """The cached rows that a row of a table speaks of; gradients without those that are zero by construction."""
    group = zarr.open_group(smoke.at(f"cache/{row.model}/{row.checkpoint}/store.zarr"), mode="r")[row.bucket]
    name = {"activation": "activations", "gradient": "gradients"}[row.quantity]
    values = group[name][SITES.index(row.site)][group["split"][...] == split].astype(np.float64)
    return values if row.quantity == "activation" else values[np.any(values != 0, axis=1)]


def basis_of(smoke, row):
    """The first components (d, k) of the basis that a row names, as the files hold them."""
    ending = "-moving" if row.basis == "moving" else ""
    with h5py.File(smoke.at(f"bases/{row.model}/{row.method}{ending}.nc")) as file:
        if row.basis == "fixed":
            vectors = file["basis"][SITES.index(row.site)]
        else:
            ids = [name.decode() for name in file["checkpoint"][...]]
            name = "basis" if row.basis == "moving" else "leave_one_out"
            vectors = file[name][ids.index(row.checkpoint)][SITES.index(row.site)]
    return vectors[:, : row.rank]


def sampled(table, n, **wanted):
    """Some rows of a table, the same ones each time, spread over it."""
    for name, value in wanted.items():
        table = table[table[name] == value]
    return list(table.sample(min(n, len(table)), random_state=0).itertuples())


def operator_of(rows, quantity):
    """Second moment of gradients, covariance of activations: what energy is measured in."""
    centred = rows - rows.mean(axis=0) if quantity == "activation" else rows
    return centred.T @ centred / len(rows)


@pytest.mark.parametrize("quantity", ["gradient", "activation"])
@pytest.mark.parametrize("null_space", ["complement", "ambient"])
def test_energy_and_exact_haar_moments(smoke, quantity, null_space):
    table = smoke.table("energy")
    rows = sampled(table[table["reason"] == ""], 60, quantity=quantity, null_space=null_space)
    assert len(rows) == 60
    for row in rows:
        values = rows_of(smoke, row)
        g, q, d, k = operator_of(values, quantity), basis_of(smoke, row), values.shape[1], row.rank
        total = np.trace(g)
        energy = np.trace(q.T @ g @ q) / total
        assert row.n_tokens == len(values)
        np.testing.assert_allclose(row.energy, energy, **CLOSE)
        np.testing.assert_allclose(row.enrichment, energy * d / k, **CLOSE)
        # An orthonormal frame of the space that the null lies in.
        full = np.linalg.svd(q, full_matrices=True)[0]
        frame = full[:, k:] if null_space == "complement" else np.eye(d)
        inner = frame.T @ g @ frame / total
        m, trace = len(inner), np.trace(inner)
        mean = k / m * trace
        variance = 2 * k * (m - k) / (m * (m - 1) * (m + 2)) * (np.sum(inner**2) - trace**2 / m)
        np.testing.assert_allclose(row.null_mean_exact, mean, **CLOSE)
        np.testing.assert_allclose(row.null_sd_exact, np.sqrt(variance), **CLOSE)
        np.testing.assert_allclose(row.ratio, energy / mean, **CLOSE)
        if null_space == "complement":
            np.testing.assert_allclose(row.ratio, energy * (d - k) / (k * (1 - energy)), **CLOSE)


def test_energy_nulls_and_p_values_are_those_of_drawn_subspaces(smoke):
    table = smoke.table("energy")
    table = table[table["reason"] == ""]
    drawn = table[table["null_space"] != "variance_weighted"]
    assert set(drawn["n_nulls"]) == {99}
    error = (drawn["null_mean"] - drawn["null_mean_exact"]) / (drawn["null_sd_exact"] / np.sqrt(99))
    assert np.abs(error).max() < 6
    whole = np.round(drawn["p_value"] * 100)
    np.testing.assert_allclose(drawn["p_value"], whole / 100, atol=1e-12)
    assert drawn["p_value"].min() >= 1 / 100
    inside = (drawn["energy_lo"] <= drawn["energy"]) & (drawn["energy"] <= drawn["energy_hi"])
    assert inside.mean() > 0.95


def plugin(rows, dims):
    """IsoScore of rows, scored in ``dims`` dimensions."""
    c = np.cov(rows, rowvar=False)
    return (np.trace(c) ** 2 / np.sum(c**2) - 1) / (dims - 1)


def ustat(rows, dims):
    """IsoScore with the unbiased tr(Sigma^2), by its definition: sums over distinct rows of uncentred products."""
    n = len(rows)
    inner = rows @ rows.T
    square = np.trace(inner)
    np.fill_diagonal(inner, 0)
    two, by_row, all_pairs = np.sum(inner**2), inner.sum(axis=1), inner.sum()
    three = np.sum(by_row**2) - two
    four = all_pairs**2 - 2 * two - 4 * three
    f = two / (n * (n - 1)) - 2 * three / (n * (n - 1) * (n - 2)) + four / (n * (n - 1) * (n - 2) * (n - 3))
    t = square / n - all_pairs / (n * (n - 1))
    return (t**2 / f - 1) / (dims - 1)


@pytest.mark.parametrize(("name", "estimator"), [("plugin", plugin), ("ustat", ustat)])
@pytest.mark.parametrize("convention", ["complement", "ambient"])
def test_isotropy_whole_and_without_the_tangent(smoke, name, estimator, convention):
    table = smoke.table("isotropy")
    table = table[table["reason"] == ""]
    rows = sampled(table, 40, estimator=name, convention=convention)
    assert len(rows) == 40
    for row in rows:
        values = rows_of(smoke, row)
        if row.outliers == "dropped":
            log = np.log(np.linalg.norm(values, axis=1))
            spread = 1.4826 * np.median(np.abs(log - np.median(log)))
            values = values[np.abs(log - np.median(log)) <= 10 * max(spread, 1e-6)]
        q, d = basis_of(smoke, row), values.shape[1]
        assert row.n_tokens == len(values)
        np.testing.assert_allclose(row.score, estimator(values, d), **CLOSE)
        left = values - values @ q @ q.T
        dims = d - row.rank if convention == "complement" else d
        np.testing.assert_allclose(row.score_without_tangent, estimator(left, dims), **CLOSE)
        np.testing.assert_allclose(row.delta_tangent, row.score_without_tangent - row.score, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("model", MODELS)
def test_moving_bases_are_the_principal_directions_of_fit_rows_with_buckets_weighted_alike(smoke, model):
    row = sampled(smoke.table("energy"), 1, model=model, basis="moving", site="block.1", quantity="activation")[0]
    means, within = [], []
    for bucket in ("b0", "b1"):
        values = rows_of(smoke, row._replace(bucket=bucket), split=0)
        means.append(values.mean(axis=0))
        within.append(np.cov(values, rowvar=False, ddof=0))
    between = np.cov(np.stack(means), rowvar=False, ddof=0)
    values, vectors = np.linalg.eigh(np.mean(within, axis=0) + between)
    found = basis_of(smoke, row._replace(rank=4))
    cosines = np.linalg.svd(vectors[:, ::-1][:, :4].T @ found, compute_uv=False)
    np.testing.assert_allclose(found.T @ found, np.eye(4), atol=1e-6)
    np.testing.assert_allclose(cosines, 1, atol=1e-4)


def test_moments_are_of_exactly_the_rows_in_the_cache(smoke):
    for model in MODELS:
        moments = zarr.open_group(smoke.at(f"moments/{model}/step10/store.zarr"), mode="r")
        for bucket in ("b0", "b1"):
            group = moments[bucket]
            splits, quantities = ([str(v) for v in group[k][...]] for k in ("split", "quantity"))
            for (s, split), (q, quantity), (i, site) in (
                (a, b, c) for a in enumerate(splits) for b in enumerate(quantities) for c in enumerate(SITES)
            ):
                row = Place(model, "step10", site, bucket, quantity)
                values = rows_of(smoke, row, split=("fit", "eval").index(split))
                centred = values - values.mean(axis=0)
                norms = np.sum(centred**2, axis=1)
                assert group["n"][s, q, i] == len(values)
                scale = np.abs(centred.T @ centred).max()
                np.testing.assert_allclose(group["mean"][s, q, i], values.mean(axis=0), rtol=1e-5, atol=1e-7)
                np.testing.assert_allclose(group["scatter"][s, q, i], centred.T @ centred, rtol=0, atol=1e-6 * scale)
                np.testing.assert_allclose(group["q4"][s, q, i], np.sum(norms**2), rtol=1e-5)
                third = norms @ centred
                np.testing.assert_allclose(group["q3"][s, q, i], third, rtol=0, atol=1e-5 * np.abs(third).max())


class Place:
    """What ``rows_of`` reads of a table's row."""

    def __init__(self, model, checkpoint, site, bucket, quantity):
        self.model, self.checkpoint, self.site, self.bucket, self.quantity = model, checkpoint, site, bucket, quantity


def test_mean_cosine_of_activations(smoke):
    table = smoke.table("geometry")
    for row in sampled(table, 20, metric="mean_cosine", quantity="activation"):
        values = rows_of(smoke, row)
        unit = values / np.linalg.norm(values, axis=1, keepdims=True)
        cosines = unit @ unit.T
        n = len(unit)
        np.testing.assert_allclose(row.value, (cosines.sum() - n) / (n * (n - 1)), rtol=1e-4, atol=1e-6)


def test_attention_intervals_and_masses_belong_to_the_attention_table(smoke):
    place = ["model", "checkpoint", "layer", "head", "query_bucket", "key_bucket"]
    wide = smoke.table("attention").melt(place, ["drift_q", "drift_k", "mean_dot_qk", "entropy"], "column", "expected")
    found = smoke.table("attention_intervals").merge(wide, on=[*place, "column"])
    assert set(found["column"]) == set(wide["column"])
    np.testing.assert_allclose(found["value"], found["expected"], rtol=1e-12)
    assert ((found["lo"] < found["value"]) & (found["value"] < found["hi"])).all()
    mass = smoke.table("attention_mass")
    assert set(mass["key_bucket"]) == {"b0", "b1", "none"}
    whole = mass.groupby(place[:-1])[["mass", "share"]].sum()
    np.testing.assert_allclose(whole, 1, rtol=1e-9)
    sharp = smoke.table("dynamics").query("family == 'sharpness' and unit == 'sequence'")
    assert set(sharp["site"]) == {f"block.{layer}.head.{head}" for layer in (0, 1) for head in (0, 1)}
    assert sharp.loc[sharp["statistic"] == "kendall_tau", ["effect", "lo", "hi"]].notna().all(axis=None)
