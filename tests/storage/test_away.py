"""Stores whose files lie in a bucket: whole or not there, checked when read, removed by their own folder only."""

import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sealed
from bucket_server import BUCKET, CREDENTIALS, PLACE, keys, needs_moto
from isotrace.cleaning import clean_cache
from isotrace.errors import DataError
from isotrace.ownership import claim
from isotrace.readers import sites_of
from isotrace.storage.bucket import Bucket
from isotrace.store import create, differences, open_store, read_manifest, seal_empty
from isotrace.stored_rows import read_rows
from isotrace.verify import findings
from sealed import MAKING, ROWS

pytestmark = [needs_moto, pytest.mark.slow]


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    return tmp_path / "results" / "cache" / "decoder" / "step1.json"


def write(manifest: Path, rows: np.ndarray = ROWS) -> None:
    with claim(manifest, away={manifest: PLACE}) as (attempt,):
        sealed.write(attempt, rows)


def key_of(manifest: Path, name: str) -> str:
    location = str(read_manifest(manifest)["location"])
    return f"{location.removeprefix(f's3://{BUCKET}/')}/store.zarr/{name}"


def test_what_is_read_is_what_was_written_and_nothing_but_the_manifest_stays_here(s3: Any, manifest: Path):
    write(manifest)
    root = open_store(manifest, ("b1",))
    np.testing.assert_array_equal(read_rows(root["b1"], "activations"), ROWS)
    assert [p.name for p in manifest.parent.rglob("*") if p.is_file()] == ["step1.json"]
    assert findings(manifest) == []
    for name in read_manifest(manifest)["files"]:
        assert key_of(manifest, name) in keys(s3)
    assert sum(name.endswith("manifest.json") for name in keys(s3)) == 1


def test_a_job_fetches_its_own_bucket_and_leaves_no_scratch(s3: Any, manifest: Path):
    write(manifest)
    root = open_store(manifest, ("b1",))
    folder = root.store.root
    assert {p.relative_to(folder).parts[0] for p in folder.rglob("*")} == {"b1", "zarr.json"}
    del root
    assert not folder.exists()


def test_what_was_not_fetched_is_fetched_when_asked_for_and_never_reads_as_empty(s3: Any, manifest: Path):
    write(manifest)
    root = open_store(manifest, ("b1",))
    assert sites_of(root) == ("embed", "block.0")
    np.testing.assert_array_equal(read_rows(root["b0"], "activations", 1), ROWS[1])
    s3.put_object(Bucket=BUCKET, Key=key_of(manifest, "b0/token_id/c/0"), Body=b"other")
    with pytest.raises(DataError, match=r"b0/token_id/c/0: changed since it was sealed; capture again"):
        root["b0"]["token_id"][...]


@pytest.mark.parametrize(("damage", "said"), [("lost", "an object is gone"), ("changed", "changed since it was seal")])
def test_a_lost_or_changed_object_stops_its_reader_and_is_found_by_verifying(s3: Any, manifest: Path, damage, said):
    write(manifest)
    name = "b1/activations/c/0/0/0"
    key = key_of(manifest, name)
    if damage == "lost":
        s3.delete_object(Bucket=BUCKET, Key=key)
    else:
        size = s3.head_object(Bucket=BUCKET, Key=key)["ContentLength"]
        s3.put_object(Bucket=BUCKET, Key=key, Body=bytes(size))
    with pytest.raises(DataError, match=said) as caught:
        open_store(manifest, ("b1",))
    assert name in str(caught.value)
    assert findings(manifest) == [f"{name} is lost" if damage == "lost" else f"{name} changed"]
    assert "b0" in open_store(manifest, ("b0",))
    s3.put_object(Bucket=BUCKET, Key=key_of(manifest, "b9/x"), Body=b"foreign")
    assert findings(manifest)[1] == "b9/x is not in the manifest"


def test_a_store_that_is_written_again_leaves_nothing_of_the_first(s3: Any, manifest: Path):
    write(manifest)
    before = keys(s3)
    write(manifest, ROWS + 1)
    assert not set(before) & set(keys(s3))
    assert len(keys(s3)) == len(before)
    np.testing.assert_array_equal(read_rows(open_store(manifest)["b0"], "activations"), ROWS + 1)


def test_a_tombstone_leaves_nothing_in_the_bucket(s3: Any, manifest: Path):
    write(manifest)
    with claim(manifest, away={manifest: PLACE}) as (attempt,):
        seal_empty(attempt, attributes={}, fingerprint=MAKING, reason="weights are truncated")
    assert keys(s3) == []
    assert differences(manifest, read_manifest(manifest)) == []


def test_an_orphan_that_ends_late_leaves_the_heirs_objects_alone(s3: Any, manifest: Path):
    lost = pytest.raises(DataError, match="another run of this job took over")
    with claim(manifest, away={manifest: PLACE}) as (orphan,), lost, create(orphan, {}, MAKING):
        write(manifest, ROWS + 1)
        heirs = keys(s3)
    assert keys(s3) == heirs
    np.testing.assert_array_equal(read_rows(open_store(manifest)["b0"], "activations"), ROWS + 1)


SLOW = """
import sys
from pathlib import Path
import numpy as np
from isotrace.ownership import claim
from isotrace.store import create, put
manifest = Path(sys.argv[1])
with claim(manifest, away={manifest: sys.argv[2]}) as (attempt,):
    with create(attempt, {}, {"params_digest": "", "code_digest": "", "versions": {}}) as root:
        for i in range(150):
            put(root, f"x{i}", np.full(100, i), ("token",))
"""


def test_a_killed_upload_never_looks_complete_and_the_next_attempt_clears_it(s3: Any, manifest: Path):
    child = subprocess.Popen([sys.executable, "-c", SLOW, str(manifest), PLACE])
    while len(keys(s3)) < 20:
        assert child.poll() is None
        time.sleep(0.01)
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert 20 <= len(keys(s3)) < 300
    assert not any(name.endswith("/manifest.json") for name in keys(s3))
    with pytest.raises(DataError, match="not a sealed store"):
        open_store(manifest)
    write(manifest)
    assert {key_of(manifest, name) for name in read_manifest(manifest)["files"]} == {
        name for name in keys(s3) if not name.endswith("/manifest.json")
    }


def test_folders_with_the_same_names_in_one_place_do_not_touch_each_other(s3: Any, manifest: Path, tmp_path: Path):
    write(manifest)
    other = tmp_path / "other" / "cache" / "decoder" / "step1.json"
    write(other, ROWS + 1)
    clean_cache(other.parents[1], PLACE)
    assert not other.parents[1].exists()
    np.testing.assert_array_equal(read_rows(open_store(manifest)["b0"], "activations"), ROWS)
    assert findings(manifest) == []


def test_a_copy_of_a_folder_reads_the_same_objects_and_removes_none(s3: Any, manifest: Path, tmp_path: Path):
    write(manifest)
    shutil.copytree(tmp_path / "results", tmp_path / "copy")
    copied = tmp_path / "copy" / "cache" / "decoder" / "step1.json"
    np.testing.assert_array_equal(read_rows(open_store(copied)["b0"], "activations"), ROWS)
    write(copied, ROWS + 1)
    assert findings(manifest) == []
    clean_cache(copied.parents[1], PLACE)
    assert findings(manifest) == []


def test_cleaning_removes_objects_at_every_place_manifests_name_and_killed_uploads(s3: Any, manifest: Path):
    write(manifest)
    home = read_manifest(manifest)["location"].split("/")[-4]
    other = manifest.with_name("step2.json")
    with claim(other, away={other: f"s3://{BUCKET}/elsewhere"}) as (attempt,):
        sealed.write(attempt)
    s3.put_object(Bucket=BUCKET, Key=f"of/us/{home}/decoder/step3/abc/store.zarr/zarr.json", Body=b"left")
    s3.put_object(Bucket=BUCKET, Key="of/us/another/decoder/step3/manifest.json", Body=b"theirs")
    clean_cache(manifest.parents[1], PLACE)
    assert keys(s3) == ["of/us/another/decoder/step3/manifest.json"]
    assert not manifest.parents[1].exists()


def test_a_wrong_bucket_is_one_line_before_anything_is_computed(s3: Any, manifest: Path):
    one_line = pytest.raises(DataError, match=r"^s3://nowhere/x/.*: there is no such bucket; .*storage.cache$")
    with one_line, claim(manifest, away={manifest: "s3://nowhere/x"}):
        pytest.fail("computing began")


def test_no_credentials_is_one_line(s3: Any, manifest: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    for name in CREDENTIALS:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    with pytest.raises(DataError, match=r"no credentials: set AWS_PROFILE, or AWS_ACCESS_KEY_ID"):
        write(manifest)
    monkeypatch.setenv("AWS_PROFILE", "mine")
    with pytest.raises(DataError, match=r"AWS_PROFILE names no profile"):
        write(manifest)


def test_refused_credentials_are_one_line_that_repeats_none(s3: Any, endpoint: str, manifest: Path):
    """Once told to, moto looks at who asks."""

    def checked(after: int) -> None:
        content, kind = str(after).encode(), {"Content-Type": "text/plain"}
        request = urllib.request.Request(f"{endpoint}/moto-api/reset-auth", content, kind, method="POST")
        urllib.request.urlopen(request).close()

    checked(0)
    try:
        with pytest.raises(DataError, match="the credentials are not known there; renew them") as caught:
            Bucket(PLACE).put_bytes(b"", "x")
    finally:
        checked(10**9)
    assert not any(value in str(caught.value) for name, value in CREDENTIALS.items() if "KEY" in name)


def test_nobody_at_the_address_is_one_line(s3: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    with pytest.raises(DataError, match="no answer; look at the network and at AWS_ENDPOINT_URL"):
        Bucket(PLACE).sizes()
