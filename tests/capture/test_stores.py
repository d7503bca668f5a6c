"""From a model and a sample to sealed rows and moments: the right rows, whatever the batch, and moments that agree."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
import xarray as xr
from families import model_of
from samples import BUCKETS, captured, sample_of

from isotrace.capture.sites import find_sites
from isotrace.capture.trace import trace
from isotrace.errors import DataError
from isotrace.geometry.moments import merge_all, moments
from isotrace.readers import read_moments
from isotrace.stored_rows import read_rows

ARRAYS = {"activation": "activations", "gradient": "gradients"}


def whole(case, passes):
    ids, targets = (torch.from_numpy(a.astype(np.int64)) for a in (passes.inputs, passes.targets))
    return trace(case.model, find_sites(case.model), ids, targets)


def close(found, wanted):
    assert np.abs(found - wanted).max() <= 1e-5 * np.abs(wanted).max()


@pytest.mark.parametrize("batch_size", [1, 4])
def test_rows_are_those_of_the_positions_asked_for_at_any_batch_size(case, tmp_path, batch_size):
    passes = sample_of(case)
    one = whole(case, passes)
    with captured(case, tmp_path, batch_size=batch_size) as stores:
        for b, bucket in enumerate(BUCKETS):
            mine = passes.rows["bucket"] == b
            at = (torch.from_numpy(passes.at[mine]), torch.from_numpy(passes.rows["position"][mine]).long())
            group = stores["cache"][bucket]
            for i, name in enumerate(one.activations):
                close(group["activations"][i], one.activations[name][at].numpy())
                close(group["gradients"][i], one.gradients[name][at].numpy())
            np.testing.assert_allclose(group["loss"][...], one.losses[at].numpy(), rtol=1e-5)
            np.testing.assert_array_equal(group["token_id"][...], passes.rows["token_id"][mine])
            np.testing.assert_array_equal(group["position"][...], passes.rows["position"][mine])
            assert [str(s) for s in group["site"][...]] == list(one.activations)


def test_two_captures_are_equal_to_the_byte(make_case, tmp_path):
    case = make_case("gpt_neox")
    for name in ("first", "second"):
        with captured(case, tmp_path / name, moments_tokens="all"):
            pass
    for store in ("cache", "moments"):
        first, second = (json.loads((tmp_path / n / f"{store}.json").read_text())["files"] for n in ("first", "second"))
        assert first == second


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_moments_are_of_exactly_the_rows_that_are_kept(make_case, tmp_path, dtype):
    case = make_case("modernbert")
    with captured(case, tmp_path, store={"dtype": dtype}) as stores:
        for bucket in BUCKETS:
            group = stores["cache"][bucket]
            for s, split in enumerate(("fit", "eval")):
                for quantity, array in ARRAYS.items():
                    there = read_moments(stores["moments"], bucket, split, quantity)
                    for i, site in enumerate(find_sites(case.model)):
                        rows = read_rows(group, array, i)[group["split"][...] == s].astype(np.float64)
                        rows = rows[np.any(rows != 0, axis=1)] if quantity == "gradient" else rows
                        assert (site in there) == bool(len(rows))
                        if len(rows):
                            wanted = moments(rows)
                            assert there[site].n == len(rows)
                            np.testing.assert_allclose(there[site].mean, wanted.mean, rtol=1e-6, atol=1e-7)
                            np.testing.assert_allclose(there[site].scatter, wanted.scatter, rtol=1e-5, atol=1e-6)
                            assert there[site].q4 == pytest.approx(wanted.q4, rel=1e-9)


def test_gradients_of_a_masked_model_count_the_rows_that_have_one(make_case, tmp_path):
    """At the last block only masked positions have a gradient."""
    case = make_case("modernbert")
    passes = sample_of(case)
    with captured(case, tmp_path) as stores:
        for b, bucket in enumerate(BUCKETS):
            for s, split in enumerate(("fit", "eval")):
                mine = (passes.rows["bucket"] == b) & (passes.rows["split"] == s) & passes.rows["masked"]
                found = read_moments(stores["moments"], bucket, split, "gradient")
                assert (found["block.2"].n if "block.2" in found else 0) == mine.sum()


@pytest.mark.parametrize("batch_size", [1, 4])
@pytest.mark.parametrize("family", ["llama", "modernbert"])
def test_all_takes_every_evaluation_position_and_its_groups_add_up(make_case, family, tmp_path, batch_size):
    case = make_case(family)
    passes = sample_of(case)
    one = whole(case, passes)
    with captured(case, tmp_path, moments_tokens="all", batch_size=batch_size) as stores:
        for b, bucket in enumerate(BUCKETS):
            every = (passes.position_bucket == b) & (passes.split == 1)[:, None]
            for quantity, by_site in (("activation", one.activations), ("gradient", one.gradients)):
                found = read_moments(stores["moments"], bucket, "eval", quantity)
                for site, values in by_site.items():
                    rows = values.numpy()[every].astype(np.float64)
                    rows = rows[np.any(rows != 0, axis=1)] if quantity == "gradient" else rows
                    assert found[site].n == len(rows) if len(rows) else site not in found
                    if len(rows):
                        close(found[site].second_moment, moments(rows).second_moment)
                        groups_agree(stores["moments"][bucket], quantity, site, found[site])


def groups_agree(group, quantity, site, total):
    """Moments by group merge into the total; six evaluation sequences make six groups."""
    from isotrace.geometry.moments import Moments

    q = [str(x) for x in group["quantity"][...]].index(quantity)
    i = [str(x) for x in group["site"][...]].index(site)
    scatter, sums = group["group_scatter"][:, q, i], group["group_sums"][:, q, i]
    d = scatter.shape[-1]
    assert len(scatter) == 6
    parts = [
        Moments(int(v[0]), v[2 : 2 + d], s.astype(np.float64), v[2 + d :], v[1])
        for v, s in zip(sums, scatter, strict=True)
    ]
    merged = merge_all(parts)
    assert merged.n == total.n
    close(merged.second_moment, total.second_moment)
    assert merged.q4 == pytest.approx(total.q4, rel=1e-4, abs=1e-12)


def test_streamed_moments_do_not_depend_on_the_batches(make_case, tmp_path):
    """To 1e-9 of float32 rows that are the same: a model of one sequence at a time gives the same rows."""
    from isotrace.capture.accumulate import Accumulator, Selector
    from isotrace.capture.passes import batches

    case = make_case("llama")
    passes = sample_of(case)
    one = whole(case, passes)
    found = []
    for size in (1, 2, 5, 9):
        select, sums = Selector(passes, every=True), Accumulator()
        for batch in batches(passes, size):
            values = {("activation", s): v[batch.start : batch.stop] for s, v in one.activations.items()}
            sums.add(values, select(batch))
        found.append(sums.finish())
    for other in found[1:]:
        assert other.keys() == found[0].keys()
        for key, m in other.items():
            for name in ("mean", "scatter", "q4"):
                a, b = (np.asarray(getattr(x, name)) for x in (m, found[0][key]))
                assert np.abs(a - b).max() <= 1e-9 * np.abs(b).max()


def test_weight_gradients_and_what_their_maps_read_stand_beside_the_rows(make_case, tmp_path):
    case = make_case("llama")
    names = ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "mlp.gate_proj", "mlp.up_proj"]
    with captured(case, tmp_path, weight_gradients="matrices") as stores:
        for bucket in BUCKETS:
            group = stores["moments"][bucket]
            quantities = [str(q) for q in group["quantity"][...]]
            assert quantities[2:7] == [f"weight_gradient:{name}" for name in names]
            assert quantities[7:] == ["weight_input:self_attn.q_proj", "weight_input:mlp.gate_proj"]
            matrices = {
                str(name): group[f"weight_gradient{i}"][j]
                for i in range(3)
                for j, name in enumerate(group[f"map{i}"][...])
            }
            for name in names:
                found = read_moments(stores["moments"], bucket, "eval", f"weight_gradient:{name}")
                assert list(found) == ["block.0", "block.1", "block.2"]
                for site, m in found.items():
                    np.testing.assert_allclose(
                        m.scatter, moments(matrices[f"{site}:{name}"]).scatter, rtol=1e-4, atol=1e-6
                    )
                assert not read_moments(stores["moments"], bucket, "fit", f"weight_gradient:{name}")
            read = read_moments(stores["moments"], bucket, "fit", "weight_input:mlp.gate_proj")
            assert {m.n for m in read.values()} == {
                read_moments(stores["moments"], bucket, "fit", "activation")["embed"].n
            }


def test_the_stores_open_as_trees_without_a_warning(make_case, tmp_path):
    case = make_case("gpt_neox")
    settings = {"moments_tokens": "all", "weight_gradients": "matrices", "store": {"dtype": "float16"}}
    with captured(case, tmp_path, **settings):
        for name in ("cache", "moments"):
            with xr.open_datatree(tmp_path / name / "store.zarr", engine="zarr") as tree:
                assert set(tree.children) == set(BUCKETS)
                tree.load()


def test_sites_of_two_widths_are_refused_by_name(make_case, tmp_path):
    case = replace(make_case("opt"), model=model_of("opt", word_embed_proj_dim=8))
    said = r"OPTForCausalLM: site embed has width 8, final_norm has 16; .*capture.sites"
    with pytest.raises(DataError, match=said), captured(case, tmp_path):
        pass
    assert not list(tmp_path.rglob("*.json"))
