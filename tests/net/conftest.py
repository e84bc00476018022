"""Servers that tests of remote reads and writes talk to, each started once a session, when first asked for.

  nginx   see nginx.py
  faults  a proxy before nginx that spoils answers: see proxy.py
  s3      moto's, with signatures checked: see s3.py; s3_faults is the proxy before it, s3_secure an nginx with TLS
  cog     COGs that nginx serves under /files/ and S3 has in both buckets: see cogs.py

A test finds them without plans, and with nothing asked of them yet. Where a server is not installed its tests are
skipped, and say so; without libcurl all are, but for those of the servers themselves.
"""

import importlib.util
import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "python"))
import cogpu_ctypes  # noqa: E402


def pytest_collection_modifyitems(items):
    if cogpu_ctypes.lib is None or cogpu_ctypes.lib.cogpu_curl_version() is not None:
        return
    skip = pytest.mark.skip(reason="this build has no libcurl, which URLs need; install it and build again")
    for item in items:
        if item.path.parent == HERE and item.path.name != "test_servers.py":
            item.add_marker(skip)


def need(*modules):
    for module in modules:
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed (make setup)")


@pytest.fixture(scope="session")
def cog(tmp_path_factory):
    """{name: its path, pixels, valid, overviews}"""
    need("numpy", "rasterio")
    import cogs
    return cogs.make(tmp_path_factory.mktemp("files"))


def nginx_in(folder, cog, store=None):
    need("cryptography")
    import nginx
    if nginx.PROGRAM is None:
        pytest.skip("nginx is not installed (make setup)")
    server = nginx.Nginx(folder, next(iter(cog.values())).path.parent, store)
    yield server
    server.close()


@pytest.fixture(scope="session")
def nginx_server(tmp_path_factory, cog):
    yield from nginx_in(tmp_path_factory.mktemp("nginx"), cog)


@pytest.fixture
def nginx(nginx_server):
    nginx_server.requests()
    return nginx_server


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory, cog):
    need("boto3", "moto", "flask", "flask_cors")
    import s3
    server = s3.S3(tmp_path_factory.mktemp("s3"))
    for made in cog.values():
        for bucket in (server.open, server.closed):
            server.put(bucket, made.name, made.path.read_bytes())
    yield server
    server.close()


@pytest.fixture
def s3(s3_server):
    s3_server.requests()
    return s3_server


@pytest.fixture(scope="session")
def s3_nginx(tmp_path_factory, cog, s3_server):
    yield from nginx_in(tmp_path_factory.mktemp("s3_nginx"), cog, s3_server.port)


@pytest.fixture
def s3_secure(s3, s3_nginx):
    s3_nginx.requests()
    return s3_nginx


def proxy_before(server):
    from faults import Faults
    proxy = Faults(server)
    yield proxy
    proxy.close()


@pytest.fixture(scope="session")
def nginx_proxy(nginx_server):
    yield from proxy_before(nginx_server.ports["http"])


@pytest.fixture(scope="session")
def s3_proxy(s3_server):
    yield from proxy_before(s3_server.port)


@pytest.fixture
def faults(nginx, nginx_proxy):
    nginx_proxy.plan()
    return nginx_proxy


@pytest.fixture
def s3_faults(s3, s3_proxy):
    s3_proxy.plan()
    return s3_proxy
