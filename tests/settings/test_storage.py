"""Where large files lie: addresses that make sense, no credentials in the config, and nothing reruns by moving them."""

import sys

import pytest

from configs import smoke
from isotrace.errors import ConfigError
from isotrace.params import Params
from isotrace.study import load, validated


@pytest.mark.parametrize("place", ["rows", "s3:/rows", "s3://", "s3://rows/", "gs://rows/x", "s3://rows/a b", "s3://R"])
def test_what_is_no_place_in_a_bucket_is_refused(place):
    with pytest.raises(ConfigError, match=r"storage.cache: not s3://BUCKET/PREFIX; credentials come from"):
        validated(smoke({"storage.cache": place}))


def test_credentials_in_an_address_are_refused_and_not_repeated():
    with pytest.raises(ConfigError) as caught:
        validated(smoke({"storage.cache": "s3://AKIAMADEUP:hidden@rows/x"}))
    assert "hidden" not in str(caught.value)
    assert "AKIAMADEUP" not in str(caught.value)


def test_without_boto3_the_extra_is_named_before_any_job(monkeypatch):
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(ConfigError, match=r"storage.cache: s3://rows/x needs boto3; .* extra `s3`"):
        load(smoke({"storage.cache": "s3://rows/x"}))


def test_no_param_of_what_reads_or_writes_rows_or_weights_says_where_they_lie():
    plain, away = (
        Params(validated(smoke(edits))) for edits in ({}, {"storage.cache": "s3://rows/x", "storage.weights": "common"})
    )
    assert plain.capture("decoder", "step3") == away.capture("decoder", "step3")
    assert plain.analysis("energy", "decoder") == away.analysis("energy", "decoder")
    assert plain.report() != away.report()
