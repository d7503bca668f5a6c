"""Jobs by rule, counted by hand for the smoke study and for what its switches change."""

from collections import Counter

import pytest

from configs import smoke
from isotrace.planning.jobs import Jobs, jobs, makers
from isotrace.sources.series import Found, Series
from isotrace.study import load

ONCE = ("corpus", "toy", "dynamics", "claims", "report", "card")
A_MODEL = ("tokenizer", "train", "tokens", "sample", "lock", "moving", "subspaces", "untrained")
A_CHECKPOINT = ("audit", "capture", "energy", "controls", "isotropy", "geometry", "frequency", "attention")
SMOKE = dict.fromkeys(ONCE, 1) | dict.fromkeys(A_MODEL, 2) | dict.fromkeys(A_CHECKPOINT, 6)
SMOKE |= {"bases": 4, "table": 14, "figure": 14}


def by_rule(edits=None):
    found = Counter()
    for one in jobs(load(smoke(edits))):
        found[one.rule] += one.n
    return dict(found)


def test_jobs_of_the_smoke_study():
    assert by_rule() == SMOKE


@pytest.mark.parametrize(
    ("edits", "changed"),
    [
        ({"execution.batch_buckets": False}, {"energy": 12, "controls": 12, "isotropy": 12, "geometry": 12}),
        ({"execution.batch_audits": True}, {"audit": 2}),
        ({"bases.kinds": ["fixed"]}, {"moving": 0}),
        ({"bases.methods": ["pca", "svd"]}, {"bases": 6, "moving": 4}),
        ({"figures.names": ["early_late"]}, {"figure": 1, "table": 13, "toy": 0}),
        ({"untrained.seeds": []}, {"untrained": 0, "table": 13}),
    ],
    ids=str,
)
def test_a_switch_changes_the_jobs_of_its_rules_only(edits, changed):
    expected = {rule: n for rule, n in (SMOKE | changed).items() if n}
    assert by_rule(edits) == expected


def test_a_mixture_is_a_job_and_so_is_each_of_its_parts():
    wiki = smoke()["corpora"]["wiki"]
    mixture = {"source": "mixture", "parts": {"one": 0.5, "two": 0.5}}
    corpora = {"one": wiki, "two": wiki, "unread": wiki, "mixed": mixture}
    edits = {"corpora": corpora, "models.decoder.corpus": "mixed", "models.encoder.corpus": "one"}
    assert by_rule(edits) == SMOKE | {"corpus": 3}


def test_parts_are_buckets_of_a_job_and_checkpoints_of_an_audit():
    batched = {one.rule: one.parts for one in jobs(load(smoke({"execution.batch_audits": True})))}
    assert (batched["energy"], batched["audit"], batched["capture"]) == (2, 3, 1)
    apart = jobs(load(smoke({"execution.batch_buckets": False})))
    assert all(one.parts == 1 for one in apart)
    assert Jobs("energy", "decoder", 6) in apart


def test_untrained_dequantised_and_fetched_checkpoints_are_jobs_of_their_rules():
    weights = "<results>/weights/m"
    made = [f"{weights}/init-0.json", f"{weights}/init.json", f"{weights}/dequantised.json", f"{weights}/step8", ""]
    found = tuple(Found(f"step{i}", i, f"folder{i}", made_by=file) for i, file in enumerate(made))
    series = Series("m", "any", found, 10, f"{weights}/tokenizer/prefetch.json")
    assert list(makers(series).values()) == ["initialise", "initialise", "dequantise", "prefetch", "prefetch"]
