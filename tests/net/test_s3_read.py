"""Reading from S3: signed, with a session, without credentials, and what a store refuses."""

import numpy as np
import pytest
from test_http_read import PATIENT, Reader, cogpu


def reader_of(s3, **words):
    return Reader(s3_endpoint=s3.endpoint.encode(), s3_region=s3.region.encode(), max_retries=1, **words)


@pytest.mark.parametrize("key", ["TESTKEY", "TESTTEMPORARY"])
def test_signed(key, s3, cog, monkeypatch):
    for name, value in s3.environment(key).items():
        monkeypatch.setenv(name, value)
    reader = reader_of(s3)
    with reader.context, reader.open(f"s3://{s3.closed}/masked.tif") as file:
        np.testing.assert_array_equal(file.read(), cog["masked"].pixels)


def test_anonymous(s3, cog):
    reader = reader_of(s3, s3_anonymous=1)
    with reader.context:
        with reader.open(f"s3://{s3.open}/bigtiff.tif") as file:
            np.testing.assert_array_equal(file.read(), cog["bigtiff"].pixels)
        with pytest.raises(cogpu.CogpuError, match="403"):
            reader.open(f"s3://{s3.closed}/bigtiff.tif")


def test_a_presigned_url_is_a_url(s3, cog):
    reader = Reader(**PATIENT)
    with reader.context, reader.open(s3.presigned(s3.closed, "bigtiff.tif")) as file:
        np.testing.assert_array_equal(file.read(), cog["bigtiff"].pixels)


def test_wrong_secrets_are_refused_and_stay_secret(s3):
    reader = reader_of(s3, s3_access_key=b"TESTKEY", s3_secret_key=b"not-the-secret")
    with reader.context, pytest.raises(cogpu.CogpuError) as caught:
        reader.open(f"s3://{s3.closed}/bigtiff.tif")
    assert "not-the-secret" not in str(caught.value) and "TESTKEY" not in str(caught.value)


def test_what_is_not_there(s3, monkeypatch):
    for name, value in s3.environment().items():
        monkeypatch.setenv(name, value)
    reader = reader_of(s3)
    with reader.context, pytest.raises(cogpu.CogpuError, match="no such file"):
        reader.open(f"s3://{s3.closed}/none.tif")
