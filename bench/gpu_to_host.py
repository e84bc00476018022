"""One file into host memory, decoded by the CPU and by a GPU: new arrays, one array again and again, pinned memory.

    python bench/gpu_to_host.py FILE.tif [--repeats 9] [--device cuda]

Prints median and least milliseconds, and compares the pixels. Pinned memory is PyTorch's; without it that line is
left out. "device memory" is the read that leaves pixels on the GPU, and "device memory, download" that read and a copy
of the whole array by NumPy's request afterwards.
"""
import argparse
import importlib
import statistics
import time

import cogpu
import numpy as np


def measured(name, repeats, read):
    times, pixels = [], None
    for _ in range(repeats + 2):
        del pixels  # before the next: its memory is new
        start = time.perf_counter()
        pixels = read()
        times.append(1e3 * (time.perf_counter() - start))
    times = times[2:]
    print(f"{name:32} median {statistics.median(times):8.2f} ms, least {min(times):8.2f} ms", flush=True)
    return pixels


def pinned_like(shape, dtype):
    torch = importlib.import_module("torch")
    size = int(np.prod(shape)) * dtype.itemsize
    return torch.empty(size, dtype=torch.uint8, pin_memory=True).numpy().view(dtype).reshape(shape)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--device", default="cuda")
    given = parser.parse_args()
    with cogpu.open(given.file) as file:
        out = np.zeros(file.shape, file.dtype)
        how = {"decode": given.device}
        expected = np.asarray(measured("CPU, new array", given.repeats, file.read))
        measured("CPU, one array", given.repeats, lambda: file.read(out=out))
        decoded = np.asarray(measured("GPU, new array", given.repeats, lambda: file.read(**how)))
        print("  blocks decoded by the GPU:", file.read(**how).result["device_blocks"], "pixels are the same:",
              np.array_equal(decoded, expected, equal_nan=expected.dtype.kind in "fc"))
        out[:] = 0
        measured("GPU, one array", given.repeats, lambda: file.read(out=out, **how))
        print("  pixels are the same:", np.array_equal(out, expected, equal_nan=out.dtype.kind in "fc"))
        try:
            pinned = pinned_like(file.shape, file.dtype)
        except (ImportError, RuntimeError) as error:
            print("GPU, pinned array:", error)
        else:
            measured("GPU, pinned array", given.repeats, lambda: file.read(out=pinned, **how))
            print("  pixels are the same:", np.array_equal(pinned, expected, equal_nan=out.dtype.kind in "fc"))
        measured("device memory", given.repeats, lambda: file.read(device=given.device))
        measured("device memory, download", given.repeats,
                 lambda: np.from_dlpack(file.read(device=given.device), device="cpu"))


if __name__ == "__main__":
    main()
