"""A real run whose rows lie in a bucket: the numbers of a local run, and nothing but manifests in the folder."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from running import Study

from bucket_server import BUCKET, CREDENTIALS, PLACE, SECRET, environment, keys, needs_moto, raw_client, serving_bucket

pytestmark = [needs_moto, pytest.mark.slow]
MADE = ("cache", "moments", "attention", "bases", "energy", "isotropy", "geometry", "frequency", "controls", "tables")
TABLES = [f"results/tables/{stage}.parquet" for stage in MADE[4:-1]]


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    with serving_bucket() as endpoint:
        for name, value in environment(endpoint).items():
            monkeypatch.setenv(name, value)
        client = raw_client()
        client.create_bucket(Bucket=BUCKET)
        yield client
        client.close()


def verified(study: Study) -> CompletedProcess[str]:
    command = [sys.executable, "-m", "isotrace", "verify", "results"]
    return subprocess.run(command, cwd=study.folder, env=study.environment(), capture_output=True, text=True)


def said_anywhere(study: Study, text: str) -> list[Path]:
    files = [file for file in study.folder.rglob("*") if file.is_file() and file.stat().st_size < 10**7]
    return [file for file in files if text.encode() in file.read_bytes()]


def test_rows_in_a_bucket_give_the_tables_of_a_local_run(own: Study, smoke: Study, s3: Any):
    study = own.changed({"storage.cache": PLACE})
    assert "capture" not in study.planned()  # what is there stays where it is

    for name in MADE:
        shutil.rmtree(own.at(name))
    study.done(*TABLES)
    for name in TABLES:
        assert (study.folder / name).read_bytes() == (smoke.folder / name).read_bytes(), name

    assert not any("store.zarr" in str(file) for file in study.at("cache").rglob("*"))
    assert sum(key.endswith("/manifest.json") for key in keys(s3)) == 6
    assert verified(study).returncode == 0
    assert study.planned(*TABLES) == {}
    for secret in (SECRET, CREDENTIALS["AWS_ACCESS_KEY_ID"]):
        assert said_anywhere(study, secret) == []

    lost = next(key for key in keys(s3) if "/decoder/step3/" in key and "/b1/activations/c/" in key)
    s3.delete_object(Bucket=BUCKET, Key=lost)
    result = verified(study)
    assert result.returncode == 1
    assert "decoder/step3: b1/activations/c/0/0/0 is lost" in result.stdout

    study.done("clean_cache")
    assert keys(s3) == []
    assert not study.at("cache").exists()
    assert study.planned(*TABLES) == {}


def test_a_wrong_bucket_stops_the_capture_with_one_line(own: Study, s3: Any):
    for name in MADE:
        shutil.rmtree(own.at(name))
    study = own.changed({"storage.cache": "s3://nowhere/rows"})
    line = refused_by_a_job(study.snakemake("results/cache/decoder/step3.json"))
    assert "s3://nowhere/rows/" in line
    assert "there is no such bucket" in line


def refused_by_a_job(result: CompletedProcess[str]) -> str:
    """The one line of the job that ended a run."""
    assert result.returncode == 1, result.stdout
    assert "Traceback" not in result.stdout
    [line] = {text.strip() for text in result.stdout.splitlines() if text.startswith("isotrace: error: ")}
    return line
