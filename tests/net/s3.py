"""The S3 of s3_server.py, in a process of its own, and what tests ask of it by AWS's own client."""

import pathlib
import subprocess
import sys

import boto3
from botocore.config import Config

from process import Log, start, stop
from s3_names import CLOSED, KEYS, OPEN, REGION

PROGRAM = pathlib.Path(__file__).with_name("s3_server.py")


class S3:
    """`endpoint` is where to ask. Two buckets: `closed` wants signatures, `open` may be read without."""

    region, closed, open = REGION, CLOSED, OPEN

    def __init__(self, folder):
        with open(folder / "output.log", "wb") as output:
            self.process = start([sys.executable, PROGRAM, folder / "asked.log"], stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=output, text=True)
        self.port = int(self.process.stdout.readline() or 0)
        if not self.port:
            raise RuntimeError(f"moto does not start: {(folder / 'output.log').read_text()[-2000:]}")
        self.endpoint = f"http://127.0.0.1:{self.port}"
        self.log = Log(folder / "asked.log")
        self.client = self.client_of()
        for bucket in (self.closed, self.open):
            self.client.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": REGION})

    @staticmethod
    def environment(key="TESTKEY"):
        """Variables that give a program the credentials; "TESTTEMPORARY" are those of a session."""
        secret, token = KEYS[key]
        variables = {"AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret, "AWS_REGION": REGION}
        return {**variables, **({"AWS_SESSION_TOKEN": token} if token else {})}

    def client_of(self, key="TESTKEY", secret=None, region=REGION, token=None, endpoint=None):
        """AWS's client, which never asks twice."""
        expected_secret, expected_token = KEYS.get(key, ("", None))
        return boto3.client("s3", endpoint_url=endpoint or self.endpoint, region_name=region, aws_access_key_id=key,
                            aws_secret_access_key=secret or expected_secret, aws_session_token=token or expected_token,
                            config=Config(s3={"addressing_style": "path"}, retries={"total_max_attempts": 1},
                                          signature_version="s3v4", request_checksum_calculation="when_required",
                                          response_checksum_validation="when_required"))

    def put(self, bucket, key, content):
        words = {"ACL": "public-read"} if bucket == self.open else {}
        self.client.put_object(Bucket=bucket, Key=key, Body=content, **words)

    def get(self, bucket, key):
        return self.client.get_object(Bucket=bucket, Key=key)["Body"].read()

    def keys(self, bucket):
        return [found["Key"] for found in self.client.list_objects_v2(Bucket=bucket).get("Contents", [])]

    def presigned(self, bucket, key, seconds=600):
        return self.client.generate_presigned_url("get_object", {"Bucket": bucket, "Key": key}, seconds)

    def uploads(self, bucket):
        """Uploads that are neither completed nor aborted: {key: numbers of the parts}."""
        found = self.client.list_multipart_uploads(Bucket=bucket).get("Uploads", [])
        return {upload["Key"]: [part["PartNumber"] for part in self.client.list_parts(
            Bucket=bucket, Key=upload["Key"], UploadId=upload["UploadId"]).get("Parts", [])] for upload in found}

    def requests(self):
        """What was asked since the last call, also by the functions above."""
        return self.log.take()

    def close(self):
        stop(self.process)
