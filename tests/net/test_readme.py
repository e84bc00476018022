"""README's Python of the network runs as it is written, but for names of servers, and for a GPU where COGPU_DEVICES
has none."""

import os
import pathlib
import re

import numpy as np
from test_python_read import cogpu

GPU = f"gpu={'cuda' in os.environ.get('COGPU_DEVICES', '')}"
README = pathlib.Path(__file__).resolve().parents[2] / "README.md"


def test_readme_runs_as_written(nginx, s3, cog):
    code = re.search(r"^```python network\n(.*?)^```", README.read_text(), re.M | re.S)[1]
    variables = s3.environment()
    cogpu.configure(network={"private_addresses": True, "s3_endpoint": s3.endpoint, "s3_region": s3.region,
                             "s3_access_key": variables["AWS_ACCESS_KEY_ID"],
                             "s3_secret_key": variables["AWS_SECRET_ACCESS_KEY"]})
    for written, here in (("https://example.org/dem.tif", f"{nginx.http}/files/masked.tif"), ("gpu=True", GPU),
                          ("s3://bucket/", f"s3://{s3.closed}/")):
        assert written in code
        code = code.replace(written, here)
    nginx.requests()
    try:
        exec(compile(code, "README.md", "exec"), {"cogpu": cogpu})
    finally:
        cogpu.configure()
    assert len(nginx.requests()) <= 3  # 512 x 512 of tiles of 256: two rows of them
    with cogpu.open(memoryview(s3.get(s3.closed, "part.tif"))) as file:
        np.testing.assert_array_equal(np.asarray(file.read()), cog["masked"].pixels[:, :512, :512])
    assert cogpu.check(memoryview(s3.get(s3.closed, "part.tif")))["verdict"] == "valid"
