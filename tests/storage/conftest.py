"""A bucket for each test, on one server for all; credentials in the environment, as a user would have them."""

from collections.abc import Iterator
from typing import Any

import pytest

from bucket_server import BUCKET, environment, keys, raw_client, serving_bucket


@pytest.fixture(scope="session")
def endpoint() -> Iterator[str]:
    with serving_bucket() as found:
        yield found


@pytest.fixture
def s3(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """boto3's client of a server with the empty bucket; what was in it is gone afterwards."""
    for name, value in environment(endpoint).items():
        monkeypatch.setenv(name, value)
    client = raw_client()
    client.create_bucket(Bucket=BUCKET)
    yield client
    for name in keys(client):
        client.delete_object(Bucket=BUCKET, Key=name)
    client.delete_bucket(Bucket=BUCKET)
    client.close()
