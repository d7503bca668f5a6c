"""A prefix of an S3 bucket: files put, fetched, listed and removed; every failure is one line.

By boto3 (our choice): it knows every credential of the usual chain, which the smaller clients do not.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from isotrace.errors import ConfigError, DataError
from isotrace.recorded import Digest

WORKERS = 8
"""Requests at a time of one job."""
BATCH = 1000
"""Objects that one request removes, at most."""
PIECE = 2**20
SAID = {
    "NoSuchBucket": "there is no such bucket; make it, or mend storage.cache",
    "404": "not there: the bucket, or the object in it; mend storage.cache, or capture again",
    "NoSuchKey": "an object is gone; capture again",
    "AccessDenied": "access is denied; s3:ListBucket, GetObject, PutObject and DeleteObject are needed",
    "403": "access is denied; s3:ListBucket, GetObject, PutObject and DeleteObject are needed",
    "InvalidAccessKeyId": "the credentials are not known there; renew them",
    "SignatureDoesNotMatch": "the secret does not fit the key; renew the credentials",
    "ExpiredToken": "the credentials have expired; renew them",
    "NoCredentialsError": "no credentials: set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "PartialCredentialsError": "the credentials are incomplete; AWS_ACCESS_KEY_ID goes with AWS_SECRET_ACCESS_KEY",
    "ProfileNotFound": "AWS_PROFILE names no profile of ~/.aws/config",
    "EndpointConnectionError": "no answer; look at the network and at AWS_ENDPOINT_URL",
    "ConnectTimeoutError": "no answer; look at the network and at AWS_ENDPOINT_URL",
}
"""Code or kind of a failure -> what it means. Messages of the service are not repeated: they may hold a key."""


def client() -> Any:
    """A client of boto3; the environment, profiles and roles say who and where (``AWS_ENDPOINT_URL``)."""
    try:
        import boto3
        from botocore.config import Config
    except ImportError:
        raise ConfigError("storage.cache: s3:// needs boto3; install isotrace with the extra `s3`") from None
    return boto3.session.Session().client("s3", config=Config(max_pool_connections=WORKERS))


class Bucket:
    """What lies below ``s3://BUCKET/PREFIX``, by names relative to it.

    Every method raises `DataError` of one line, with the URL and what to do, where the service refuses or is away.
    """

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self._name, _, self._prefix = self.url.removeprefix("s3://").partition("/")
        with self._told():
            self._client = client()

    def put(self, files: Iterable[tuple[Path, str]]) -> None:
        """Upload files under names; large ones in parts, each checked on arrival by the service."""
        from boto3.s3.transfer import TransferConfig

        alone = TransferConfig(use_threads=False)  # WORKERS of them at a time are enough

        def one(pair: tuple[Path, str]) -> None:
            self._client.upload_file(str(pair[0]), self._name, self._key(pair[1]), Config=alone)

        self._each(one, files)

    def put_bytes(self, content: bytes, name: str) -> None:
        """Upload one small object."""
        with self._told():
            self._client.put_object(Bucket=self._name, Key=self._key(name), Body=content)

    def fetch(self, name: str, file: Path) -> Digest:
        """Download one object into a file; what came."""
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("wb") as stream:
            return self._read(name, stream.write)

    def digest(self, name: str) -> Digest:
        """Read one object and keep nothing of it."""
        return self._read(name, len)

    def sizes(self) -> dict[str, int]:
        """Every object by name, in bytes."""
        found: dict[str, int] = {}
        with self._told():
            pages = self._client.get_paginator("list_objects_v2")
            for page in pages.paginate(Bucket=self._name, Prefix=self._key("")):
                found |= {o["Key"].removeprefix(self._key("")): o["Size"] for o in page.get("Contents", [])}
        return found

    def remove(self, names: Iterable[str]) -> None:
        """Remove objects; those that are gone already are no failure."""
        keys = [{"Key": self._key(name)} for name in names]
        with self._told():
            for i in range(0, len(keys), BATCH):
                batch = {"Objects": keys[i : i + BATCH], "Quiet": True}
                answer = self._client.delete_objects(Bucket=self._name, Delete=batch)
                for error in answer.get("Errors", [])[:1]:
                    raise DataError(f"{self.url}: {_said(error['Code'])}")

    def _read(self, name: str, take: Callable[[bytes], int]) -> Digest:
        sha256, total = hashlib.sha256(), 0
        with self._told(name):
            body = self._client.get_object(Bucket=self._name, Key=self._key(name))["Body"]
            for piece in body.iter_chunks(PIECE):
                sha256.update(piece)
                total += len(piece)
                take(piece)
        return {"bytes": total, "sha256": sha256.hexdigest()}

    def _each(self, one: Callable[[Any], None], items: Iterable[Any]) -> None:
        with self._told(), ThreadPoolExecutor(WORKERS) as pool:
            for _ in pool.map(one, items):
                pass

    def _key(self, name: str) -> str:
        return f"{self._prefix}/{name}" if self._prefix else name

    @contextmanager
    def _told(self, name: str = "") -> Iterator[None]:
        """Failures of the service and of the way to it as one line; those of the disk as they are."""
        try:
            yield
        except Exception as error:
            code = _code(error)
            if code is None:
                raise
            raise DataError(f"{self.url}{name and '/'}{name}: {_said(code)}") from None


def _code(error: BaseException) -> str | None:
    """The service's code, or the kind of failure, of an error of boto3; None of any other."""
    if type(error).__module__.partition(".")[0] not in ("boto3", "botocore", "s3transfer"):
        return None
    if isinstance(error.__context__, Exception) and type(error).__name__ == "S3UploadFailedError":
        return _code(error.__context__)
    response = getattr(error, "response", None) or {}
    return str(response.get("Error", {}).get("Code") or type(error).__name__)


def _said(code: str) -> str:
    return SAID.get(code, f"the service answered {code}; try again, or ask whoever runs it")
