"""Who is measured by bench_python.py: cogpu's Python package, rioxarray, xarray-spatial, odc-geo and async-geotiff.

Each is a class with the jobs that it can do, by the call that its own documents show; a job that is not there is not
measured. All read (band, y, x) or (y, x) float32 and write COGs in tiles of 512, deflate 6, predictor 3, overviews by
average. Here, so that bench_python.py treats all alike.
"""
import asyncio
import importlib

import numpy as np

TILE = 512
CACHE = 256 << 20  # bytes of decoded blocks; GDAL takes 5 % of the memory


def installed(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


class Cogpu:
    """open_geotiff and to_geotiff."""
    name, needs = "cogpu", "cogpu"

    def __init__(self, module):
        self.cogpu = module

    def whole(self, path):
        return self.cogpu.open_geotiff(path).values

    def windows(self, path, places):
        with self.cogpu.open(path) as file:
            return [np.asarray(file.read(window=(y, x, y + TILE, x + TILE))) for y, x in places]

    def windows_cache(self, path, places):
        self.cogpu.configure(cache_bytes=CACHE)
        try:
            return self.windows(path, places)
        finally:
            self.cogpu.configure()

    def lazy(self, path):
        return self.cogpu.open_geotiff(path, chunks=TILE)

    def mean(self, path):
        return float(self.lazy(path).mean().compute())

    def cog(self, raster, path):
        self.cogpu.to_geotiff(raster, path, cog=True, compression="deflate", compression_level=6, predictor=3,
                              tile_size=TILE, overview_resampling="mean")

    cog_dask = cog


class Rioxarray:
    """open_rasterio and .rio.to_raster with GDAL's COG driver, whose threads are on; GDAL keeps decoded blocks. Of a
    Dask array rioxarray makes the whole first."""
    name, needs = "rioxarray", "rioxarray"

    def __init__(self, module):
        self.rioxarray = module

    def whole(self, path):
        return self.rioxarray.open_rasterio(path, NUM_THREADS="ALL_CPUS").values

    def windows_cache(self, path, places):
        with self.rioxarray.open_rasterio(path, cache=False) as raster:
            return [raster[:, y:y + TILE, x:x + TILE].values for y, x in places]

    def lazy(self, path):
        return self.rioxarray.open_rasterio(path, chunks={"band": 1, "y": TILE, "x": TILE}, lock=False)

    def mean(self, path):
        return float(self.lazy(path).mean().compute())

    def cog(self, raster, path):
        raster.rio.to_raster(path, driver="COG", compress="DEFLATE", level=6, predictor=3, blocksize=TILE,
                             overview_resampling="average", num_threads="ALL_CPUS")

    cog_dask = cog


class XarraySpatial:
    name, needs = "xarray-spatial", "xrspatial.geotiff"

    def __init__(self, module):
        self.geotiff = module

    def whole(self, path):
        return self.geotiff.open_geotiff(str(path)).values

    def windows(self, path, places):
        return [self.geotiff.open_geotiff(str(path), window=(y, x, y + TILE, x + TILE)).values for y, x in places]

    def lazy(self, path):
        return self.geotiff.open_geotiff(str(path), chunks=TILE)

    def mean(self, path):
        return float(self.lazy(path).mean().compute())

    def cog(self, raster, path):
        self.geotiff.to_geotiff(raster[0], str(path), cog=True, compression="deflate", compression_level=6, predictor=3,
                                tile_size=TILE, overview_resampling="mean")

    cog_dask = cog


class OdcGeo:
    """write_cog, which is GDAL's driver with temporary files in memory, and save_cog_with_dask, which is its own."""
    name, needs = "odc-geo", "odc.geo.cog"

    def __init__(self, module):
        self.writer = module
        importlib.import_module("odc.geo.xr")

    def cog(self, raster, path):
        self.writer.write_cog(raster[0], path, overwrite=True, blocksize=TILE, overview_resampling="average",
                              compress="DEFLATE", zlevel=6, predictor=3, num_threads="ALL_CPUS")

    def cog_dask(self, raster, path):
        self.writer.save_cog_with_dask(raster[0], str(path), compression="deflate", level=6, predictor=3,
                                       blocksize=TILE, overview_resampling="average", stats=False).compute()


class AsyncGeotiff:
    """async-geotiff, with its own threads; it has no DataArray and no Dask."""
    name, needs = "async-geotiff", "async_geotiff"

    def __init__(self, module):
        self.module, self.loop = module, asyncio.new_event_loop()
        self.store = importlib.import_module("async_tiff.store").LocalStore

    def lazy(self, path):
        return self.loop.run_until_complete(self.module.GeoTIFF.open(path.name, store=self.store(str(path.parent))))

    def whole(self, path):
        return self.loop.run_until_complete(self.lazy(path).read()).data

    def windows(self, path, places):
        file, window = self.lazy(path), self.module.Window
        read = lambda y, x: self.loop.run_until_complete(file.read(window=window(x, y, TILE, TILE)))
        return [read(y, x).data for y, x in places]


def field():
    """All who are installed, us first; and the names of those who are not."""
    found = [(kind, installed(kind.needs)) for kind in (Cogpu, Rioxarray, XarraySpatial, OdcGeo, AsyncGeotiff)]
    return [kind(module) for kind, module in found if module], [kind.name for kind, module in found if not module]
