"""The C API of libcogpu for the tests, with NumPy arrays in place of rasters.

Structs, constants and prototypes are generated from include/cogpu.h when this module is imported
(tools/header_mirror.py); test_mirror.py compares them with what a C compiler says of the header.
"""

import contextlib
import ctypes
import functools
import itertools
import os
import pathlib
import sys
from ctypes import Structure, byref, c_double, c_size_t, c_uint16, c_uint32, c_void_p
from types import SimpleNamespace

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import header_mirror  # noqa: E402

LIBRARY = pathlib.Path(os.environ.get("COGPU_LIB", ROOT / "build" / "libcogpu.so"))

# ---- what the header declares: structs become classes, cogpu_open_options OpenOptions -----------

MIRROR = header_mirror.read(ROOT / "include" / "cogpu.h", ROOT / "include" / "cogpu_distributed.h")
CONSTANTS, STRUCTS = MIRROR.constants, MIRROR.structs
globals().update({struct.__name__: struct for struct in STRUCTS.values()})
PROGRESS = MIRROR.callbacks["cogpu_progress"]
READ, SIZE, CLOSE, READ_MANY = (MIRROR.field("cogpu_source", name) for name in ("read", "size", "close", "read_many"))
WRITE, COMMIT = (MIRROR.field("cogpu_sink", name) for name in ("write", "commit"))
FOUND = MIRROR.functions["cogpu_check"][1][2]

STATUSES = ["OK", "INVALID_ARGUMENT", "OUT_OF_MEMORY", "IO_ERROR", "NOT_TIFF", "CORRUPT", "UNSUPPORTED", "LIMIT_EXCEEDED",
            "DEVICE_ERROR", "NOT_FOUND", "CANCELLED"]
RESAMPLINGS = ["DEFAULT", "NEAREST", "AVERAGE", "RMS", "BILINEAR", "CUBIC", "MODE", "MIN", "MAX", "MEDIAN",
               "CUBICSPLINE", "LANCZOS", "Q1", "Q3", "SUM"]
OVERVIEWS = ["DEFAULT", "NONE", "AUTO", "LISTED"]
BIGTIFF = ["AUTO", "YES", "NO"]
(OK, INVALID_ARGUMENT, OUT_OF_MEMORY, IO_ERROR, NOT_TIFF, CORRUPT, UNSUPPORTED, LIMIT_EXCEEDED, DEVICE_ERROR, NOT_FOUND,
 CANCELLED) = range(11)
STRIPS, TILES = 0, 1
CPU, CUDA, EMU = 0, 1, 2
GPU = CUDA if "cuda" in os.environ.get("COGPU_DEVICES", "") else EMU  # whose kernels the tests run
MASK_NONE, MASK_DIRECTORY, MASK_NODATA, MASK_ALPHA = range(4)  # COGPU_MASK_SOURCE_...
PIXELS, MASK = 0, 1
INVALID, VALID_WITH_WARNINGS, VALID = range(3)
SIDECARS_DEFAULT, SIDECARS_NONE, SIDECARS_ALL = range(3)

# Complex integers have no NumPy type of their own: a pair of fields stands for them.
CI16 = np.dtype([("re", "<i2"), ("im", "<i2")])
CI32 = np.dtype([("re", "<i4"), ("im", "<i4")])
DTYPES = [None] + [np.dtype(t) for t in (
    "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8", CI16, CI32, "c8", "c16")]


# ---- the library -------------------------------------------------------------------------------

class CogpuError(Exception):
    """A status other than COGPU_OK, with the place that the error names."""

    def __init__(self, status, error):
        self.status, self.name = status, STATUSES[status].lower()
        self.directory, self.block, self.offset = error.directory, error.block, error.offset
        self.message = error.message.decode("utf-8", "replace")
        super().__init__(f"{self.name}: {self.message}")


def _load():
    """The library with the types of its functions; None where it has not been built."""
    return MIRROR.declare(ctypes.CDLL(str(LIBRARY))) if LIBRARY.exists() else None


lib = _load()


def _check(status, error):
    if status != OK:
        raise CogpuError(status, error)


def _plain(struct):
    """A struct as Python values: text decoded, nested structs too; pointers are left as they are."""
    values = {}
    for name, _ in struct._fields_:
        if name in ("struct_size", "reserved"):
            continue
        value = getattr(struct, name)
        if isinstance(value, bytes):
            value = value.decode("utf-8", "surrogateescape")
        elif isinstance(value, Structure):
            value = _plain(value)
        elif isinstance(value, ctypes.Array):
            value = list(value)
        values[name] = value
    return SimpleNamespace(**values)


def codecs():
    """TIFF's compression numbers -> cogpu_codec, the first of those that share a number (lerc, lerc_zstd)."""
    found, row = {}, Codec()
    for index in itertools.count():
        if lib.cogpu_codec_info(index, byref(row), None) != OK:
            return found
        found.setdefault(row.compression, _plain(row))


CACHE_DEFAULT = ContextOptions().cache_bytes


class Context:
    """Threads and cached blocks that several reads share."""

    def __init__(self, threads=0, cache_bytes=0, device_bytes=0, use_nvjpeg_hardware=0, network=None):
        self.handle, error = c_void_p(), Error()
        options = ContextOptions(threads, cache_bytes, device_bytes, use_nvjpeg_hardware,
                                 ctypes.pointer(Network(**network)) if network else None)
        _check(lib.cogpu_context_open(byref(options), byref(self.handle), byref(error)), error)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        lib.cogpu_context_close(self.handle)


@functools.cache
def shared_context():
    """One for all reads on devices."""
    return Context(device_bytes=64 << 20)


class File:
    """An open file. Use it as a context manager; the functions raise CogpuError."""

    def __init__(self, opener, *keep):
        self.handle, self._keep, error = c_void_p(), keep, Error()
        _check(opener(byref(self.handle), byref(error)), error)
        self.last_result = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        lib.cogpu_close(self.handle)
        self.handle = c_void_p()

    def _fill(self, struct, function, *arguments):
        value, error = struct(), Error()
        _check(function(self.handle, *arguments, byref(value), byref(error)), error)
        return value

    def info(self, image=0):
        raw = self._fill(Image, lib.cogpu_image_info, image)
        info = _plain(raw)
        info.dtype = DTYPES[info.type]
        info.palette = raw.palette[:3 * raw.palette_entries] if raw.palette else None
        info.images = lib.cogpu_image_count(self.handle)
        info.nodata = self.band(1, image).nodata
        info.gcps = [_plain(self._fill(Gcp, lib.cogpu_gcp_info, image, i)) for i in range(raw.gcp_count)]
        info.rpc = raw.rpc[:92] if raw.rpc else None
        info.warning = info.warning or ""
        return info

    def sidecars(self):
        """Paths of the sidecars in use."""
        paths = []
        while (path := lib.cogpu_sidecar_path(self.handle, len(paths))) is not None:
            paths.append(path.decode("utf-8", "surrogateescape"))
        return paths

    def level(self, level, image=0):
        return _plain(self._fill(Level, lib.cogpu_level_info, image, level))

    def levels(self, image=0):
        return [self.level(i, image) for i in range(self.info(image).levels)]

    def band(self, band, image=0):
        """Its nodata fields are one object."""
        found = _plain(self._fill(Band, lib.cogpu_band_info, image, band))
        found.nodata = SimpleNamespace(text=found.nodata, matches=found.nodata_matches, value=found.nodata_value,
                                       i64=found.nodata_i64, u64=found.nodata_u64)
        return found

    def item(self, index, image=0):
        return _plain(self._fill(MetadataItem, lib.cogpu_metadata_info, image, index))

    def items(self, image=0):
        return [self.item(i, image) for i in range(self.info(image).metadata_count)]

    def geokeys(self, image=0):
        """Key id -> its numbers as a list, or its text."""
        keys = {}
        for index in range(self.info(image).geokey_count):
            key = self._fill(Geokey, lib.cogpu_geokey_info, image, index)
            values = [lambda k: k.shorts[:k.count], lambda k: k.doubles[:k.count],
                      lambda k: k.text.decode("utf-8", "replace")]
            keys[key.id] = values[key.kind](key)
        return keys

    def crs(self, image=0):
        return _plain(self._fill(Crs, lib.cogpu_crs_info, image))

    def wkt(self, image=0):
        needed, error = c_size_t(), Error()
        status = lib.cogpu_crs_wkt(self.handle, image, None, None, 0, byref(needed), byref(error))
        _check(status, error)
        text = ctypes.create_string_buffer(needed.value)
        status = lib.cogpu_crs_wkt(self.handle, image, None, text, needed.value, byref(needed),
                                   byref(error))
        _check(status, error)
        return text.value.decode("utf-8", "replace")

    def directory(self, index):
        return _plain(self._fill(Directory, lib.cogpu_directory_info, index))

    def tags(self, directory=0):
        """Tag id -> cogpu_tag, in file order."""
        count = self.directory(directory).tag_count
        rows = (self._fill(Tag, lib.cogpu_tag_info, directory, i) for i in range(count))
        return {row.id: row for row in map(_plain, rows)}

    def tag_read(self, directory, tag, first, count, dtype):
        """Elements of a tag; `dtype` is the NumPy type of one element (of a part, for a RATIONAL)."""
        values, error = np.zeros(count, dtype), Error()
        _check(lib.cogpu_tag_read(self.handle, directory, tag, first, count,
                                  values.ctypes.data_as(c_void_p), byref(error)), error)
        return values

    def request(self, *, window=None, level=0, bands=None, image=0, content=PIXELS, threads=0,
                fill_bad_blocks=False, masked=False, unscale=False, context=None, progress=None):
        """`progress` is called with done and total, and returns whether to cancel."""
        x, y, width, height = window or (0, 0, 0, 0)
        picked = (c_uint32 * len(bands))(*bands) if bands is not None else None
        return Request(image, level, x, y, width, height, picked, len(bands) if bands else 0, content,
                       int(fill_bad_blocks), int(masked), int(unscale), threads,
                       context.handle if context else None,
                       PROGRESS(lambda _, done, total: int(bool(progress(done, total)))) if progress else PROGRESS())

    def shape(self, request):
        """Bands, height and width of what a request returns."""
        info = self.info(request.image)
        level = self.level(request.level, request.image)
        bands = request.band_count or info.bands
        return bands, request.height or level.height - request.y, request.width or level.width - request.x

    def empty(self, request, dtype=None):
        """A packed array for the request, filled with what no reader would leave behind."""
        dtype = dtype or (np.dtype("u1") if request.content == MASK else self.info(request.image).dtype)
        array = np.empty(self.shape(request), dtype)
        array.view("u1").fill(0xA5)
        return array

    def read(self, out=None, device=CPU, dtype=None, **request):
        """Pixels as (bands, height, width). `out` may be any view of that shape, strides and all;
        without it `dtype` says to which floats samples are converted."""
        if device != CPU:
            request = {"context": shared_context()} | request
        wanted = self.request(**request)
        out = self.empty(wanted, dtype) if out is None else out
        result, error = Result(), Error()
        with placed(out, device) as raster:
            status = lib.cogpu_read(self.handle, byref(wanted), byref(raster), byref(result),
                                    byref(error))
        self.last_result = _plain(result)
        _check(status, error)
        return out

    def check(self, strict=False, skip_blocks=False, progress=None):
        """(cogpu_checked, [cogpu_finding, ...]). `progress` takes blocks done and in all; a true result cancels."""
        findings, checked, error = [], Checked(), Error()

        def found(_, finding):
            findings.append(_plain(finding.contents))

        told = PROGRESS(lambda _, done, total: int(bool(progress(done, total)))) if progress else PROGRESS()
        options = CheckOptions(int(strict), int(skip_blocks), told, None)
        _check(lib.cogpu_check(self.handle, byref(options), FOUND(found), None, byref(checked),
                               byref(error)), error)
        return _plain(checked), findings

    def mask(self, band=1, **request):
        """The mask of a band as (height, width): 255 valid, 0 not."""
        return self.read(content=MASK, bands=[band], **request)[0]


def raster_of(array):
    bands, height, width = array.shape
    kind = DTYPES.index(array.dtype, 1)  # NumPy takes None, the first, for float64
    return Raster(array.ctypes.data, kind, bands, height, width, *array.strides)


@contextlib.contextmanager
def placed(array, device):
    """A raster in the device memory that has the array's bytes before and gives them back after.
    The emulated device's memory is the host's."""
    raster = raster_of(array)
    raster.device = device
    if device != CUDA:
        yield raster
        return
    low, high = np.lib.array_utils.byte_bounds(array)
    context, memory, error = shared_context().handle, c_void_p(), Error()
    _check(lib.cogpu_device_allocate(context, device, 0, high - low, byref(memory), byref(error)), error)
    try:
        _check(lib.cogpu_device_upload(context, device, 0, low, high - low, memory, byref(error)), error)
        raster.data = memory.value + array.ctypes.data - low
        yield raster
        _check(lib.cogpu_device_download(context, device, 0, memory, high - low, low, byref(error)), error)
    finally:
        lib.cogpu_device_free(context, device, 0, memory)


def limited(**limits):
    """Options of `open` with these limits."""
    return OpenOptions(limits=ctypes.pointer(Limits(**limits)))


def open(path, options=None):
    return File(lambda file, error: lib.cogpu_open(os.fsencode(path), options, file, error))


def open_memory(data, options=None):
    room = ctypes.create_string_buffer(data, max(len(data), 1))
    return File(lambda file, error: lib.cogpu_open_memory(room, len(data), options, file, error),
                room)


def open_source(read, size, close=None, options=None):
    """read(offset, bytes) -> bytes or a status; size() -> int or, wrapped in a tuple, a status."""

    def c_read(_, offset, wanted, to, got):
        data = read(offset, wanted)
        if isinstance(data, int):
            return data
        ctypes.memmove(to, data, len(data))
        got[0] = len(data)
        return OK

    def c_size(_, to):
        length = size()
        if isinstance(length, tuple):
            return length[0]
        to[0] = length
        return OK

    source = Source(None, READ(c_read), SIZE(c_size),
                    CLOSE(lambda _: close()) if close else CLOSE(), READ_MANY())
    return File(lambda file, error: lib.cogpu_open_source(byref(source), options, file, error),
                source)


def read_many(requests, context=None, device=CPU, dtype=None):
    """[(file, {request}), ...] -> [(status, array), ...] and the CogpuError of the call, or None."""
    items, arrays, error = (ReadItem * len(requests))(*(ReadItem() for _ in requests)), [], Error()
    with contextlib.ExitStack() as stack:
        for item, (file, request) in zip(items, requests):
            item.file, item.request = file.handle, ctypes.pointer(file.request(**request))
            arrays.append(file.empty(item.request.contents, dtype))
            item.raster = ctypes.pointer(stack.enter_context(placed(arrays[-1], device)))
        status = lib.cogpu_read_many(items, len(requests), context.handle if context else None,
                                     byref(error))
    failure = CogpuError(status, error) if status != OK else None
    return [(item.status, array) for item, array in zip(items, arrays)], failure


# ---- writing -----------------------------------------------------------------------------------

def text(value):
    return value.encode() if isinstance(value, str) else value


def array_of(kind, values):
    """A C array, or NULL without values."""
    return (kind * len(values))(*values) if values is not None and len(values) else None


def profile_of(array, **options):
    """The profile for (bands, height, width) with options by the header's names; enumerations by their
    names in small letters, lists as lists, metadata as (name, value, domain, role, band), tags as
    (id, type, array)."""
    bands, height, width = array.shape
    profile = Profile(width, height, bands, DTYPES.index(array.dtype, 1))
    lists = {"gcps": ("gcp_count", Gcp), "overview_factors": ("overview_factor_count", c_uint32), "rpc": (None, c_double),
             "geokeys": ("geokey_count", Geokey), "palette": ("palette_entries", c_uint16)}
    names = {"resampling": RESAMPLINGS, "overviews": OVERVIEWS, "bigtiff": BIGTIFF, "interleave": ["PIXEL", "BAND"]}
    for name, value in options.items():
        if name == "transform":
            profile.has_transform, profile.transform = 1, (c_double * 6)(*value)
        elif name == "metadata":
            rows = [MetadataItem(text(domain), text(key), text(words), text(role), band)
                    for key, words, domain, role, band in value]
            profile.metadata, profile.metadata_count = array_of(MetadataItem, rows), len(rows)
        elif name == "tags":
            rows = [ExtraTag(number, kind, len(values), values.ctypes.data) for number, kind, values in value]
            profile.tags, profile.tag_count = array_of(ExtraTag, rows), len(rows)
        elif name in lists:
            count, kind = lists[name]
            setattr(profile, name, array_of(kind, value))
            if count:
                setattr(profile, count, len(value) // (3 if name == "palette" else 1))
        elif name in names and isinstance(value, str):
            setattr(profile, name, names[name].index(value.upper()))
        elif name == "context":
            profile.context = value.handle
        else:
            setattr(profile, name, text(value))
    return profile


class Writer:
    """A writer to a path, to memory (without one), or to write(offset, bytes) -> status or None."""

    def __init__(self, profile, path=None, write=None, commit=None, abort=None, append_only=False):
        self.memory, self.sink, error = Memory(), Sink(append_only=append_only), Error()
        if path is not None:
            self.sink.path = os.fsencode(path)
        elif write is None:
            self.sink.memory = ctypes.pointer(self.memory)
        else:
            self.sink.write = WRITE(lambda _, at, data, size: write(at, ctypes.string_at(data, size)) or OK)
            self.sink.commit = COMMIT(lambda _: commit() or OK) if commit else COMMIT()
            self.sink.abort = CLOSE(lambda _: abort()) if abort else CLOSE()
        self.handle = c_void_p()
        _check(lib.cogpu_writer_open(byref(self.sink), byref(profile), byref(self.handle), byref(error)), error)

    def push(self, array, mask=None, device=CPU):
        error = Error()
        with placed(array, device) as raster, placed(mask[None], device) if mask is not None else \
                contextlib.nullcontext() as masks:
            _check(lib.cogpu_writer_write_rows(self.handle, byref(raster), byref(masks) if masks else None, byref(error)),
                   error)

    def close(self):
        """The file's bytes where they went to memory."""
        written, error = Written(), Error()
        handle, self.handle = self.handle, None
        _check(lib.cogpu_writer_close(handle, byref(written), byref(error)), error)
        self.written = _plain(written)
        data = ctypes.string_at(self.memory.data, self.memory.bytes) if self.memory.data else None
        lib.cogpu_memory_free(byref(self.memory))
        return data

    def abort(self):
        lib.cogpu_writer_abort(self.handle)


def write(array, mask=None, chunks=None, path=None, lies=CPU, **options):
    """The bytes of a file (None for one with a path), pushed in chunks of these heights from where they lie."""
    options |= {"mask": int(mask is not None)}
    if lies != CPU or options.get("device"):
        options = {"context": shared_context()} | options
    writer = Writer(profile_of(array, **options), path)
    height, first = array.shape[1], 0
    try:
        for rows in chunks or [height]:
            part = slice(first, first + rows)
            writer.push(array[:, part], mask[part] if mask is not None else None, lies)
            first += rows
    except CogpuError:
        writer.abort()
        raise
    return writer.close()
