"""How much memory workers of a cluster take that write one COG together, of a raster that is generated in chunks.

    PYTHONPATH=build/python .venv/bin/python bench/cluster_memory.py [--side 10000] [--workers 3] [--chunks 1024]

Prints each worker's largest resident memory, all of the process, and ends with 1 where one passes the limit.
"""

import argparse
import os
import sys
import tempfile
import time

import dask.array as da
import distributed
import numpy as np

import cogpu


def terrain(chunk, block_info=None):
    """Pixels of a chunk by its place: smooth, with a little noise, so that the codec has what it has in practice."""
    (row, _), (column, _) = block_info[None]["array-location"]
    y, x = np.ogrid[row:row + chunk.shape[0], column:column + chunk.shape[1]]
    noise = np.random.default_rng([row, column]).random(chunk.shape, dtype="float32")
    return (np.sin(x / 300) * np.cos(y / 200) * 500).astype("float32") + noise


def largest_memory():
    """In bytes, of the process from its start; getrusage would tell of the process that started it too."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) << 10


def measure(side=10_000, workers=3, chunks=1024, resampling="average"):
    """Seconds, bytes of the file, and the largest memory of each worker and of this process."""
    pixels = da.empty((side, side), chunks=chunks, dtype="float32").map_blocks(terrain, dtype="float32")
    with tempfile.TemporaryDirectory() as folder, \
            distributed.Client(n_workers=workers, threads_per_worker=1, dashboard_address=None) as client:
        path, start = os.path.join(folder, "a.tif"), time.monotonic()
        cogpu.to_geotiff(pixels, path, cog=True, overview_resampling=resampling)
        return {"side": side, "seconds": time.monotonic() - start, "file_bytes": os.path.getsize(path),
                "worker_bytes": sorted(client.run(largest_memory).values()), "own_bytes": largest_memory()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--side", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--chunks", type=int, default=1024)
    parser.add_argument("--resampling", default="average")
    parser.add_argument("--limit", type=int, default=512, help="megabytes (10^6)")
    asked = parser.parse_args()
    found = measure(asked.side, asked.workers, asked.chunks, asked.resampling)
    print(f"{asked.side} x {asked.side} float32, {found['file_bytes'] / 1e6:.0f} MB written in {found['seconds']:.0f} s; workers "
          f"{', '.join(f'{each / 1e6:.0f}' for each in found['worker_bytes'])} MB; here {found['own_bytes'] / 1e6:.0f} MB")
    return 0 if found["worker_bytes"][-1] < asked.limit * 1e6 else 1


if __name__ == "__main__":
    sys.exit(main())
