"""Windows of one file into a GPU, from several Python threads that share the process-wide context.

    python bench/gpu_threads.py [--size 10000] [--window 512] [--seconds 2] [--json FILE]

Makes a float32 terrain, deflate with predictor 3 in tiles of 512, and reads random windows by cogpu.File.read: into new
arrays and into arrays that each thread keeps, with 1, 2, 4, 8 and 16 threads; and by cogpu.read_many, 64 windows a call.
Prints windows a second. Checks some windows against the pixels that were written.
"""

import argparse
import json
import pathlib
import tempfile
import threading
import time

import numpy as np

import cogpu

THREADS = (1, 2, 4, 8, 16)
MANY = 64


def terrain(size):
    """Heights with some structure at each scale, and noise that deflate cannot remove."""
    rng = np.random.default_rng(7)
    y, x = np.mgrid[0:size, 0:size].astype("f4") / 200
    return (900 + 300 * np.sin(x) * np.cos(y * 0.7) + rng.normal(0, 0.3, (size, size))).astype("f4").round(2)


def windows(size, side, count, seed):
    corners = np.random.default_rng(seed).integers(0, size - side + 1, (count, 2))
    return [(int(y), int(x), int(y) + side, int(x) + side) for y, x in corners]


def rate(read, threads, seconds):
    """Calls of read(thread, number) a second, over all threads."""
    counts, start = [0] * threads, threading.Barrier(threads + 1)
    stop = threading.Event()

    def work(thread):
        start.wait()
        while not stop.is_set():
            read(thread, counts[thread])
            counts[thread] += 1

    workers = [threading.Thread(target=work, args=(thread,)) for thread in range(threads)]
    for worker in workers:
        worker.start()
    start.wait()
    begin = time.perf_counter()
    time.sleep(seconds)
    stop.set()
    for worker in workers:
        worker.join()
    return sum(counts) / (time.perf_counter() - begin)


def to_host(array, device):
    if device.startswith("cuda"):
        import cupy
        return cupy.asnumpy(cupy.from_dlpack(array))
    return np.from_dlpack(array)


def check(file, pixels, places, device):
    for row0, col0, row1, col1 in places[:16]:
        found = to_host(file.read((row0, col0, row1, col1), device=device), device)[0]
        assert np.array_equal(found, pixels[row0:row1, col0:col1])


def measure(path, pixels, side, seconds, device):
    file = cogpu.open(path)
    places = windows(len(pixels), side, 4096, 11)
    check(file, pixels, places, device)
    kept = [file.read(places[0], device=device) for _ in range(max(THREADS))]
    jobs = {"new arrays": lambda thread, n: file.read(places[(thread * 251 + n) % len(places)], device=device),
            "kept arrays": lambda thread, n: file.read(places[(thread * 251 + n) % len(places)], out=kept[thread])}
    found = {name: {threads: rate(job, threads, seconds) for threads in THREADS} for name, job in jobs.items()}
    many = [(file, {"window": place, "device": device}) for place in places[:MANY]]
    found["read_many"] = {1: MANY * rate(lambda *_: cogpu.read_many(many), 1, seconds)}
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=10000)
    parser.add_argument("--window", type=int, default=512)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--file", type=pathlib.Path, help="read this file, and make it if it is not there")
    parser.add_argument("--json", type=pathlib.Path)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = chosen.file or pathlib.Path(folder) / "terrain.tif"
        pixels = np.asarray(cogpu.open(path).read())[0] if path.exists() else terrain(chosen.size)
        if not path.exists():
            cogpu.to_geotiff(pixels, path, compression="deflate", predictor=3, tile_size=512, cog=False)
        found = measure(path, pixels, chosen.window, chosen.seconds, chosen.device)
    for name, rates in found.items():
        print(f"{name:12s}", ", ".join(f"{threads} threads {value:.0f}/s" for threads, value in rates.items()))
    if chosen.json:
        chosen.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
