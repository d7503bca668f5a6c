"""Buckets and shared folders that a study names: reached as a job would reach them, or named with what to do."""

import os

import pytest

from bucket_server import BUCKET, environment, keys, needs_moto, raw_client, serving_bucket
from configs import smoke
from isotrace.doctor.examine import ANY_SPEED
from isotrace.doctor.places import places
from isotrace.errors import DataError
from isotrace.plan import plan
from isotrace.study import validated

TOTALS = {"bucket_gb": 2.0, "weights_gb": 3.0}
AWAY = "s3://rows/mine"


def test_a_study_that_keeps_all_below_its_results_has_no_such_place():
    assert list(places(validated(smoke()), TOTALS)) == []


def refusing(url):
    raise DataError(f"{url}: access is denied")


@needs_moto
@pytest.mark.slow  # where .ci/run has installed moto
def test_a_bucket_is_written_and_left_as_it_was(monkeypatch):
    study = validated(smoke({"storage.cache": f"s3://{BUCKET}/mine"}))
    with serving_bucket() as endpoint:
        for name, value in environment(endpoint).items():
            monkeypatch.setenv(name, value)
        client = raw_client()
        client.create_bucket(Bucket=BUCKET)
        (found,) = places(study, TOTALS)
        assert (found.status, "up to 2 GB planned" in found.said) == ("ok", True)
        assert not keys(client)
        client.delete_bucket(Bucket=BUCKET)
        (found,) = places(study, TOTALS)
        assert (found.status, "there is no such bucket" in found.said) == ("fail", True)


@pytest.mark.parametrize(("planned", "status"), [(3.0, "ok"), (1e9, "fail")])
def test_a_folder_for_weights_needs_room(tmp_path, planned, status):
    study = validated(smoke({"storage.weights": str(tmp_path / "not" / "yet")}))
    (found,) = places(study, TOTALS | {"weights_gb": planned})
    assert (found.what, found.status) == ("weights", status)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    tmp_path.chmod(0o500)
    (found,) = places(validated(smoke({"storage.weights": str(tmp_path)})), TOTALS)
    assert (found.status, str(tmp_path) in found.said) == ("fail", True)


@pytest.fixture
def boto3():
    return pytest.importorskip("boto3", reason="boto3 is not installed (extra s3)")


@pytest.mark.slow
def test_what_refuses_is_said(boto3):
    (found,) = places(validated(smoke({"storage.cache": AWAY})), TOTALS, refusing)
    assert (found.status, found.said) == ("fail", f"{AWAY}: access is denied")


@pytest.mark.slow
def test_rows_in_a_bucket_are_no_disk(boto3, tmp_path):
    here, away = (
        plan(validated(smoke({"storage.cache": place})), ANY_SPEED, cores=2, results=tmp_path) for place in (None, AWAY)
    )
    totals, moved = here["totals"], away["totals"]
    assert (totals["bucket_gb"], moved["bucket_gb"]) == (0, totals["cache_gb"])
    assert moved["disk_gb"] == pytest.approx(totals["disk_gb"] - totals["cache_gb"])
    assert moved["disk_gb"] > 0
