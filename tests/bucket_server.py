"""Object storage on this machine's loopback: moto's server in a process of its own, with one empty bucket."""

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import IO, Any

import pytest

BUCKET = "rows"
PLACE = f"s3://{BUCKET}/of/us"
SECRET = "not-a-secret-but-never-to-be-seen"
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "AKIAMADEUPMADEUP1234",
    "AWS_SECRET_ACCESS_KEY": SECRET,
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}
needs_moto = pytest.mark.skipif(
    find_spec("moto") is None or find_spec("boto3") is None or find_spec("flask") is None,
    reason="moto's server is not installed; .ci/run installs it",
)


@contextmanager
def serving_bucket() -> Iterator[str]:
    """The server's address while the body runs."""
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"]
    with tempfile.TemporaryFile("w+") as said:
        server = subprocess.Popen(command, stderr=said, stdout=said)
        try:
            while (found := _address(said)) is None:
                assert server.poll() is None, "moto's server ended"
                time.sleep(0.05)
            yield found
        finally:
            server.kill()
            server.wait()


def _address(said: IO[str]) -> str | None:
    """The address in what the server has said so far."""
    said.seek(0)
    match = re.search(r"http://127\.0\.0\.1:\d+", said.read())
    return match[0] if match else None


def environment(endpoint: str) -> dict[str, str]:
    """What a user would have set."""
    return CREDENTIALS | {"AWS_ENDPOINT_URL": endpoint, "AWS_CONFIG_FILE": os.devnull}


def raw_client() -> Any:
    """boto3 itself, to look at the bucket and to damage it."""
    import boto3

    return boto3.client("s3")


def keys(client: Any) -> list[str]:
    """Every object of the bucket."""
    return [o["Key"] for o in client.list_objects_v2(Bucket=BUCKET).get("Contents", [])]
