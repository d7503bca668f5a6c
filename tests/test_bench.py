"""Benches: one line of JSON with what was compared, in turns, and a baseline that is what it says it is."""

import json

import numpy as np
import pytest
from IsoScore.IsoScore import IsoScore

from isotrace.bench.isotropy import normals, ours, published
from isotrace.bench.registry import benches
from isotrace.bench.timing import interleaved, median_ratio
from isotrace.bench.workload.bare import bare, random_model
from isotrace.bench.workload.stores import random_passes
from isotrace.capture.sites import find_sites
from isotrace.cli import main

MODEL = ["layers=1", "width=16", "vocabulary=64", "length=16", "buckets=2", "batch_size=4"]
TINY = {
    "callback": [*MODEL[:4], "batch_size=2", "rows=64"],
    "capture": [*MODEL, "tokens=128"],
    "capture-sampled": [*MODEL, "tokens=128"],
    "capture-weights": [*MODEL, "tokens=128"],
    "memory": [*MODEL, "tokens=640", "rows=64"],
    "dag": ["models=1", "checkpoints=5", "buckets=2"],
    "dag-batched": ["models=1", "checkpoints=5", "buckets=2"],
    "store": ["sites=2", "tokens=100", "width=8", "batch=30"],
    "analysis": ["sites=1", "rows=400", "width=16", "rank=2", "draws=20", "draws_corrected=5"],
    "isotropy": ["rows=64", "width=16", "rank=2", "draws=20", "published_draws=3"],
}
KEYS = {"bench", "ratio", "wanted", "compared", "sizes", "threads", "pairs"}


SLOW = {"dag", "dag-batched", "memory"}  # four whole dry runs; processes of their own


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in benches()])
def test_a_bench_prints_one_line_of_json(name, capsys):
    assert main(["bench", name, "--pairs", "1", "--size", *TINY[name]]) == 0
    printed = capsys.readouterr().out
    assert printed.count("\n") == 1
    line = json.loads(printed)
    assert line.keys() >= KEYS
    assert line["bench"] == name
    assert line["sizes"].items() >= {key: int(value) for key, value in (s.split("=") for s in TINY[name])}.items()
    assert (line["threads"], line["pairs"]) == (1, 1)
    assert np.isfinite(line["ratio"])
    assert line["ratio"] > 0


def test_without_a_name_the_benches_are_listed_with_their_sizes(capsys):
    assert main(["bench"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines] == sorted(TINY)
    assert next(line for line in lines if line.startswith("isotropy:")).endswith(
        "(--size rows=2048 width=1024 rank=32 draws=1000 published_draws=20)"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["speed"], "bench: 'speed' is not one of "),
        (["isotropy", "--size", "depth=3"], "bench isotropy --size: 'depth' is not one of rows, width, rank, "),
        (["isotropy", "--size", "rank"], "bench --size: 'rank' is not NAME=N with N a whole number"),
        (["isotropy", "--size", "rank=-1"], "bench --size: 'rank=-1' is not NAME=N with N a whole number"),
        (["isotropy", "--size", "rank=0"], "bench isotropy: rank is 0, the least is 1"),
        (["isotropy", "--size", "rank=9", "width=16"], "bench isotropy --size: rank may be half of width at most"),
        (
            ["analysis", "--size", "rows=399"],
            "bench analysis --size: rank may be half of width at most, rows at least 400",
        ),
        (["capture", "--size", "width=12"], "bench --size width=12: not a multiple of 8"),
        (["capture", "--size", "length=1"], "bench --size: a sequence needs length=2 or more"),
        (["isotropy", "--pairs", "0"], "bench isotropy: pairs is 0, the least is 1"),
    ],
)
def test_a_mistake_is_one_line(arguments, message, capsys):
    assert main(["bench", *arguments]) == 1
    captured = capsys.readouterr()
    assert captured.err.startswith(f"isotrace: error: {message}")
    assert captured.err.count("\n") == 1
    assert captured.out == ""


def test_the_two_sides_take_turns_and_neither_always_goes_first():
    order = []
    times = interleaved(
        lambda i: order.append(("ours", i)),
        lambda i: order.append(("baseline", i)),
        2,
        before=lambda: order.append("before"),
    )
    assert order[::2] == ["before"] * 4
    assert order[1::2] == [("ours", 0), ("baseline", 0), ("baseline", 1), ("ours", 1)]
    assert len(times.ours) == len(times.baseline) == 2


def test_the_ratio_is_the_median_over_the_pairs_and_not_the_ratio_of_medians():
    assert median_ratio([1.0, 2.0, 9.0], [1.0, 4.0, 3.0]) == 1.0
    with pytest.raises(ValueError, match="shorter"):
        median_ratio([1.0, 2.0], [1.0])


def test_the_sample_keeps_what_it_is_asked_to_and_every_row_has_a_target():
    sizes = {"tokens": 64, "length": 16, "vocabulary": 10, "buckets": 2}
    every, some = random_passes(sizes, 64), random_passes(sizes, 15)
    assert len(every.at) == 4 * 15  # the last position of a sequence predicts nothing
    assert len(some.at) == 15
    for passes in (every, some):
        assert (np.diff(passes.at) >= 0).all()
        at = (passes.at, passes.rows["position"])
        np.testing.assert_array_equal(passes.rows["target_id"], passes.targets[at])
        np.testing.assert_array_equal(passes.rows["bucket"], passes.position_bucket[at])
        assert (passes.rows["target_id"] >= 0).all()


def test_bare_passes_give_the_weights_back_as_they_were():
    sizes = {"layers": 1, "width": 16, "vocabulary": 64, "length": 16, "tokens": 32, "buckets": 2}
    model = random_model(sizes)
    weights = list(model.parameters())
    bare(model, find_sites(model), random_passes(sizes, 8), batch_size=1, weights=weights)
    assert not any(weight.requires_grad for weight in weights)
    assert all(weight.grad is None for weight in weights)


def test_the_published_side_is_the_authors_own_score_of_the_projected_rows():
    rows = np.random.default_rng(0).standard_normal((200, 12)) * np.arange(1, 13) ** -0.5
    tangent = np.eye(12)[:, :2]
    frames = normals(tangent, 3, 0)
    np.testing.assert_allclose(frames.swapaxes(1, 2) @ frames, np.broadcast_to(np.eye(2), (3, 2, 2)), atol=1e-12)
    np.testing.assert_allclose(frames.swapaxes(1, 2) @ tangent, 0, atol=1e-12)
    energies, scores = published(rows, frames)
    expected = [float(IsoScore(rows - rows @ f @ f.T)) for f in frames]
    np.testing.assert_allclose(scores, expected, atol=1e-6)
    variance = np.cov(rows, rowvar=False)
    np.testing.assert_allclose(energies, [np.trace(f.T @ variance @ f) / np.trace(variance) for f in frames])
    others = ours(rows, tangent, 3, 1)
    assert np.abs(others[1] / scores - 1).max() > 1e-3
