"""The Python package reads URLs as it reads paths: files, xarray, Dask, other processes; and shows no secrets."""

import asyncio
import concurrent.futures
import functools
import io
import multiprocessing
import os
import pathlib
import pickle
import shutil
import subprocess
import sys
import threading

import numpy as np
import pytest

PACKAGE = os.environ.get("COGPU_PACKAGE", str(pathlib.Path(__file__).resolve().parents[2] / "build" / "python"))
if PACKAGE != "installed":
    if not (pathlib.Path(PACKAGE) / "cogpu").exists():
        pytest.skip(f"{PACKAGE} has no package (COGPU_PACKAGE)", allow_module_level=True)
    sys.path.insert(0, PACKAGE)

import cogpu  # noqa: E402
from cogpu import lazy, urls  # noqa: E402

LOCAL = {"allow_private_addresses": True}
HASTY = LOCAL | {"max_retries": 1, "connect_timeout_seconds": 2, "low_speed_seconds": 1, "timeout_seconds": 8}
HEAD = "bytes=0-16383"
SECRETS = ("someone", "open-sesame", "hush")
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


@pytest.fixture(autouse=True)
def network():
    cogpu.configure(network=LOCAL)
    yield
    lazy._forget_files()
    cogpu.configure()


@pytest.fixture
def url(nginx):
    return f"{nginx.http}/files/masked.tif"


@pytest.fixture
def secret_url(url):
    """With a name, a password and a signature, which the server does not care for."""
    return url.replace("://", "://someone:open-sesame@") + "?signature=hush#hush"


def heads(server):
    return [request.range for request in server.requests()].count(HEAD)


def run(program, given=b""):
    """What a Python of its own says to a program and what it is given."""
    program = f"import cogpu, numpy as np, os, pickle, sys\ncogpu.configure(network={LOCAL})\n{program}"
    done = subprocess.run([sys.executable, "-c", program], input=given, capture_output=True, env=ENVIRONMENT,
                          timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode().strip()


# ---- files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [str, str.encode])
def test_a_window(kind, url, nginx, cog):
    with cogpu.open(kind(url)) as file:
        pixels = np.asarray(file.read(window=(300, 500, 400, 700)))
        assert file.name == url and file.crs == "EPSG:32633"
    np.testing.assert_array_equal(pixels, cog["masked"].pixels[:, 300:400, 500:700])
    assert len(nginx.requests()) == 2


def test_tls_by_settings(nginx, cog):
    cogpu.configure(network=LOCAL | {"ca_file": str(nginx.ca)})
    with cogpu.open(f"{nginx.https}/files/jpeg.tif") as file:
        np.testing.assert_array_equal(np.asarray(file.read(level=1)), cog["jpeg"].overviews[0])


def test_an_open_file_keeps_its_settings(url, cog):
    with cogpu.open(url) as file:
        cogpu.configure()  # by which it could not be opened
        np.testing.assert_array_equal(np.asarray(file.read()), cog["masked"].pixels)


def test_a_file_that_is_closed_last(url):
    file = cogpu.open(url)
    cogpu.configure()
    file.close()
    with pytest.raises(cogpu.InvalidArgumentError, match="closed"):
        file.read()


def test_read_many(url, nginx, cog):
    names = ["masked", "bigtiff", "jpeg"]
    files = [cogpu.open(f"{nginx.http}/files/{name}.tif") for name in names] + [cogpu.open(cog["planar"].path)]
    window = {"window": (10, 20, 90, 110)}
    assert len(nginx.requests()) == 3
    for name, array in zip([*names, "planar"], cogpu.read_many([(file, window) for file in files])):
        np.testing.assert_array_equal(np.asarray(array), cog[name].pixels[:, 10:90, 20:110])
    assert len(nginx.requests()) == 3


def test_faults(faults, cog):
    faults.plan(at={1: {"kind": "cut"}, 3: {"kind": "status", "code": 503}})
    array = cogpu.open_geotiff(f"{faults.http}/files/bigtiff.tif")
    np.testing.assert_array_equal(array, cog["bigtiff"].pixels)
    assert sum(faults.done().values()) == 2


def test_check(url):
    assert cogpu.check(url)["verdict"] == "valid"


# ---- S3 --------------------------------------------------------------------------------------------------------------


def test_s3_by_settings(s3, cog):
    access, secret = "TESTKEY", s3.environment()["AWS_SECRET_ACCESS_KEY"]
    cogpu.configure(network={"s3_endpoint": s3.endpoint, "s3_region": s3.region, "s3_access_key": access,
                             "s3_secret_key": secret})
    array = cogpu.open_geotiff(f"s3://{s3.closed}/masked.tif", window=(0, 0, 300, 300))
    np.testing.assert_array_equal(array, cog["masked"].pixels[:, :300, :300])
    assert array.name == "masked" and array.encoding["source"] == f"s3://{s3.closed}/masked.tif"


def test_s3_by_the_environment(s3, cog, monkeypatch):
    for name, value in s3.environment("TESTTEMPORARY").items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3.endpoint)
    with cogpu.open(f"s3://{s3.closed}/bigtiff.tif") as file:
        np.testing.assert_array_equal(np.asarray(file.read()), cog["bigtiff"].pixels)


def test_s3_without_credentials(s3, cog):
    cogpu.configure(network={"s3_endpoint": s3.endpoint, "s3_region": s3.region, "s3_anonymous": True, "max_retries": 1})
    with cogpu.open(f"s3://{s3.open}/bigtiff.tif") as file:
        assert file.shape == cog["bigtiff"].pixels.shape
    with pytest.raises(cogpu.IOError, match="403"):
        cogpu.open(f"s3://{s3.closed}/bigtiff.tif")


def test_a_presigned_url(s3, cog):
    url = s3.presigned(s3.closed, "bigtiff.tif")
    array = cogpu.open_geotiff(url, chunks=256)
    np.testing.assert_array_equal(array, cog["bigtiff"].pixels)
    assert array.encoding["source"] == url.partition("?")[0] and array.name == "bigtiff"


# ---- xarray and Dask -------------------------------------------------------------------------------------------------


def test_open_geotiff(url, nginx, cog):
    array = cogpu.open_geotiff(url, window=(100, 200, 400, 900), masked=True)
    expected = np.where(cog["masked"].valid, cog["masked"].pixels, np.nan)[:, 100:400, 200:900]
    np.testing.assert_array_equal(array, expected)
    assert array.name == "masked" and array.encoding["source"] == url


@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_a_graph_reads_the_header_once(scheduler, url, nginx, cog):
    pytest.importorskip("dask.array")
    array = cogpu.open_geotiff(url, chunks=512)
    assert len(nginx.requests()) == 1
    np.testing.assert_array_equal(array.compute(scheduler=scheduler), cog["masked"].pixels)
    assert heads(nginx) == 0


def test_threads_that_come_at_once_read_the_header_once(url, nginx):
    barrier = threading.Barrier(8)

    def read(_):
        barrier.wait()
        return lazy.opened(url)
    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        assert len(set(threads.map(read, range(8)))) == 1
    assert len(nginx.requests()) == 1


def test_threads_that_come_at_once_all_learn_of_an_error(nginx):
    barrier = threading.Barrier(4)

    def read(_):
        barrier.wait()
        with pytest.raises(cogpu.NotFoundError):
            lazy.opened(f"{nginx.http}/files/none.tif")
    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        list(threads.map(read, range(4)))
    assert not lazy._open_files.opening and not lazy._open_files.files


def test_a_worker_process_reuses_its_connection(nginx, cog):
    pytest.importorskip("dask.array")
    array = cogpu.open_geotiff(f"{nginx.http}/files/bigtiff.tif", chunks=128)  # a block each
    configure = functools.partial(cogpu.configure, network=LOCAL)
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), configure) as pool:
        read = array.compute(scheduler="processes", pool=pool)
    np.testing.assert_array_equal(read, cog["bigtiff"].pixels)
    asked = nginx.requests()
    assert [request.range for request in asked].count(HEAD) == 2  # of this process and of the worker
    assert len(asked) > 30 and len({request.connection for request in asked}) == 2


def test_engine(url, nginx, cog):
    xr = pytest.importorskip("xarray")
    with xr.open_dataset(url, engine="cogpu", mask_and_scale=False) as dataset:
        np.testing.assert_array_equal(dataset.band_data[0, 5:50, 60:70], cog["masked"].pixels[0, 5:50, 60:70])
        assert heads(nginx) == 1
    with xr.open_dataset(url, engine="cogpu", mask_and_scale=False, chunks={"y": 1024, "x": 1024}) as dataset:
        np.testing.assert_array_equal(dataset.band_data, cog["masked"].pixels)
        assert heads(nginx) == 0  # it was closed, but its header is still at hand
    with xr.open_datatree(url, engine="cogpu", mask_and_scale=False) as tree:
        np.testing.assert_array_equal(tree["level_2/band_data"], cog["masked"].overviews[1])


def test_engine_guesses_by_the_path(url, monkeypatch):
    engine = pytest.importorskip("cogpu.engine")
    monkeypatch.setattr(engine.importlib.util, "find_spec", lambda name: None)
    assert engine.Engine().guess_can_open(url + "?a=b") and not engine.Engine().guess_can_open("http://x/y.nc?a=.tif")


@pytest.fixture
def changing(nginx, cog, request):
    """The path and the URL of a file that a test may change: of its own, since what is known of a URL is kept."""
    path = nginx.files / f"{request.function.__name__}.tif"
    shutil.copy(cog["bigtiff"].path, path)
    yield path, f"{nginx.http}/files/{path.name}"
    path.unlink()


def test_a_file_that_changes_is_an_error_and_then_another_file(changing, cog):
    path, url = changing
    array = cogpu.open_geotiff(url, chunks=256)
    shutil.copy(cog["planar"].path, path)
    with pytest.raises(cogpu.IOError, match="changed"):
        array.compute()
    np.testing.assert_array_equal(cogpu.open_geotiff(url), cog["planar"].pixels)
    with pytest.raises(cogpu.IOError, match="changed"):
        array.compute()  # of a file that is no more, not of the one that is kept open now


def test_names_of_a_graph_are_those_of_the_files_state(changing, nginx, cog):
    pytest.importorskip("dask.array")
    path, url = changing
    names = [cogpu.open_geotiff(url, chunks=256).data.name for _ in range(2)]
    assert len(nginx.requests()) == 1 and names[0] == names[1]
    os.utime(path, (1e9, 1e9))
    lazy._forget_files()
    assert cogpu.open_geotiff(url, chunks=256).data.name == names[0]  # no request was sent, so the version is unknown
    cogpu.configure(network=LOCAL | {"header_cache_seconds": -1})
    with cogpu.open(url) as file:
        assert str(path.stat().st_size) in file.version_id
    array = cogpu.open_geotiff(url, chunks=256)
    assert array.data.name != names[0]
    np.testing.assert_array_equal(array, cog["bigtiff"].pixels)
    with cogpu.open(path) as file:
        assert file.version_id.startswith(f"{path.stat().st_size} ")
    with cogpu.open(memoryview(path.read_bytes())) as file:
        assert file.version_id is None


def test_a_worker_that_finds_another_file(changing):
    """An array that was made elsewhere, of a file that changed before this process met it."""
    pytest.importorskip("dask.array")
    path, url = changing
    array = pickle.dumps(cogpu.open_geotiff(url, chunks=256))
    os.utime(path, (1e9, 1e9))
    program = """
try:
    pickle.load(sys.stdin.buffer).compute()
except cogpu.IOError as error:
    print(error)
"""
    assert run(program, array) == f"{url}: the file changed since the array was made; open it again"


# ---- processes -------------------------------------------------------------------------------------------------------


def test_pickled_into_another_process(secret_url, cog):
    file = cogpu.open(secret_url, image=0, limits={"bands": 4})
    again = pickle.loads(pickle.dumps(file))
    np.testing.assert_array_equal(np.asarray(again.read(level=1)), cog["masked"].overviews[0])
    array = cogpu.open_geotiff(secret_url, chunks=1024)
    says = run("""
file, array = pickle.load(sys.stdin.buffer)
print(np.asarray(file.read()).sum(dtype="f8"), array.values.sum(dtype="f8"))
""", pickle.dumps((file, array)))
    assert says.split() == [str(cog["masked"].pixels.sum(dtype="f8"))] * 2


def test_a_fork(url):
    """The child has no connections: what was open says so, what is opened anew works, and both processes end."""
    assert run(f"""
from cogpu import lazy
url = {url!r}
old, kept = cogpu.open(url), lazy.opened(url)
cogpu.configure(network={LOCAL})
file = cogpu.open(url)
here, there = os.pipe()
child = os.fork()
if not child:
    words = []
    for one in (old, file):
        try:
            one.read()
        except cogpu.IOError as error:
            words.append("open it again" in str(error))
    del old, one
    file.close()
    words.append(lazy.opened(url).read(window=(0, 0, 10, 10)).shape)
    os.write(there, repr(words).encode())
    sys.exit()
_, status = os.waitpid(child, 0)
print(os.read(here, 1000).decode(), status, file.read().shape)
""") == "[True, True, (1, 10, 10)] 0 (1, 2048, 2048)"


def test_a_process_ends_with_files_open(url):
    assert run(f"file, array = cogpu.open({url!r}), cogpu.open_geotiff({url!r})\nprint(array.size)") == str(2048 * 2048)


# ---- errors ----------------------------------------------------------------------------------------------------------


def test_what_is_not_there(nginx):
    for path in ("/files/none.tif", "/status/404"):
        with pytest.raises(cogpu.NotFoundError, match="no such file") as caught:
            cogpu.open(nginx.http + path)
        assert isinstance(caught.value, FileNotFoundError)


def test_a_server_that_cannot_be_reached():
    cogpu.configure(network=HASTY)
    with pytest.raises(cogpu.IOError) as caught:
        cogpu.open("http://127.0.0.1:1/x.tif")
    assert not isinstance(caught.value, FileNotFoundError)


@pytest.mark.parametrize("path, kind", [("/status/403", cogpu.IOError), ("/status/500", cogpu.IOError),
                                        ("/page/masked.tif", cogpu.NotTiffError), ("/locked/x.tif", cogpu.IOError)])
def test_what_servers_refuse(path, kind, nginx):
    cogpu.configure(network=HASTY)
    for call in (cogpu.open, cogpu.open_geotiff):
        with pytest.raises(kind) as caught:
            call(nginx.http + path)
        assert not isinstance(caught.value, FileNotFoundError)


def test_addresses_and_schemes_by_default(url, nginx):
    cogpu.configure()
    with pytest.raises(cogpu.Error, match="not public"):
        cogpu.open(url)
    with pytest.raises(cogpu.UnsupportedError, match="gopher"):
        cogpu.open("gopher://host/x.tif")
    assert nginx.requests() == []


@pytest.mark.parametrize("given, kind, words", [
    ({"retries": 1}, cogpu.InvalidArgumentError, "network has no 'retries'; similar: .*'max_retries'"), ([], TypeError, "network"),
    ({"max_retries": "4"}, TypeError, "retries"), ({"max_retries": -1}, cogpu.InvalidArgumentError, "retries"),
    ({"low_speed_seconds": -1}, cogpu.InvalidArgumentError, "low_speed_seconds"), ({"s3_region": b"x"}, TypeError, "s3_region"),
    ({"timeout_seconds": float("nan")}, cogpu.InvalidArgumentError, "timeout_seconds"),
    ({"header_cache_seconds": float("inf")}, cogpu.InvalidArgumentError, "header_cache_seconds"), ({5: 5}, TypeError, "network"),
    ({"s3_secret_key": "open-sesame\0"}, cogpu.InvalidArgumentError, "s3_secret_key"),
    ({"s3_session_token": b"open-sesame"}, TypeError, "s3_session_token"),
    ({"s3_secret": "open-sesame"}, cogpu.InvalidArgumentError, "s3_secret")])
def test_settings_that_are_refused(given, kind, words, url):
    with pytest.raises(kind, match=words) as caught:
        cogpu.configure(network=given)
    assert "sesame" not in str(caught.value)
    cogpu.open(url).close()  # by the settings that there were before


def test_a_header_that_is_not_kept(url, nginx):
    cogpu.configure(network=LOCAL | {"header_cache_seconds": -1})
    for _ in range(2):
        cogpu.open(url).close()
    assert heads(nginx) == 2


def test_settings_that_mean_the_default(url):
    cogpu.configure(network=LOCAL | {"max_retries": None, "schemes": None, "header_bytes": 0})
    cogpu.open(url).close()


def test_every_setting_is_known():
    header = (pathlib.Path(__file__).resolve().parents[2] / "include" / "cogpu.h").read_text()
    struct = header.partition("typedef struct cogpu_network {")[2].partition("}")[0]
    code = "".join(part.partition("*/")[2] for part in ("*/" + struct).split("/*"))
    names = [name.split()[-1].lstrip("*") for line in code.split(";") if line.strip() for name in line.split(",")]
    assert len(names) >= 20
    cogpu.configure(network=dict.fromkeys(set(names) - {"struct_size", "reserved"}))


# ---- secrets ---------------------------------------------------------------------------------------------------------


def assert_shows_nothing(*shown):
    for text in map(str, shown):
        assert not [secret for secret in SECRETS if secret in text], text


def test_secrets_are_not_shown(secret_url, url):
    xr = pytest.importorskip("xarray")
    file, array = cogpu.open(secret_url), cogpu.open_geotiff(secret_url, chunks=512)
    assert file.name == array.encoding["source"] == url and array.name == "masked"
    assert_shows_nothing(repr(file), file.info, array, array.attrs, array.encoding, dict(array.data.dask))
    for words in ({}, {"chunks": {}}):
        for opened in (xr.open_dataset(secret_url, engine="cogpu", **words),
                       xr.open_datatree(secret_url, engine="cogpu", **words)["level_1"].root,
                       xr.open_groups(secret_url, engine="cogpu", **words)["/"]):
            assert opened.encoding["source"] == url
            assert_shows_nothing(opened, opened.encoding)
    with pytest.raises(TypeError) as caught:
        cogpu.read_many([(file, {"colour": 1})])
    assert_shows_nothing(caught.value)


@pytest.mark.parametrize("path", ["none.tif", "masked.tif/no"])
def test_secrets_are_not_in_messages(path, nginx):
    secret_url = f"{nginx.http}/files/{path}?signature=hush".replace("://", "://someone:open-sesame@")
    for call in (cogpu.open, cogpu.open_geotiff, cogpu.check):
        with pytest.raises(cogpu.Error) as caught:
            call(secret_url)
        assert_shows_nothing(caught.value, repr(caught.value), caught.value.__context__)


@pytest.mark.parametrize("source, shown", [
    ("https://a:b@host:1/x.tif?q#f", "https://host:1/x.tif"), ("s3://bucket/a b@c?d", "s3://bucket/a b@c"),
    ("http://a@b@host?q", "http://host"), ("dir/a?b#c@d.tif", "dir/a?b#c@d.tif"), (b"x://a@b?c", "...b?c"),
    (pathlib.Path("a.tif"), "a.tif")])
def test_what_is_shown(source, shown):
    assert urls.shown(source) == shown


@pytest.mark.parametrize("source", ["https://h/x", b"S3://h/x", "a+b://x"])
def test_urls(source):
    assert urls.is_url(source) and lazy.absolute(source) == os.fsdecode(source)


@pytest.mark.parametrize("source", ["x://h", "https:/h/x", "/https://h", "a b://h", "", 5, None, memoryview(b"s3://a")])
def test_what_is_no_url(source):
    assert not urls.is_url(source)


def test_a_path_that_looks_like_a_url(tmp_path, cog, monkeypatch):
    (tmp_path / "x:").mkdir()
    shutil.copy(cog["bigtiff"].path, tmp_path / "x:")
    monkeypatch.chdir(tmp_path)
    np.testing.assert_array_equal(cogpu.open_geotiff("x://bigtiff.tif"), cog["bigtiff"].pixels)


# ---- other ways ------------------------------------------------------------------------------------------------------


class Plain:
    """Nothing but read and seek; seek tells where it arrives."""

    def __init__(self, content):
        self.file = io.BytesIO(content)
        self.read, self.seek = self.file.read, self.file.seek


def test_objects_that_are_read_from(cog):
    with cogpu.open(Plain(cog["masked"].path.read_bytes())) as file:
        np.testing.assert_array_equal(np.asarray(file.read()), cog["masked"].pixels)


def test_fsspec(nginx, cog):
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    memory.pipe_file("/some/masked.tif", cog["masked"].path.read_bytes())
    with memory.open("/some/masked.tif") as source:
        np.testing.assert_array_equal(cogpu.open_geotiff(source), cog["masked"].pixels)
    with memory.open("/some/masked.tif") as source, cogpu.open(source) as file:
        array = np.asarray(file.read(window=(5, 6, 700, 800)))
    np.testing.assert_array_equal(array, cog["masked"].pixels[:, 5:700, 6:800])
    assert nginx.requests() == []


def test_obstore(nginx, cog):
    obstore = pytest.importorskip("obstore")
    store = obstore.store.HTTPStore(nginx.http, client_options={"allow_http": True})
    array = cogpu.open_geotiff(obstore.open_reader(store, "files/masked.tif"), window=(5, 6, 700, 800))
    np.testing.assert_array_equal(array, cog["masked"].pixels[:, 5:700, 6:800])
    assert nginx.requests()


# ---- stores that are asked for many ranges at once -------------------------------------------------------------------

PATH = "some/masked.tif"
# One block in each of the eight rows of blocks, which lie too far from each other to be read in one go.
WINDOWS = {"one": [(0, 300, 2048, 310)], "many": [(256 * i, 256 * i, 256 * i + 20, 256 * i + 30) for i in range(8)]}


@pytest.fixture
def filesystem(cog):
    """Of fsspec: one file; what was asked for, how many at once; `spoil` may change an answer, or raise."""
    asyn = pytest.importorskip("fsspec.asyn")

    class Filesystem(asyn.AsyncFileSystem):
        cachable = False
        content = cog["masked"].path.read_bytes()
        spoil = staticmethod(lambda start, data: data)

        def __init__(self):
            super().__init__()
            self.asked, self.inside, self.most = [], 0, 0

        async def _info(self, path, **how):
            if path != PATH:
                raise FileNotFoundError(path)
            return {"name": path, "size": len(self.content), "type": "file"}

        async def _cat_file(self, path, start=None, end=None, **how):
            self.asked.append((start, end))
            self.inside += 1
            self.most = max(self.most, self.inside)
            await asyncio.sleep(0)  # all that are asked for together come here before the first goes on
            self.inside -= 1
            return self.spoil(start, self.content[start:end])
    return Filesystem()


@pytest.mark.parametrize("device", ["cpu", "emu"])
@pytest.mark.parametrize("windows", WINDOWS.values(), ids=WINDOWS)
def test_ranges_are_asked_for_together(windows, device, filesystem, cog):
    with cogpu.open(cogpu.Stored(filesystem, PATH)) as file:
        assert len(filesystem.asked) == 1 and file.name == PATH
        arrays = cogpu.read_many([(file, {"window": window, "device": device}) for window in windows])
    for (row0, column0, row1, column1), array in zip(windows, arrays):
        np.testing.assert_array_equal(np.asarray(array), cog["masked"].pixels[:, row0:row1, column0:column1])
    assert filesystem.most == 8 and len(filesystem.asked) == 1 + 8


def test_neighbours_are_asked_for_as_one(filesystem, cog):
    with cogpu.open(cogpu.Stored(filesystem, PATH)) as file:
        np.testing.assert_array_equal(np.asarray(file.read()), cog["masked"].pixels)
    assert len(filesystem.asked) == 2  # the header, and all blocks


def test_stores_of_obstore(faults, cog):
    obstore = pytest.importorskip("obstore")
    store = obstore.store.HTTPStore(faults.http, client_options={"allow_http": True})
    file = cogpu.open(cogpu.Stored(store, "files/masked.tif"))
    faults.plan(every={"kind": "delay", "seconds": 0.2})
    np.testing.assert_array_equal(np.asarray(file.read(WINDOWS["one"][0])), cog["masked"].pixels[:, :, 300:310])
    assert len(faults.requests()) == faults.most() == 8
    faults.plan()
    again = pickle.loads(pickle.dumps(file))
    np.testing.assert_array_equal(np.asarray(again.read()), cog["masked"].pixels)
    with pytest.raises(FileNotFoundError):
        cogpu.open(cogpu.Stored(store, "files/none.tif"))


def test_a_store_is_asked_for_all_ranges_in_one_call(cog):
    """By obstore's words, without more bytes between ranges than the engine wants."""
    content, calls = cog["masked"].path.read_bytes(), []

    class Store:
        def head(self, path):
            return {"size": len(content)}

        def get_ranges(self, path, *, starts, ends, coalesce):
            calls.append(len(starts))
            assert path == PATH and coalesce == 0
            return [memoryview(content)[start:end] for start, end in zip(starts, ends)]
    with cogpu.open(cogpu.Stored(Store(), PATH)) as file:
        np.testing.assert_array_equal(np.asarray(file.read(WINDOWS["one"][0])), cog["masked"].pixels[:, :, 300:310])
    assert calls == [1, 8]


def test_a_store_in_the_child_of_a_fork(cog):
    """As with URLs: what was open says so, and does not wait for threads that are not there; what is opened anew
    works."""
    assert run(f"""
content = open({str(cog["masked"].path)!r}, "rb").read()
class Store:
    def head(self, path):
        return {{"size": len(content)}}
    def get_ranges(self, path, *, starts, ends, coalesce):
        return [content[start:end] for start, end in zip(starts, ends)]
source = cogpu.Stored(Store(), "x")
file = cogpu.open(source)
child = os.fork()
if not child:
    try:
        file.read()
    except cogpu.IOError as error:
        sys.exit(0 if "open it again" in str(error) and cogpu.open(source).read().shape == (1, 2048, 2048) else 1)
    sys.exit(2)
print(os.waitpid(child, 0)[1], file.read().shape)
""") == "0 (1, 2048, 2048)"


def test_other_ways_to_a_store(filesystem, cog):
    xr = pytest.importorskip("xarray")
    source = cogpu.Stored(filesystem, PATH)
    with cogpu.open(source) as file:
        arrays = [file.read(window, device="emu", wait=False) for window in WINDOWS["many"]]
        for (row0, column0, row1, column1), array in zip(WINDOWS["many"], arrays):
            np.testing.assert_array_equal(np.asarray(array), cog["masked"].pixels[:, row0:row1, column0:column1])
    with xr.open_dataset(source, engine="cogpu", mask_and_scale=False) as dataset:
        np.testing.assert_array_equal(dataset.band_data[0, 5:50, 60:70], cog["masked"].pixels[0, 5:50, 60:70])
    assert cogpu.check(source)["verdict"] == "valid"


def test_what_fsspec_opens(filesystem, cog):
    fsspec = pytest.importorskip("fsspec")
    for chunks in (None, 512):
        array = cogpu.open_geotiff(fsspec.core.OpenFile(filesystem, PATH), chunks=chunks)
        np.testing.assert_array_equal(array, cog["masked"].pixels)
    with pytest.raises(TypeError, match="source"):
        cogpu.open(fsspec.core.OpenFile(filesystem, PATH, compression="gzip"))


def test_a_filesystem_that_does_one_thing_at_a_time(cog):
    spec = pytest.importorskip("fsspec.spec")

    class Filesystem(spec.AbstractFileSystem):
        cachable = False
        content, turn = cog["masked"].path.read_bytes(), threading.Lock()

        def size(self, path):
            return len(self.content)

        def cat_file(self, path, start=None, end=None, **how):
            assert self.turn.acquire(blocking=False), "two at once"
            os.sched_yield()
            self.turn.release()
            return self.content[start:end]
    with cogpu.open(cogpu.Stored(Filesystem(), PATH)) as file, concurrent.futures.ThreadPoolExecutor(8) as threads:
        for array in threads.map(lambda row: file.read((row, 0, row + 9, 2048)), range(0, 2000, 40)):
            assert array.shape == (1, 9, 2048)


def test_threads_share_a_store(filesystem, cog):
    """Windows that share blocks, in threads that come and go while others wait for the same bytes."""
    windows = [(row, column, row + 300, column + 700) for row in range(0, 1700, 150) for column in range(0, 1300, 250)]
    with cogpu.open(cogpu.Stored(filesystem, PATH)) as file, concurrent.futures.ThreadPoolExecutor(8) as threads:
        for (row0, column0, row1, column1), array in zip(windows, threads.map(file.read, windows)):
            np.testing.assert_array_equal(np.asarray(array), cog["masked"].pixels[:, row0:row1, column0:column1])


def last_range(filesystem):
    """Where the last range begins that the window of all rows needs."""
    with cogpu.open(cogpu.Stored(filesystem, PATH)) as file:
        file.read(WINDOWS["one"][0])
    return max(start for start, _ in filesystem.asked)


@pytest.mark.parametrize("error", [OSError(5, "the store is gone"), KeyError("key")], ids=["os", "key"])
def test_a_store_that_fails(error, filesystem, cog):
    last = last_range(filesystem)

    def fail(start, data):
        if start == last:
            raise error
        return data
    with cogpu.open(cogpu.Stored(filesystem, PATH)) as file:
        filesystem.spoil = fail
        with pytest.raises(type(error)) as caught:
            file.read(WINDOWS["one"][0])
        assert caught.value is error and isinstance(error.__context__, cogpu.IOError)
        array = file.read(WINDOWS["one"][0], fill_bad_blocks=True)
        assert array.result["bad_blocks"] == 1
        np.testing.assert_array_equal(np.asarray(array)[:, :1792], cog["masked"].pixels[:, :1792, 300:310])
        filesystem.spoil = type(filesystem).spoil
        np.testing.assert_array_equal(np.asarray(file.read(WINDOWS["one"][0])), cog["masked"].pixels[:, :, 300:310])


@pytest.mark.parametrize("spoil, kind", [
    (lambda data: data[:-1], EOFError), (lambda data: data + b"x", ValueError), (lambda data: None, TypeError),
    (lambda data: 5, TypeError)], ids=["short", "long", "none", "number"])
def test_odd_answers_of_a_store(spoil, kind, filesystem):
    last = last_range(filesystem)
    with cogpu.open(cogpu.Stored(filesystem, PATH)) as file:
        filesystem.spoil = lambda start, data: spoil(data) if start == last else data
        with pytest.raises(kind):
            file.read(WINDOWS["one"][0])


def test_what_is_no_stored_file(filesystem):
    with pytest.raises(FileNotFoundError):
        cogpu.open(cogpu.Stored(filesystem, "none"))
    with pytest.raises(TypeError, match="store"):
        cogpu.Stored(5, PATH)
    filesystem.size = lambda path: None
    with pytest.raises(cogpu.UnsupportedError, match="how long"):
        cogpu.open(cogpu.Stored(filesystem, PATH))
