"""The GPU's decoders, measured alone and beside nvCOMP's, on rasters of 10,000 x 10,000.

Enlarges the rasters of rasters.py, stores them in every way that is measured (once: the files are kept),
builds bench/gpu_decode.c and runs it over them. What is timed is the decoding of a whole file's blocks
from device memory to device memory; every byte is compared with what the host's codec gives.

Cases are chosen by parts of their names, with * for anything: "deflate-p3", "uint16-*-512". Writes
gpu_decode.json and gpu_decode.md into bench/results (--out) and prints the table.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

import imagecodecs
import numpy as np
import tifffile

import rasters

WORKERS = len(os.sched_getaffinity(0))
SIDE, SMALL_SIDE = 10_000, 3600
SECONDS = 90  # that one file may take
GEOTIFF = [  # EPSG:32632, pixels of a metre
    (33550, "d", 3, (1.0, 1.0, 0.0), True),
    (33922, "d", 6, (0.0, 0.0, 0.0, 356000.0, 5700000.0, 0.0), True),
    (34735, "H", 16, (1, 1, 0, 3, 1024, 0, 1, 1, 1025, 0, 1, 1, 3072, 0, 1, 32632), True),
]


@dataclass
class Case:
    """A file: which raster, stored how. `block` is the side of a tile, or "s64" for strips of 64 rows."""
    raster: str
    codec: str
    predictor: int = 1
    block: str = "512"
    side: int = 0  # 0: the side of the run

    @property
    def name(self):
        parts = [self.raster, self.codec, f"p{self.predictor}" * (self.predictor > 1), self.block]
        return "-".join(filter(None, parts + [str(self.side or "")]))

    @property
    def compression(self):
        return {"deflate": 8, "libdeflate": 8, "zstd": 50000, "lzw": 5, "packbits": 32773}.get(self.codec, 1)


def cases():
    """All of them; "libdeflate" stands for the files of newer GDALs, whose deflate blocks are larger."""
    ways = [("float32", codec, predictor) for codec in ("deflate", "zstd", "lzw") for predictor in (3, 2)]
    ways += [("float32", "none", 1)] + [("uint16", codec, 2) for codec in ("deflate", "zstd", "lzw")]
    return [Case(*way, block) for way in ways for block in ("512", "256", "s64")] + [
        Case("float32", "deflate", 3, side=SMALL_SIDE), Case("float32", "libdeflate", 3),
        Case("uint16", "libdeflate", 2), Case("uint16", "packbits")]


def chosen(names):
    return [case for case in cases()
            if not names or any(fnmatch(case.name, f"*{name}*") for name in names)]


# ---- the files ---------------------------------------------------------------------------------

def streamed(frame):
    """A zstd frame of known size as libtiff writes it, who does not tell zstd the size beforehand: a window
    (4 MiB) in the place of the size, and an empty last block."""
    flags = frame[4]
    assert flags & 0x27 == 0x20, "a single segment without check sum and dictionary"
    first = at = 5 + (1, 2, 4, 8)[flags >> 6]
    while not frame[at] & 1:  # the last block's header has bit 0 set; type 1 repeats a single byte
        header = int.from_bytes(frame[at:at + 3], "little")
        at += 3 + (1 if header >> 1 & 3 == 1 else header >> 3)
    return frame[:4] + b"\0\x60" + frame[first:at] + bytes([frame[at] & 0xFE]) + frame[at + 1:] + b"\1\0\0"


ENCODERS = {
    "none": bytes,
    "deflate": lambda data: zlib.compress(data, 6),
    "libdeflate": lambda data: imagecodecs.deflate_encode(data, 6),
    "zstd": lambda data: streamed(imagecodecs.zstd_encode(data, 9)),
    "lzw": imagecodecs.lzw_encode,
    "packbits": imagecodecs.packbits_encode,
}


def blocks(pixels, block):
    """Tiles, those at the edges filled up with zeros, or strips, the last one shorter; in file order."""
    height, width = pixels.shape
    if block.startswith("s"):
        rows = int(block[1:])
        yield from (pixels[y:y + rows] for y in range(0, height, rows))
        return
    side = int(block)
    for y in range(0, height, side):
        for x in range(0, width, side):
            tile = pixels[y:y + side, x:x + side]
            missing = [(0, side - n) for n in tile.shape]
            yield np.pad(tile, missing) if any(n for _, n in missing) else tile


def encode(pixels, case):
    pixels = np.ascontiguousarray(pixels)
    if case.predictor == 2:
        pixels = imagecodecs.delta_encode(pixels.view(f"u{pixels.itemsize}"), axis=-1)
    elif case.predictor == 3:
        pixels = imagecodecs.floatpred_encode(pixels, axis=-1)
    return bytes(ENCODERS[case.codec](np.asarray(pixels).tobytes()))


def write(path, pixels, case):
    layout = ({"rowsperstrip": int(case.block[1:])} if case.block.startswith("s")
              else {"tile": (int(case.block),) * 2})
    part = path.with_suffix(".part")
    with ThreadPoolExecutor(WORKERS) as pool:
        stored = pool.map(lambda block: encode(block, case), blocks(pixels, case.block))
        tifffile.imwrite(part, stored, shape=pixels.shape, dtype=pixels.dtype, photometric="minisblack",
                         compression=case.compression, metadata=None, software=False, extratags=GEOTIFF,
                         predictor=case.predictor > 1, **layout)
    if case.predictor == 2:  # tifffile knows no 2 for floats, which GDAL writes
        with tifffile.TiffFile(part, mode="r+") as written:
            written.pages[0].tags["Predictor"].overwrite(2)
    part.rename(path)


def file(case, side):
    """The path of a case's file; made if it is not there."""
    path = rasters.DATA / (f"gpu-{case.name}.tif" if case.side else f"gpu-{case.name}-{side}.tif")
    if not path.exists():
        print(f"making {path.name}", file=sys.stderr)
        write(path, rasters.raster(case.raster, case.side or side)[0], case)
    return path


# ---- measuring ---------------------------------------------------------------------------------

def build(folder):
    """The program, in a release build that has the kernels inside."""
    ninja = ["-G", "Ninja"] if shutil.which("ninja") and not (folder / "CMakeCache.txt").exists() else []
    commands = (["cmake", "-S", rasters.ROOT, "-B", folder, *ninja, "-DCOGPU_BENCH=ON"],
                ["cmake", "--build", folder, "--target", "bench_gpu_decode"])
    for command in commands:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            sys.exit(f"{done.stdout}\nthe build failed")
    return folder / "bench_gpu_decode"


def find_nvcomp():
    """Tells the program where nvCOMP is, if pip has installed it and nobody has said otherwise."""
    for folder in map(Path, sys.path):
        library = folder / "nvidia" / "libnvcomp" / "lib64" / "libnvcomp.so.5"
        if library.exists():
            os.environ.setdefault("COGPU_NVCOMP", str(library))


def run(program, words, path):
    """The program's lines over one file, or one that says why there are none. A process for each file, so
    that a decoder which hangs or breaks the GPU's context spoils its own file alone."""
    done = None
    try:
        done = subprocess.run([program, *words, path], capture_output=True, text=True, timeout=SECONDS)
        out, why = done.stdout, done.stderr.strip() or f"exit code {done.returncode}"
    except subprocess.TimeoutExpired as late:
        out, why = (late.stdout or b"").decode(), f"not done after {SECONDS} s"
    lines = [json.loads(line) for line in out.splitlines() if line.endswith("}")]
    for line in lines:
        print(f"  {path.name}: {line['who']} {line['gb_s']} GB/s, {line['wrong']} wrong", file=sys.stderr)
    if done is None or done.returncode != 0:
        print(f"  {path.name}: {why}", file=sys.stderr)
    return lines or [{"file": path.name, "who": "cogpu", "failed": why}]


def table(lines):
    """A row a file: ours beside nvCOMP's."""
    text = ("| file | blocks | stored MB | decoded MB | cogpu ms | **cogpu GB/s** | nvCOMP GB/s | times | "
            "scratch MB | refused | wrong |\n|---|" + "---:|" * 10 + "\n")
    by_file = {}
    for line in lines:
        name = line["file"].removeprefix("gpu-").removesuffix(".tif")
        by_file.setdefault(name, {})[line["who"]] = line
    for name, who in by_file.items():
        our, their = who["cogpu"], who.get("nvcomp", {})
        if "failed" in our:
            text += f"| {name} | failed: {our['failed'][-200:]} |\n"
            continue
        speed = their.get("gb_s", 0)
        cells = [name, our["blocks"],
                 *(f"{our[f'{what}_bytes'] / 1e6:.1f}" for what in ("stored", "decoded")),
                 f"{our['ms']:.3f}", f"**{our['gb_s']:.1f}**", f"{speed:.1f}" if speed else "-",
                 f"{our['gb_s'] / speed:.1f}" if speed else "-", f"{our['scratch_bytes'] / 1e6:.1f}",
                 our["refused"], our["wrong"]]
        text += "| " + " | ".join(map(str, cells)) + " |\n"
    return text + kernel_table(by_file)


def kernel_table(by_file):
    text = ""
    for name, who in by_file.items():
        for kernel, spent in who["cogpu"].get("kernels", {}).items():
            text += f"| {name} | {kernel} | {spent['launches']} | {spent['ms']:.3f} |\n"
    return f"\n| file | kernel | launches | ms, alone |\n|---|---|---:|---:|\n{text}" if text else ""


def measure(field, picked):
    """Measures the cases, saves after each, since a long run may be stopped, and prints the table."""
    words = [f"--{word}" for word in ("kernels", "least", "ours", "emu") if getattr(picked, word)]
    words.append(f"--repeats={picked.repeats}")
    find_nvcomp()
    program, lines = build(picked.build), []
    picked.out.mkdir(parents=True, exist_ok=True)
    for case in field:
        if case.codec != "none":
            lines += run(program, words, file(case, picked.side))
            (picked.out / "gpu_decode.json").write_text(json.dumps(lines, indent=1))
            (picked.out / "gpu_decode.md").write_text(table(lines))
    print(table(lines))
    return int(any("failed" in line or line["wrong"] for line in lines if line["who"] == "cogpu"))


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("cases", nargs="*", help="parts of the names of the cases; all if none is given")
    options.add_argument("--list", action="store_true", help="print the names of the cases, and end")
    options.add_argument("--make-only", action="store_true", help="make the files, and end")
    options.add_argument("--side", type=int, default=SIDE, help="of the rasters, in pixels")
    options.add_argument("--repeats", type=int, default=9)
    options.add_argument("--kernels", action="store_true", help="also time each kernel by itself")
    options.add_argument("--least", action="store_true", help="give decoders the least scratch")
    options.add_argument("--ours", action="store_true", help="without nvCOMP")
    options.add_argument("--emu", action="store_true", help="on the emulator: the harness is tested, not timed")
    options.add_argument("--data", type=Path, default=rasters.DATA, help="folder of the files")
    options.add_argument("--build", type=Path, default=rasters.ROOT / "build", help="folder of the build")
    options.add_argument("--out", type=Path, default=rasters.ROOT / "bench" / "results")
    picked = options.parse_args()
    rasters.DATA = picked.data
    field = chosen(picked.cases)
    if picked.list:
        print("\n".join(case.name for case in field))
    elif picked.make_only:
        for case in field:
            file(case, picked.side)
    else:
        return measure(field, picked)
    return 0


if __name__ == "__main__":
    sys.exit(main())
