"""The recipes of CONTRIBUTING.md: a toy codec with a GPU decoder and a GPU encoder, and a toy store, are added to a copy
of the sources by their steps, and files are written and read with them. Only the files of the steps are compiled; the rest
is the library and the command line as they were built, so a fact that is outside the steps fails the test.
"""

import functools
import http.server
import json
import pathlib
import re
import shlex
import shutil
import subprocess
import threading

import numpy as np
import pytest
import rasterio
from conftest import BIN, ROOT

BUILD = BIN.parent
GUIDE = (ROOT / "CONTRIBUTING.md").read_text()
CODEC_C = """
/* A toy codec for the test of the recipe: each byte with its bits inverted. */
#include "codec/codec.h"

#include "base/math.h"

static size_t invert(const uint8_t *in, size_t bytes, uint8_t *out) {
    for (size_t i = 0; i < bytes; i++)
        out[i] = (uint8_t)~in[i];
    return bytes;
}

cogpu_status cogpu_decode_toy(cogpu_codec_state *state, const cogpu_block_format *format, const uint8_t *in,
                              size_t in_bytes, uint8_t *out, size_t out_bytes, size_t *got, cogpu_error *error) {
    (void)state, (void)format, (void)error;
    *got = invert(in, min_size(in_bytes, out_bytes), out);
    return COGPU_OK;
}

static cogpu_status encode_toy(cogpu_codec_state *state, const cogpu_encoding *encoding, const uint8_t *in,
                               size_t in_bytes, uint8_t *out, size_t out_bytes, size_t *got, cogpu_error *error) {
    (void)state, (void)encoding, (void)error, (void)out_bytes;
    *got = invert(in, in_bytes, out);
    return COGPU_OK;
}

static uint64_t bound_toy(const cogpu_encoding *encoding, uint64_t in_bytes) {
    (void)encoding;
    return in_bytes + 1;
}

const cogpu_encoder cogpu_encoder_toy = {.encode = encode_toy, .bound = bound_toy};
"""
ROW = """    {
        .compression = COMPRESSION_TOY,
        .name = "toy",
        .library = "own",
        .decode = cogpu_decode_toy,
        .encoder = &cogpu_encoder_toy,
        .allows_predictor = true,
        .min_level = 1,
        .max_level = 3,
        .default_level = 2,
        .allows_packed_samples = true,
        .encode_types = LERC_TYPES,
        .gpu_decode = true,
        .gpu_encode = true,
    },
"""
DECODE_ARGS = """
#include "kernels/decoder.h"
struct cogpu_toy_decode_args {
    const cogpu_encoded_block *blocks;
    const uint8_t *stored;
    uint8_t *decoded;
    uint32_t *statuses;
};
"""
DECODE_CU = """
#include "kernels/simt.h"
#include "kernels/toy/toy_decode_args.h"
enum { THREADS = 64 };
KERNEL(cogpu_kernel_toy_decode, struct cogpu_toy_decode_args, struct nothing_shared, THREADS, 8) {
    const cogpu_encoded_block *block = &args->blocks[block_index()];
    const uint32_t bytes = block->in_bytes < block->capacity ? block->in_bytes : block->capacity;
    for (uint32_t i = thread_index(); i < bytes; i += THREADS)
        args->decoded[block->out + i] = (uint8_t)~args->stored[block->in + i];
    if (thread_index() == 0)
        args->statuses[block_index()] = bytes < block->required ? COGPU_GPU_TOO_SHORT : COGPU_GPU_DECODED;
}
"""
DECODE_LAUNCH = """
#include "kernels/toy/toy_decode_args.h"
extern const cogpu_kernel cogpu_kernel_toy_decode;
static void toy_scratch(const cogpu_encoded_block *blocks, uint32_t count, uint32_t others, uint64_t *least,
                        uint64_t *best) {
    (void)blocks, (void)count, (void)others;
    *least = *best = 0;
}
static cogpu_status toy_decode(const cogpu_gpu_batch *batch, cogpu_error *error) {
    const struct cogpu_toy_decode_args args = {batch->device_blocks, batch->stored, batch->decoded, batch->statuses};
    return batch->gpu->calls->launch(batch->gpu, &cogpu_kernel_toy_decode, batch->count, &args, batch->stream, error);
}
static const cogpu_kernel *const kernels[] = {&cogpu_kernel_toy_decode, NULL};
const cogpu_gpu_decoder cogpu_gpu_toy = {
    .rates = {.cpu = 1, .one = 1, .many = 100}, .kernels = kernels, .scratch = toy_scratch, .decode = toy_decode};
"""
ENCODE_ARGS = """
#include "kernels/encoder.h"
struct cogpu_toy_encode_args {
    const cogpu_raw_block *blocks;
    const uint8_t *decoded;
    uint8_t *slots;
    uint32_t *sizes;
};
"""
# A byte more than the CPU encoder writes, which decoders ignore: it shows which of the two made a block.
ENCODE_CU = """
#include "kernels/simt.h"
#include "kernels/toy/toy_encode_args.h"
enum { THREADS = 64 };
KERNEL(cogpu_kernel_toy_encode, struct cogpu_toy_encode_args, struct nothing_shared, THREADS, 8) {
    const cogpu_raw_block *block = &args->blocks[block_index()];
    if (args->sizes[block_index()] == COGPU_GPU_SPARSE)
        return;
    for (uint32_t i = thread_index(); i < block->in_bytes; i += THREADS)
        args->slots[block->out + i] = (uint8_t)~args->decoded[block->in + i];
    sync_block();
    if (thread_index() == 0) {
        args->slots[block->out + block->in_bytes] = 0;
        args->sizes[block_index()] = block->in_bytes + 1;
    }
}
"""
ENCODE_LAUNCH = """
#include "kernels/toy/toy_encode_args.h"
extern const cogpu_kernel cogpu_kernel_toy_encode;
static uint64_t toy_bound(uint64_t in_bytes, uint64_t row_bytes) {
    (void)row_bytes;
    return in_bytes + 1;
}
static void toy_scratch(const cogpu_raw_block *blocks, uint32_t count, int level, uint64_t *least, uint64_t *best) {
    (void)blocks, (void)count, (void)level;
    *least = *best = 0;
}
static cogpu_status toy_encode(const cogpu_gpu_encoding *e, cogpu_error *error) {
    const struct cogpu_toy_encode_args args = {e->device_blocks, e->decoded, e->slots, e->sizes};
    return e->gpu->calls->launch(e->gpu, &cogpu_kernel_toy_encode, e->count, &args, e->stream, error);
}
static const cogpu_kernel *const kernels[] = {&cogpu_kernel_toy_encode, NULL};
const cogpu_gpu_encoder cogpu_gpu_toy_encoder = {.kernels = kernels, .bound = toy_bound, .scratch = toy_scratch,
                                                 .encode = toy_encode};
"""
# toy://PORT/NAME is a file of a server of this machine.
STORE_C = """
#include "io/store/store.h"
#include <stdio.h>
struct toy_store {
    cogpu_store store;
    char url[256];
};
static cogpu_status locate_toy(cogpu_store *store, const char *address, const cogpu_url *url, cogpu_error *error) {
    struct toy_store *self = (struct toy_store *)store;
    (void)url;
    if (snprintf(self->url, sizeof self->url, "http://127.0.0.1:%s", address + 6) >= (int)sizeof self->url)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT, "the address is too long");
    store->target.url = self->url;
    return COGPU_OK;
}
const cogpu_store_kind cogpu_store_toy = {
    .scheme = "toy", .struct_bytes = sizeof(struct toy_store), .locate = locate_toy};
"""


def steps_of(title):
    """The numbered steps of a section."""
    section = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", GUIDE, re.M | re.S)[1]
    return re.findall(r"^\d+\. .*?(?=^\d+\. |\Z)", section, re.M | re.S)


def files_of(steps):
    """Paths in their order, NAME replaced."""
    return [path.replace("NAME", "toy") for step in steps for path in re.findall(r"`((?:src|tests|cli|cmake|include|"
                                                                                 r"python|docs|tools)/[^`]+)`", step)]


@pytest.mark.no_library
@pytest.mark.parametrize("title", ["A new codec", "A GPU decoder", "A GPU encoder", "A new resampling method",
                                   "A new sample type", "A new store", "A new command-line option"])
def test_every_recipe_has_steps(title):
    steps = steps_of(title)
    assert len(steps) >= 2 and all("`" in step for step in steps)


@pytest.mark.no_library
def test_recipes_name_files_that_are_there():
    """Those of the thing that is added have NAME in their path. Tables that another file may hold are not checked."""
    for title in re.findall(r"^## (A .*)$", GUIDE, re.M):
        for path in files_of(steps_of(title)):
            assert "toy" in path or (ROOT / path).exists(), f"{title}: {path}"


def commands_of(target):
    """How the build makes a target: (compile commands by source, link command of the command line)."""
    if not (BUILD / "compile_commands.json").exists():
        pytest.skip(f"{BUILD} is no build tree")
    compiled = {entry["file"]: shlex.split(entry["command"]) for entry in
                json.loads((BUILD / "compile_commands.json").read_text())}
    link_file = BUILD / "CMakeFiles" / "cogpu_cli.dir" / "link.txt"
    if link_file.exists():
        link = link_file.read_text()
    else:
        link = subprocess.run(["ninja", "-C", BUILD, "-t", "commands", target], capture_output=True, text=True,
                              check=True).stdout.splitlines()[-1]
    words = [word for word in shlex.split(link) if word not in (":", "&&")]
    return compiled, words


def compile_from(folder, source, command):
    """The build's own command for a source of the same kind, with sources, headers and output elsewhere."""
    words, skip = [], False
    for word in command:
        if skip or word == "ccache":
            skip = False
        elif word in ("-o", "-c", "-MT", "-MF"):
            skip = True
        elif word == "-MD":
            continue
        else:
            words.append(word.replace(f"-I{ROOT}/", f"-I{folder}/"))
    out = folder / f"{pathlib.Path(source).name}.o"
    subprocess.run([*words, "-Werror", "-c", folder / source, "-o", out], check=True)
    return out


def edit(path, before, added):
    text = path.read_text()
    assert text.count(before) == 1, before
    path.write_text(text.replace(before, added + before))


def add_codec(folder):
    files = files_of(steps_of("A new codec"))
    assert files[:3] == ["src/codec/codec_toy.c", "src/codec/codec.h", "src/codec/codec.c"]
    (folder / files[0]).write_text(CODEC_C)
    edit(folder / files[1], "    COMPRESSION_JXL = 52546\n", "    COMPRESSION_TOY = 65000,\n")
    edit(folder / files[1], "/* Called by cogpu_codec_state_close", "cogpu_decode cogpu_decode_toy;\n"
         "extern const cogpu_encoder cogpu_encoder_toy;\n\n")
    edit(folder / files[2], "    LERC(\"lerc\", ", ROW)
    return [files[0], files[2]]


def add_kernels(folder, title, what, texts, declaration, row):
    """The files of a GPU decoder or encoder, and the two that name it."""
    named = [path for path in files_of(steps_of(title)) if path.startswith("src/kernels/toy/toy_")]
    header, table = f"src/kernels/{what}r.h", f"src/kernels/{what}rs.c"
    assert sorted(named) == sorted(texts) and {header, table} <= set(files_of(steps_of(title)))
    for path, text in texts.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(text)
    edit(folder / header, "\n#endif\n", f"\n{declaration}\n")
    edit(folder / table, "    default:\n", f"    case COMPRESSION_TOY:\n        return &{row};\n")
    return [*(path for path in texts if not path.endswith(".h")), table]


def add_store(folder):
    files = files_of(steps_of("A new store"))
    assert files[0] == "src/io/store/store_toy.c" and "src/io/store/store.c" in files[:4]
    (folder / files[0]).write_text(STORE_C)
    edit(folder / "src/io/store/store.h", "\n#endif\n", "extern const cogpu_store_kind cogpu_store_toy;\n")
    edit(folder / "src/io/store/store.c", "&cogpu_store_s3}", "&cogpu_store_toy, ")
    return [files[0], "src/io/store/store.c"]


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    """The command line with the toys: the steps of the recipes, one after the other."""
    compiled, link = commands_of("cogpu")
    folder = tmp_path_factory.mktemp("tree")
    for name in "src", "include":
        shutil.copytree(ROOT / name, folder / name)
    base = "src/kernels/toy/toy_"
    sources = [*add_codec(folder),
               *add_kernels(folder, "A GPU decoder", "decode", {
                   f"{base}decode.cu": DECODE_CU, f"{base}decode_args.h": DECODE_ARGS,
                   f"{base}decode_launch.c": DECODE_LAUNCH}, "extern const cogpu_gpu_decoder cogpu_gpu_toy;",
                   "cogpu_gpu_toy"),
               *add_kernels(folder, "A GPU encoder", "encode", {
                   f"{base}encode.cu": ENCODE_CU, f"{base}encode_args.h": ENCODE_ARGS,
                   f"{base}encode_launch.c": ENCODE_LAUNCH}, "extern const cogpu_gpu_encoder cogpu_gpu_toy_encoder;",
                   "cogpu_gpu_toy_encoder"),
               *add_store(folder)]
    commands = {".c": compiled[str(ROOT / "src/codec/codec.c")],
                ".cu": compiled[str(ROOT / "src/kernels/packbits/packbits_decode.cu")]}
    objects = [compile_from(folder, source, commands[pathlib.Path(source).suffix]) for source in sources]
    archive = shutil.copy(BUILD / "libcogpu.a", folder / "libcogpu.a")
    subprocess.run(["ar", "r", archive, *objects], check=True)
    link[link.index("libcogpu.a")] = str(archive)
    link[link.index("-o") + 1] = str(folder / "cogpu")
    subprocess.run(link, cwd=BUILD, check=True)
    return folder / "cogpu"


def run(program, *words, code=0):
    done = subprocess.run([program, *map(str, words)], capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("dtype, options", [("uint8", []), ("float32", ["--predictor", 3]), ("int16", ["--cog"]),
                                            ("uint16", ["--compression-level", 3, "--interleave", "band"])])
def test_toy_codec_writes_and_reads(toy, tmp_path, dtype, options):
    source, out, back = tmp_path / "a.tif", tmp_path / "b.tif", tmp_path / "c.tif"
    pixels = (np.arange(2 * 300 * 200) % 251).reshape(2, 300, 200).astype(dtype)
    with rasterio.open(source, "w", driver="GTiff", count=2, height=300, width=200, dtype=dtype) as file:
        file.write(pixels)
    run(toy, "convert", source, out, "--codec", "TOY", *options)
    assert json.loads(run(toy, "info", "--json", out))["codec"] == "toy"
    run(toy, "convert", out, back, "--codec", "none")
    with rasterio.open(back) as file:
        assert np.array_equal(file.read(), pixels)


@pytest.mark.slow
def test_toy_codec_is_known_to_help_and_messages(toy, tmp_path):
    assert "webp, toy, lerc" in run(toy, "convert", "--help") and "toy 1 to 3 (2)" in run(toy, "convert", "--help")
    assert re.search(r"65000 +toy +own", run(toy, "devices"))
    source = tmp_path / "a.tif"
    with rasterio.open(source, "w", driver="GTiff", count=1, height=8, width=8, dtype="complex64") as file:
        file.write(np.zeros((1, 8, 8), "complex64"))
    out = tmp_path / "b.tif"
    assert "toy stores no samples of complex64" in run(toy, "convert", source, out, "--codec", "toy", code=2)
    assert "`compression_level` must be between 1 and 3" in run(toy, "convert", source, out, "--codec", "toy", "--compression-level", 9, code=2)
    assert "toy has no quality" in run(toy, "convert", source, out, "--codec", "toy", "--quality", 9, code=2)


@pytest.fixture
def image(tmp_path):
    path, pixels = tmp_path / "image.tif", (np.arange(3 * 300 * 400) % 249).astype("uint8").reshape(3, 300, 400)
    with rasterio.open(path, "w", driver="GTiff", count=3, height=300, width=400, dtype="uint8") as file:
        file.write(pixels)
    return path


def stored_bytes(toy, path):
    return json.loads(run(toy, "bench", path, "--device", "emu", "--json"))["stored_bytes"]


@pytest.mark.slow
def test_toy_kernels_decode_and_encode(toy, image, tmp_path):
    by_cpu, by_gpu = tmp_path / "cpu.tif", tmp_path / "gpu.tif"
    run(toy, "convert", image, by_cpu, "--codec", "toy", "--block", 128)
    run(toy, "convert", image, by_gpu, "--codec", "toy", "--block", 128, "--device", "emu")
    report = json.loads(run(toy, "bench", by_cpu, "--device", "emu", "--json"))
    assert report["device_blocks"] == report["blocks"] == 12
    assert stored_bytes(toy, by_gpu) == stored_bytes(toy, by_cpu) + 12
    sums = {run(toy, "checksum", path, "--device", device).split()[0]
            for path in (image, by_cpu, by_gpu) for device in ("cpu", "emu")}
    assert len(sums) == 1


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.mark.slow
def test_toy_store_is_read(toy, image):
    if json.loads(run(toy, "devices", "--json"))["libraries"]["libcurl"] is None:
        pytest.skip("no libcurl")
    handler = functools.partial(QuietHandler, directory=image.parent)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"toy://{server.server_port}/{image.name}"
        assert run(toy, "checksum", url, "--private-addresses").split()[0] == run(toy, "checksum", image).split()[0]
        server.shutdown()
    assert "https,http,toy,s3" in run(toy, "info", "other://a/b", code=1)
