"""How many requests it takes to know where the pixels are: headers that are longer than the first request, arrays that
are far longer, and files that are opened again."""

import shutil

import numpy as np
import pytest
import rasterio
from test_http_read import PATIENT, Reader, cogpu, reader  # noqa: F401
from test_s3_read import reader_of


@pytest.fixture(scope="module")
def many_tiles(nginx_server):
    """A COG of 100,489 tiles, which takes arrays of 590 KiB; and its pixels."""
    path = nginx_server.files / "many_tiles.tif"
    pixels = (np.add.outer(np.arange(5072) * 7, np.arange(5072) * 3) // 16 % 251).astype("u1")
    profile = {"driver": "COG", "count": 1, "height": 5072, "width": 5072, "dtype": "uint8", "blocksize": 16,
               "compress": "lzw", "overviews": "none"}
    with rasterio.open(path, "w", **profile) as file:
        file.write(pixels[None])
    return pixels


def asked(server, below=1 << 62):
    """(first, last) of each request that begins below an offset."""
    ranges = [tuple(map(int, request.range.removeprefix("bytes=").split("-"))) for request in server.requests()]
    return [(first, last) for first, last in ranges if first < below]


def check_window(file, pixels, x, y, size=60):
    np.testing.assert_array_equal(file.read(window=(x, y, size, size))[0], pixels[y:y + size, x:x + size])


def test_arrays_behind_the_first_request(reader, nginx, cog):  # noqa: F811
    pixels, arrays_end = cog["long_header"].pixels[0], 40 << 10
    with reader.open(f"{nginx.http}/files/long_header.tif") as file:
        assert asked(nginx) == [(0, 16383)]
        check_window(file, pixels, 1500, 1500)
        (first, last), = asked(nginx, below=arrays_end)
        assert first == 16384 and last < 128 << 10
        for x, y in ((0, 0), (700, 1900), (1900, 40)):
            check_window(file, pixels, x, y)
        assert asked(nginx, below=arrays_end) == []


def test_windows_among_many_tiles(reader, nginx, many_tiles):  # noqa: F811
    arrays_end = 590 << 10
    with reader.open(f"{nginx.http}/files/many_tiles.tif") as file:
        assert asked(nginx) == [(0, 16383)]
        check_window(file, many_tiles, 2000, 3000)
        (first, last), = asked(nginx, below=arrays_end)  # offsets, counts and what is between
        assert last - first < 450 << 10
        check_window(file, many_tiles, 2200, 3010)
        assert asked(nginx, below=arrays_end) == []
        check_window(file, many_tiles, 40, 1000)
        assert len(asked(nginx, below=arrays_end)) == 1  # another part of the offsets
        np.testing.assert_array_equal(file.read()[0], many_tiles)
        assert len(asked(nginx, below=arrays_end)) <= 3


def test_opening_again_sends_no_request(reader, nginx, cog):  # noqa: F811
    url, pixels = f"{nginx.http}/files/masked.tif", cog["masked"].pixels[0]
    for turn in range(3):
        with reader.open(url) as file:
            assert len(asked(nginx)) == (turn == 0)
            check_window(file, pixels, 400, 300 * turn)
        requests = nginx.requests()
        assert len(requests) == 1 and requests[0].if_match
    with reader.open(f"{nginx.http}/files/masked.tif?other") as file:
        assert len(asked(nginx)) == 1


def test_headers_are_kept_for_a_while(nginx):
    url = f"{nginx.http}/files/masked.tif"
    for seconds in (-1, 1e-9):
        brief = Reader(**PATIENT, header_cache_seconds=seconds)
        with brief.context:
            for _ in range(2):
                brief.open(url).close()
        assert len(asked(nginx)) == 2


def test_a_file_that_changed_is_an_error_once(reader, nginx, cog):  # noqa: F811
    path, url = nginx.files / "changing.tif", f"{nginx.http}/files/changing.tif"
    shutil.copy(cog["masked"].path, path)
    reader.open(url).close()
    shutil.copy(cog["long_header"].path, path)
    with reader.open(url) as file, pytest.raises(cogpu.CogpuError, match="open it again"):
        file.read(window=(0, 0, 60, 60))
    with reader.open(url) as file:
        check_window(file, cog["long_header"].pixels[0], 100, 100)


def test_what_cannot_be_found_out_of_date_is_not_kept(reader, nginx, faults):  # noqa: F811
    """A file that the head has whole, one that came whole, one whose ETag is weak."""
    with rasterio.open(nginx.files / "small.tif", "w", driver="GTiff", count=1, height=32, width=32,
                       dtype="uint8") as file:
        file.write(np.full((1, 32, 32), 7, "u1"))
    faults.plan(at={number: {"kind": "header", "name": "ETag", "value": 'W/"1"'} for number in (1, 2)})
    for url in (f"{nginx.http}/files/small.tif", f"{nginx.http}/whole/bigtiff.tif", f"{faults.http}/files/masked.tif"):
        reader.open(url).close()
        once = len(nginx.requests())
        reader.open(url).close()
        assert len(nginx.requests()) == once > 0


def test_s3_headers_are_kept_by_credentials(s3, monkeypatch):
    reader, url = reader_of(s3), f"s3://{s3.closed}/masked.tif"  # noqa: F811
    for name, value in s3.environment("TESTKEY").items():
        monkeypatch.setenv(name, value)
    with reader.context:
        for count in (1, 0, 0):
            reader.open(url).close()
            assert len(s3.requests()) == count
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not-the-secret")
        with pytest.raises(cogpu.CogpuError, match="403"):
            reader.open(url)
