"""What a file may come from: bytes, file:// URLs, URLs of obstore and fsspec, names of GDAL's; and that every exception
names the file, without secrets. Nothing here leaves the process."""

import io
import pickle
import re
import sys

import fsspec
import numpy as np
import obstore
import pytest
import rasterio
import xarray
from conftest import pixels_of, write_file
from fsspec.implementations.memory import MemoryFileSystem

import cogpu
from cogpu import lazy, stored, urls


def ours(source, **how):
    return np.asarray(cogpu.open(source, **how).read())


# ---- bytes and file:// -----------------------------------------------------------------------------------------------


def test_bytes_as_a_source(path, pixels):
    content = path.read_bytes()
    for source in (content, bytearray(content), memoryview(content)):
        np.testing.assert_array_equal(ours(source), pixels)
        np.testing.assert_array_equal(cogpu.open_geotiff(source).values, pixels)
        np.testing.assert_array_equal(cogpu.open_geotiff(source, chunks=64).values, pixels)
        assert cogpu.open(source).name == "" and cogpu.open_geotiff(source).name is None
        assert cogpu.check(source)["verdict"]
    np.testing.assert_array_equal(ours(str(path).encode()), pixels)  # bytes without a NUL are a path
    again = pickle.loads(pickle.dumps(cogpu.open(content)))
    np.testing.assert_array_equal(np.asarray(again.read()), pixels)


def test_bytes_that_are_no_file():
    with pytest.raises(cogpu.NotTiffError):
        cogpu.open(b"PK\0\0 and so on")
    with pytest.raises(FileNotFoundError, match="b.tif"):
        cogpu.open(b"/absent/b.tif")


def test_file_urls(path, pixels, tmp_path):
    odd = tmp_path / "a b#c?d%e.tif"
    odd.write_bytes(path.read_bytes())
    for url in (path.as_uri(), odd.as_uri(), f"file://localhost{path}", f"FILE://{path}"):
        np.testing.assert_array_equal(ours(url), pixels)
        np.testing.assert_array_equal(cogpu.open_geotiff(url, chunks=100).values, pixels)
        dataset = xarray.open_dataset(url, engine="cogpu", mask_and_scale=False)
        np.testing.assert_array_equal(dataset["band_data"], pixels)
        assert lazy.opened(url) is lazy.opened(urls.local_path(url))
    with pytest.raises(ValueError, match="elsewhere"):
        cogpu.open("file://user:secret@elsewhere/a.tif")
    target = tmp_path / "new file.tif"
    cogpu.to_geotiff(pixels, target.as_uri())
    np.testing.assert_array_equal(rasterio.open(target).read(), pixels)


# ---- obstore and fsspec ----------------------------------------------------------------------------------------------


@pytest.fixture
def stored_file(path):
    """A file at memory://cogpu/three.tif."""
    filesystem = fsspec.filesystem("memory")
    filesystem.pipe_file("/cogpu/three.tif", path.read_bytes())
    yield "memory://cogpu/three.tif"
    filesystem.rm_file("/cogpu/three.tif")


def test_memory_urls_of_fsspec(stored_file, pixels):
    np.testing.assert_array_equal(ours(stored_file), pixels)
    for chunks in (None, 64):
        array = cogpu.open_geotiff(stored_file, chunks=chunks)
        assert array.name == "three" and array.encoding["source"] == stored_file
        np.testing.assert_array_equal(array.values, pixels)
    dataset = xarray.open_dataset(stored_file, engine="cogpu", mask_and_scale=False)
    np.testing.assert_array_equal(dataset["band_data"], pixels)
    file = pickle.loads(pickle.dumps(cogpu.open(stored_file)))
    assert file.name == stored_file
    np.testing.assert_array_equal(np.asarray(file.read()), pixels)


def filesystem_of(scheme):
    """A filesystem in memory with a scheme of its own."""
    class Filesystem(MemoryFileSystem):
        protocol = scheme
        store, pseudo_dirs = {}, [""]

        @classmethod
        def _strip_protocol(cls, path):
            return super()._strip_protocol(path.removeprefix(f"{scheme}://"))

    return Filesystem


def test_a_registered_protocol_of_fsspec(path, pixels):
    vault = filesystem_of("cogpuvault")
    fsspec.register_implementation("cogpuvault", vault, clobber=True)
    vault().pipe_file("/deep/three.tif", path.read_bytes())
    np.testing.assert_array_equal(ours("cogpuvault://deep/three.tif"), pixels)
    with pytest.raises(FileNotFoundError, match="cogpuvault://deep/absent.tif"):
        cogpu.open("cogpuvault://deep/absent.tif")


def test_chains_of_fsspec(stored_file, pixels, path, tmp_path):
    import zipfile
    with zipfile.ZipFile(tmp_path / "some.zip", "w") as archive:
        archive.write(path, "inner.tif")
    np.testing.assert_array_equal(ours(f"zip://inner.tif::{tmp_path / 'some.zip'}"), pixels)
    np.testing.assert_array_equal(ours(f"simplecache::{stored_file}"), pixels)


@pytest.mark.parametrize("url", ["gs://bucket/deep/three.tif", "az://bucket/deep/three.tif",
                                 "abfs://bucket/deep/three.tif"])
def test_clouds_by_obstore(url, path, pixels, monkeypatch):
    buckets = {}

    def from_url(address):
        return buckets.setdefault(address, obstore.store.MemoryStore())

    monkeypatch.setattr(obstore.store, "from_url", from_url)
    from_url(url.partition("/deep")[0]).put("deep/three.tif", path.read_bytes())
    np.testing.assert_array_equal(ours(url), pixels)
    np.testing.assert_array_equal(cogpu.open_geotiff(url, chunks=64).values, pixels)
    assert cogpu.open(url).name == url
    with pytest.raises(FileNotFoundError, match=url + ".not"):
        cogpu.open(url + ".not")
    with pytest.raises(cogpu.InvalidArgumentError, match="names no file"):
        cogpu.open(url.partition("/deep")[0])


def test_local_stores_of_obstore(path, pixels):
    store = obstore.store.LocalStore(str(path.parent))
    np.testing.assert_array_equal(ours(cogpu.Stored(store, path.name)), pixels)
    with pytest.raises(FileNotFoundError, match="absent.tif"):
        cogpu.open(cogpu.Stored(store, "absent.tif"))


def test_a_store_that_obstore_refuses(monkeypatch):
    def from_url(address):
        raise ValueError("no account")

    monkeypatch.setattr(obstore.store, "from_url", from_url)
    with pytest.raises(OSError, match=r"az://box/a.tif: .*no account.*Stored"):
        cogpu.open("az://box/a.tif")


@pytest.mark.parametrize(("url", "packages"), [("gs://bucket/a.tif", "pip install obstore, or fsspec and gcsfs"),
                                               ("abfs://box/a.tif", "pip install obstore, or fsspec and adlfs"),
                                               ("memory://a.tif", "pip install fsspec")])
def test_without_packages_the_error_says_what_to_install(url, packages, monkeypatch):
    monkeypatch.setattr(stored, "_module", lambda name: None)
    with pytest.raises(cogpu.UnsupportedError, match=f"{url}: .*{packages}"):
        cogpu.open(url)


def test_clouds_by_fsspec_where_there_is_no_obstore(monkeypatch, path, pixels):
    cloud = filesystem_of("gs")
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    fsspec.register_implementation("gs", cloud, clobber=True)
    cloud().pipe_file("/bucket/three.tif", path.read_bytes())
    np.testing.assert_array_equal(ours("gs://bucket/three.tif"), pixels)


def test_an_unknown_scheme():
    with pytest.raises(cogpu.UnsupportedError, match="nothing://a/b.tif: neither cogpu nor fsspec knows nothing://"):
        cogpu.open("nothing://user:secret@a/b.tif")
    with pytest.raises(cogpu.UnsupportedError, match="gs://a/b.tif: .*fsspec.open"):
        cogpu.to_geotiff(np.zeros((4, 4), "u1"), "gs://a/b.tif")


def test_schemes_that_are_not_allowed(stored_file):
    cogpu.configure(network={"schemes": "https,gs"})
    try:
        for url in (stored_file, f"simplecache::{stored_file}"):
            with pytest.raises(cogpu.UnsupportedError, match="allowed schemes: gs, https"):
                cogpu.open(url)
    finally:
        cogpu.configure()
    cogpu.open(stored_file)


# ---- GDAL's names ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "instead"), [
    ("/vsicurl/https://host/a.tif", "'https://host/a.tif'"),
    ("/vsicurl/https://user:secret@host/a.tif?key=secret", "'https://host/a.tif'"),
    ("/vsicurl_streaming/http://host/a.tif", "'http://host/a.tif'"),
    ("/vsis3/bucket/key.tif", "'s3://bucket/key.tif'"),
    ("/vsigs/bucket/key.tif", "'gs://bucket/key.tif'"),
    ("/vsiaz/box/key.tif", "'az://box/key.tif'"),
    ("/vsizip/some.zip/inner.tif", "'zip://inner.tif::archive'"),
    ("/vsizip//vsicurl/https://host/some.zip/inner.tif", "'zip://inner.tif::archive'"),
    ("/vsitar/some.tar/inner.tif", "'tar://inner.tif::archive'"),
    ("/vsimem/a.tif", "bytes"),
    ("/vsistdin/", "a path, a URL"),
    ("GTIFF_RAW:some.tif", "'some.tif'"),
    ("GTIFF_DIR:off:8:some.tif", "image="),
    ("GTIFF_DIR:3:absent.tif", "image=2"),
    ("NETCDF:some.nc:heights", "TIFF files alone"),
    ('HDF5:"some.h5"://heights', "TIFF files alone"),
])
def test_names_of_gdal_show_the_way(name, instead):
    for call in (cogpu.open, cogpu.open_geotiff):
        with pytest.raises(cogpu.UnsupportedError, match=re.escape(instead)) as raised:
            call(name)
        assert "secret" not in str(raised.value) and name.split("://")[0] in str(raised.value)


def test_gtiff_dir_shows_the_image_or_the_level(tmp_path):
    """Whatever GDAL's directory is, the error's advice opens the same pixels."""
    made = tmp_path / "two.tif"
    write_file(made, pixels_of((1, 128, 128)), overviews=[2])
    with rasterio.open(made, "r+") as file:
        assert file.overviews(1) == [2]
    with rasterio.open(made, "w", driver="GTiff", width=64, height=64, count=1, dtype="uint8") as file:
        file.write(pixels_of((1, 64, 64)))
    with rasterio.open(made, "w", driver="GTiff", width=70, height=70, count=1, dtype="uint8",
                       APPEND_SUBDATASET="YES") as file:
        file.write(pixels_of((1, 70, 70), seed=4))
    for number in (1, 2):
        with pytest.raises(cogpu.UnsupportedError) as raised:
            cogpu.open(f"GTIFF_DIR:{number}:{made}")
        image = int(re.search(r"image=(\d+)", str(raised.value))[1])
        with rasterio.open(f"GTIFF_DIR:{number}:{made}") as reference:
            np.testing.assert_array_equal(ours(made, image=image), reference.read())
    levels = write_file(tmp_path / "levels.tif", pixels_of((1, 128, 128)), overviews=[2])
    with pytest.raises(cogpu.UnsupportedError, match=r"image=0, level=1"):
        cogpu.open(f"GTIFF_DIR:2:{levels}")


def test_a_file_with_a_name_of_gdals_is_a_file(path, pixels, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "GTIFF_RAW:x.tif").write_bytes(path.read_bytes())
    np.testing.assert_array_equal(ours("GTIFF_RAW:x.tif"), pixels)


# ---- every exception names the file ----------------------------------------------------------------------------------


def damaged(path, where):
    """A copy of a file whose blocks are gone."""
    where.write_bytes(path.read_bytes()[:4000])
    return where


def failures(name):
    """Calls that fail, each after the file was found."""
    return {
        "image": lambda: cogpu.open(name, image=9),
        "level": lambda: cogpu.open(name).read(level=9),
        "window": lambda: cogpu.open(name).read(window=(0, 0, 900, 900)),
        "window type": lambda: cogpu.open(name).read(window="all"),
        "mask window": lambda: cogpu.open(name).read_mask(window=(0, 0, 900, 900)),
        "band": lambda: cogpu.open(name).read(bands=9),
        "dtype": lambda: cogpu.open(name).read(dtype="uint8"),
        "many": lambda: cogpu.read_many([(cogpu.open(name), {"window": (0, 0, 900, 900)})]),
        "many bands": lambda: cogpu.read_many([(cogpu.open(name), {"bands": 9})]),
        "closed": lambda: closed(name).read(),
        "closed crs": lambda: closed(name).crs,
        "open_geotiff band": lambda: cogpu.open_geotiff(name, band=9),
        "open_geotiff level": lambda: cogpu.open_geotiff(name, level=9),
        "open_geotiff window": lambda: cogpu.open_geotiff(name, window=(0, 0, 900, 900)),
        "open_geotiff bbox": lambda: cogpu.open_geotiff(name, bbox=(0, 0, 1, 1)),
        "open_geotiff pixels": lambda: cogpu.open_geotiff(name, max_pixels=10),
        "open_geotiff chunks": lambda: cogpu.open_geotiff(name, chunks="many"),
        "open_geotiff dtype": lambda: cogpu.open_geotiff(name, dtype="uint8"),
        "engine level": lambda: xarray.open_dataset(name, engine="cogpu", level=9),
    }


def closed(name):
    file = cogpu.open(name)
    file.close()
    return file


@pytest.mark.parametrize("call", failures(""))
def test_an_exception_names_the_file(call, path):
    with pytest.raises((cogpu.Error, TypeError)) as raised:
        failures(str(path))[call]()
    assert str(raised.value).count(str(path)) == 1


@pytest.mark.parametrize("call", failures(""))
def test_an_exception_names_the_file_of_a_store(call, stored_file):
    with pytest.raises((cogpu.Error, TypeError)) as raised:
        failures(stored_file)[call]()
    assert str(raised.value).count(stored_file) == 1


def test_an_exception_of_pixels_names_the_file(path, tmp_path, device):
    bad = damaged(path, tmp_path / "cut off.tif")
    gpu = {"cpu": False, "emu": "emu", "cuda": True}[device]
    for call in (lambda: cogpu.open(bad).read(device=device), lambda: cogpu.open_geotiff(bad, gpu=gpu),
                 lambda: cogpu.read_many([(cogpu.open(path), {}), (cogpu.open(bad), {"device": device})]),
                 lambda: cogpu.open_geotiff(bad, chunks=64, gpu=gpu).compute(),
                 lambda: xarray.open_dataset(bad, engine="cogpu", gpu=gpu)["band_data"].load(),
                 lambda: cogpu.open(bad).read(device=device, wait=False).wait()):
        with pytest.raises(cogpu.CorruptError) as raised:
            call()
        assert str(raised.value).count(str(bad)) == 1
        assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)


@pytest.mark.parametrize("call", [cogpu.open, cogpu.open_geotiff, cogpu.check,
                                  lambda name: xarray.open_dataset(name, engine="cogpu")])
def test_an_exception_of_opening_names_the_file(call, tmp_path):
    text = tmp_path / "text.tif"
    text.write_text("no TIFF at all")
    for name, kind in ((tmp_path / "absent.tif", FileNotFoundError), (text, ValueError), (tmp_path, OSError)):
        with pytest.raises(kind) as raised:
            call(str(name))
        assert str(raised.value).count(str(name)) == 1


def test_an_exception_of_the_writer_names_the_target(tmp_path, pixels):
    absent, here = tmp_path / "absent" / "a.tif", tmp_path / "a.tif"
    for name, how in ((absent, {}), (tmp_path, {}), (here, {"nodata": 1e9}), (here, {"crs": "EPSG:0"}),
                      (here, {"compression": "jpeg"}), (here, {"tile_size": 17})):
        with pytest.raises(cogpu.Error) as raised:
            cogpu.to_geotiff(pixels, name, **how)
        assert str(raised.value).count(str(name)) == 1


def test_exceptions_of_objects_get_a_note(path):
    class Failing(io.BytesIO):
        name = "some object"

        def read(self, size=-1):
            if self.tell() > 3000:
                raise RuntimeError("the line is cut")
            return super().read(size)

    with pytest.raises(RuntimeError, match="the line is cut") as raised:
        cogpu.open(Failing(path.read_bytes())).read()
    assert raised.value.__notes__ == ["file: some object"]


def test_names_have_no_secrets():
    from cogpu.errors import CorruptError, add_name
    error = CorruptError("a block is damaged")
    add_name(error, "https://user:secret@host/a.tif?token=secret")
    add_name(error, "https://user:secret@host/a.tif?token=secret")
    assert str(error) == "https://host/a.tif: a block is damaged"
    assert urls.shown("zip://a.tif::https://user:secret@host/b.zip?token=secret") == "zip://a.tif::https://host/b.zip"
