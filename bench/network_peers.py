"""Who is measured by bench_network.py: cogpu's Python package, GDAL through rasterio, and async-geotiff.

Each is a class with the jobs that it can do, by the call that its own documents show: `windows` gives windows of TILE x
TILE at places (y, x), and `overview` the whole of a level, both from a URL that was not opened before. Here, so that
bench_network.py treats all alike.
"""
import asyncio
import importlib
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from python_peers import TILE

# What GDAL's own advice for remote COGs comes to, with more room in its caches than it asks for: all that is read fits.
GDAL_ADVICE = {"GDAL_DISABLE_READDIR_ON_OPEN": "EMPTY_DIR", "CPL_VSIL_CURL_ALLOWED_EXTENSIONS": ".tif",
               "CPL_VSIL_CURL_USE_HEAD": "NO", "GDAL_INGESTED_BYTES_AT_OPEN": "32768",
               "GDAL_HTTP_MERGE_CONSECUTIVE_RANGES": "YES", "GDAL_HTTP_MULTIPLEX": "YES", "GDAL_HTTP_VERSION": "2",
               "VSI_CACHE": "TRUE", "VSI_CACHE_SIZE": str(64 << 20), "CPL_VSIL_CURL_CACHE_SIZE": str(512 << 20),
               "GDAL_CACHEMAX": "1024"}
GDAL_THREADS = 8  # with 2 CPU cores: 4, 12, 16, 32 and 64 were slower, and so were its own threads beside these
THREADS = 32


class Cogpu:
    """read_many: all windows at once."""
    name, needs = "cogpu", "cogpu"

    def __init__(self):
        self.cogpu = importlib.import_module(self.needs)
        self.cogpu.configure(network={"allow_private_addresses": True})

    def windows(self, url, places):
        with self.cogpu.open(url) as file:
            requests = [(file, {"window": (y, x, y + TILE, x + TILE)}) for y, x in places]
            return [np.asarray(array) for array in self.cogpu.read_many(requests)]

    def overview(self, url, level):
        with self.cogpu.open(url) as file:
            return np.asarray(file.read(level=level))


class CogpuThreads(Cogpu):
    name, overview = "cogpu, threads", None

    def windows(self, url, places):
        with self.cogpu.open(url) as file, ThreadPoolExecutor(THREADS) as pool:
            return list(pool.map(lambda place: read_window(file, *place), places))


class CogpuOneByOne(Cogpu):
    name, overview = "cogpu, one by one", None

    def windows(self, url, places):
        with self.cogpu.open(url) as file:
            return [read_window(file, *place) for place in places]


def read_window(file, y, x):
    return np.asarray(file.read(window=(y, x, y + TILE, x + TILE)))


class Gdal:
    """/vsicurl with a dataset for each thread, as GDAL asks for."""
    name, needs = "GDAL, threads", "rasterio"

    def __init__(self):
        os.environ.update(GDAL_ADVICE)  # before GDAL is loaded, and for its threads too
        self.rasterio = importlib.import_module(self.needs)
        self.window = importlib.import_module("rasterio.windows").Window

    def open(self, url, **options):
        return self.rasterio.open(f"/vsicurl/{url}", **options)

    def windows(self, url, places):
        own = threading.local()

        def read(place):
            if not hasattr(own, "file"):
                own.file = self.open(url)
            return own.file.read(window=self.window(place[1], place[0], TILE, TILE))
        with ThreadPoolExecutor(GDAL_THREADS) as pool:
            return list(pool.map(read, places))

    def overview(self, url, level):
        with self.open(url, overview_level=level - 1, NUM_THREADS="ALL_CPUS") as file:
            return file.read()


class GdalOneByOne(Gdal):
    name, overview = "GDAL, one by one", None

    def windows(self, url, places):
        with self.open(url, NUM_THREADS="ALL_CPUS") as file:
            return [file.read(window=self.window(x, y, TILE, TILE)) for y, x in places]


class AsyncGeotiff:
    """All windows at once, by asyncio."""
    name, needs = "async-geotiff", "async_geotiff"

    def __init__(self):
        self.module = importlib.import_module(self.needs)
        self.store = importlib.import_module("async_tiff.store").HTTPStore

    async def open(self, url):
        folder, name = url.rsplit("/", 1)
        return await self.module.GeoTIFF.open(name, store=self.store(folder, client_options={"allow_http": True}))

    async def read(self, file, place):
        return (await file.read(window=self.module.Window(place[1], place[0], TILE, TILE))).data

    def windows(self, url, places):
        async def read():
            file = await self.open(url)
            return await asyncio.gather(*(self.read(file, place) for place in places))
        return asyncio.run(read())

    def overview(self, url, level):
        async def read():
            file = await self.open(url)
            return (await file.overviews[level - 1].read()).data
        return asyncio.run(read())


class AsyncGeotiffOneByOne(AsyncGeotiff):
    name, overview = "async-geotiff, one by one", None

    def windows(self, url, places):
        async def read():
            file = await self.open(url)
            return [await self.read(file, place) for place in places]
        return asyncio.run(read())


CONTENDERS = [Cogpu, CogpuThreads, CogpuOneByOne, Gdal, GdalOneByOne, AsyncGeotiff, AsyncGeotiffOneByOne]
