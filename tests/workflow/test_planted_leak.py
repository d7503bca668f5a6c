"""A leak planted in a sealed cache is said on stderr and counted in the table; the smoke study has none."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np

from isotrace.analysed import Analysed
from isotrace.checks import bucket_checks
from isotrace.headline import headline
from isotrace.params import Params
from isotrace.store import create, open_store, put
from isotrace.study import read

MAKING = {"params_digest": "p", "code_digest": "c", "versions": {}}
CHECKPOINT = "step3"


def planted(source: Path, target: Path, bucket: str, rows: int) -> None:
    """A sealed copy of a cache in which the last evaluation rows of a bucket are its first fit rows, renumbered."""
    root = open_store(source)
    with create(target, dict(root.attrs), MAKING) as made:
        for name, group in root.groups():
            copied = made.create_group(name)
            for array, held in group.arrays():
                values = held[...]
                if name == bucket and array not in ("site", "split", "sequence"):
                    split = group["split"][...]
                    fit, late = np.flatnonzero(split == 0)[:rows], np.flatnonzero(split == 1)[-rows:]
                    values = replaced(values, late, fit)
                put(copied, array, values, held.metadata.dimension_names)


def replaced(values, late, fit):
    """Arrays (site, token, feature) or (token,) with the tokens ``late`` made those of ``fit``."""
    tokens = values.swapaxes(0, 1) if values.ndim == 3 else values
    tokens = tokens.copy()
    tokens[late] = tokens[fit]
    return tokens.swapaxes(0, 1) if values.ndim == 3 else tokens


def checked(smoke, cache: Path):
    """Tables of bucket b0 of the decoder, read from ``cache``."""
    spec = Params(read(smoke.config)).analysis("controls", "decoder")
    bases = [smoke.at(f"bases/decoder/{name}.nc") for name in ("pca", "random")]
    moments = smoke.at(f"moments/decoder/{CHECKPOINT}.json")
    opened = Analysed.open(SimpleNamespace(cache=cache, moments=moments, bases=bases), spec, spec["buckets"])
    return bucket_checks(opened, "b0", opened.with_maps(moments, spec), spec, where="decoder step3")


def test_the_smoke_study_has_no_leak_and_says_nothing_of_one(smoke, capsys):
    found, curves = checked(smoke, smoke.at(f"cache/decoder/{CHECKPOINT}.json"))
    assert (found["leaked"] == 0).all()
    assert "warning" not in capsys.readouterr().err
    whole = smoke.table("controls")
    assert (whole["leaked"] == 0).all()
    assert not any("warning" in line for line in headline({"controls": whole}))
    written = smoke.table("rank_curve")
    here = (written["model"] == "decoder") & (written["checkpoint"] == CHECKPOINT) & (written["bucket"] == "b0")
    assert len(written[here]) == len(curves)


def test_planted_fit_rows_are_counted_said_and_make_the_basis_look_no_better_than_it_is(smoke, tmp_path, capsys):
    cache = tmp_path / f"{CHECKPOINT}.json"
    planted(smoke.at(f"cache/decoder/{CHECKPOINT}.json"), cache, "b0", rows=128)
    found, _ = checked(smoke, cache)
    assert (found["leaked"] == 128).all()
    said = capsys.readouterr().err
    assert "isotrace: warning: decoder step3 b0: 128 of 256 evaluation rows are fit rows too" in said

    clean, _ = checked(smoke, smoke.at(f"cache/decoder/{CHECKPOINT}.json"))
    keys = ["site", "quantity", "basis", "method", "rank"]
    both = clean.merge(found, on=keys, suffixes=("", "_leaked"))
    fitted = both[(both["quantity"] == "activation") & (both["method"] == "pca")]
    # Half of the evaluation rows are now fit rows, so half of the optimism is gone wherever there was any.
    some = fitted[fitted["optimism"] > 0.01]
    assert len(some) > 4
    assert (some["optimism_leaked"] < some["optimism"]).all()

    table = smoke.table("controls")
    here = (table["model"] == "decoder") & (table["checkpoint"] == CHECKPOINT) & (table["bucket"] == "b0")
    line = headline({"controls": table.assign(leaked=np.where(here, 128, 0))})[0]
    assert line.startswith("warning: decoder: evaluation rows that are fit rows too, up to 128 in a bucket (in b0;")
