"""Buckets and shared folders that a study names: reached as a job would reach them, or named with what to do."""

import os
from pathlib import Path

import pytest

from bucket_server import BUCKET, environment, keys, needs_moto, raw_client, serving_bucket
from configs import smoke
from isotrace.doctor.places import on_another_disk, places, to_fetch
from isotrace.errors import DataError
from isotrace.storage.shared import shared_file
from isotrace.study import load, validated
from planned_smoke import hub_series

TOTALS = {"bucket_gb": 2.0}
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


def on_hub(folder, bytes_, weights):
    """A study of three checkpoints of so many bytes that keeps them in ``weights``."""
    mine = {"objective": "clm", "source": hub_series(folder, bytes_)}
    return load(smoke({"models": {"mine": mine}, "storage.weights": str(weights)}))


@pytest.mark.parametrize(("bytes_", "status"), [(10**6, "ok"), (10**17, "fail")])
def test_a_folder_for_weights_needs_room(tmp_path, bytes_, status):
    (found,) = places(on_hub(tmp_path, bytes_, tmp_path / "not" / "yet"), TOTALS)
    assert (found.what, found.status) == ("weights", status)
    assert not (tmp_path / "not").exists()


def test_what_another_study_fetched_needs_no_room(tmp_path):
    study = on_hub(tmp_path, 10**9, tmp_path / "common")
    assert to_fetch(study, tmp_path / "common") == 3 * 10**9
    there = shared_file(tmp_path / "common", "org/tiny", f"{10:040x}", "model.safetensors")
    there.parent.mkdir(parents=True)
    there.touch()
    assert to_fetch(study, tmp_path / "common") == 2 * 10**9


def test_a_file_in_the_place_of_a_folder_for_weights_is_named(tmp_path):
    (tmp_path / "file").touch()
    (found,) = places(on_hub(tmp_path, 10**6, tmp_path / "file" / "below"), TOTALS)
    assert (found.status, str(tmp_path / "file") in found.said) == ("fail", True)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    (found,) = places(on_hub(tmp_path, 10**6, closed), TOTALS)
    assert (found.status, str(closed) in found.said) == ("fail", True)


OTHER_DISK = Path("/dev/shm")


@pytest.mark.skipif(not OTHER_DISK.is_dir(), reason="no second file system: /dev/shm is missing")
def test_weights_on_another_disk_take_no_room_beside_the_results(tmp_path):
    models = {"mine": {"kind": "hub", "weights_gb": 3.0}, "own": {"kind": "train", "weights_gb": 1.0}}
    assert on_another_disk(on_hub(tmp_path, 10**9, OTHER_DISK / "not-yet"), models, tmp_path) == 3
    assert on_another_disk(on_hub(tmp_path, 10**9, tmp_path / "common"), models, tmp_path) == 0
    assert on_another_disk(load(smoke()), models, tmp_path) == 0


@pytest.fixture
def boto3():
    return pytest.importorskip("boto3", reason="boto3 is not installed (extra s3)")


@pytest.mark.slow
def test_what_refuses_is_said(boto3):
    (found,) = places(validated(smoke({"storage.cache": AWAY})), TOTALS, refusing)
    assert (found.status, found.said) == ("fail", f"{AWAY}: access is denied")
