"""Config block for where large files lie when they are not to lie below the results folder."""

import re
from importlib.util import find_spec

from pydantic import field_validator

from isotrace.errors import ConfigError
from isotrace.settings.base import Block, key

PLACE = re.compile(r"s3://[a-z0-9][a-z0-9.-]+[a-z0-9](/[A-Za-z0-9._=-]+)*")


class Storage(Block):
    """Where large files lie; what is there already stays and is found, so that no change makes a capture run again."""

    cache: str | None = key(
        None, "cached rows of captures to come: s3://BUCKET/PREFIX (extra `s3`); null: below the results folder"
    )
    weights: str | None = key(
        None, "folder in which studies keep what they fetch from the hub in common; null: each its own", min_length=1
    )

    @field_validator("cache")
    @classmethod
    def _check_place(cls, value: str | None) -> str | None:
        if value is None or PLACE.fullmatch(value):
            return value
        raise ValueError("not s3://BUCKET/PREFIX; credentials come from the environment or ~/.aws, never from here")


def check_storage(storage: Storage) -> None:
    """ConfigError where rows are to go to a bucket and nothing is installed that could bring them there."""
    if storage.cache and find_spec("boto3") is None:
        raise ConfigError(f"storage.cache: {storage.cache} needs boto3; install isotrace with the extra `s3`")
