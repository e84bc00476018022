"""Writing to S3 by TLS, through an nginx that has it: the bytes of a local file by HTTP/1.1 and HTTP/2, signatures that
hold; and nothing sent to a server that is not who it says."""

import os
import pathlib
import shutil
import subprocess

import pytest
from test_cli_read import BINARY
from test_cli_write import make_image, words
from test_python_read import cogpu
from test_s3_write import KEY, NO_UPLOAD, clean, noise  # noqa: F401 (a fixture)

PROTOCOLS = {"https": "HTTP/2.0", "https1": "HTTP/1.1"}
SYSTEM = pathlib.Path("/etc/ssl/certs/ca-certificates.crt")  # authorities that libcurl trusts, on Debian and its kin
ARRAY = noise(4096, 4096)
OPTIONS = {"cog": True, "compression": "zstd", "crs": "EPSG:32633", "transform": (10, 0, 4e5, 0, -10, 5e6)}


@pytest.fixture
def to_geotiff(s3):
    """The package's, for an endpoint and an authority; None: the system's."""
    def to_geotiff(array, endpoint, ca, **options):
        variables = s3.environment()
        cogpu.configure(network={"s3_endpoint": endpoint, "s3_region": s3.region, "max_retries": 1,
                                 "ca_file": ca and str(ca), "s3_access_key": variables["AWS_ACCESS_KEY_ID"],
                                 "s3_secret_key": variables["AWS_SECRET_ACCESS_KEY"]})
        cogpu.to_geotiff(array, f"s3://{s3.closed}/{KEY}", **OPTIONS, **options)
    yield to_geotiff
    cogpu.configure()


@pytest.fixture
def convert(s3):
    """The command line's, where the system trusts the authority, and none but that."""
    if not os.access(BINARY, os.X_OK):
        pytest.skip(f"{BINARY} is not built")
    own = ["unshare", "--map-root-user", "--mount", "sh", "-c", 'mount --bind "$0" "$1" && shift && exec "$@"']
    if not SYSTEM.exists() or not shutil.which("unshare") or \
            subprocess.run([*own, SYSTEM, SYSTEM, "true"], capture_output=True).returncode:
        pytest.skip(f"{SYSTEM} is not there, or cannot be another file for one process (unshare)")

    def convert(path, endpoint, ca, *options):
        plain = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        command = [BINARY, "convert", path, f"s3://{s3.closed}/{KEY}", *words(s3, endpoint), *options]
        return subprocess.run([*own, ca, SYSTEM, *command], env=plain | s3.environment(), capture_output=True, text=True,
                              timeout=120)
    return convert


def check(s3, s3_secure, server, local):
    """Parts came, by that protocol alone, and are the local file."""
    asked = s3_secure.requests()
    assert {(request.scheme, request.protocol) for request in asked} == {("https", PROTOCOLS[server])}
    assert sum("partNumber" in request.path for request in asked) >= 3
    assert s3.get(s3.closed, KEY) == local.read_bytes() and s3.uploads(s3.closed) == NO_UPLOAD


def check_nothing(s3):
    assert s3.requests() == []
    assert KEY not in s3.keys(s3.closed) and s3.uploads(s3.closed) == NO_UPLOAD


@pytest.mark.parametrize("server", PROTOCOLS)
def test_python(server, to_geotiff, s3, s3_secure, tmp_path):
    to_geotiff(ARRAY, getattr(s3_secure, server), s3_secure.ca, streaming_buffer_bytes=4 << 20)
    cogpu.to_geotiff(ARRAY, tmp_path / "local.tif", **OPTIONS)
    check(s3, s3_secure, server, tmp_path / "local.tif")


@pytest.mark.parametrize("server", PROTOCOLS)
def test_command_line(server, convert, s3, s3_secure, tmp_path):
    image = make_image(tmp_path / "image.tif", ARRAY[None])
    done = convert(image, getattr(s3_secure, server), s3_secure.ca, "--cog")
    assert (done.returncode, done.stderr) == (0, "")
    assert subprocess.run([BINARY, "convert", image, tmp_path / "local.tif", "--cog"]).returncode == 0
    check(s3, s3_secure, server, tmp_path / "local.tif")


@pytest.mark.parametrize("array", [ARRAY[:64, :64], ARRAY], ids=["at once", "in parts"])
@pytest.mark.parametrize("server", ["untrusted", "expired", "misnamed", "https"])
def test_python_refuses(server, array, to_geotiff, s3, s3_secure):
    """The last is valid, and its authority is none of the system's."""
    with pytest.raises(OSError, match="certificate"):
        to_geotiff(array, getattr(s3_secure, server), None if server == "https" else s3_secure.ca)
    check_nothing(s3)


def test_command_line_refuses(convert, s3, s3_secure, tmp_path):
    done = convert(make_image(tmp_path / "image.tif", ARRAY[None]), s3_secure.untrusted, s3_secure.ca, "--cog")
    assert done.returncode == 1 and "certificate" in done.stderr
    check_nothing(s3)
