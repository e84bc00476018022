"""The C API of libcogpu for the tests: takes paths, bytes or callbacks, hands on NumPy arrays.

It mirrors the structs of include/cogpu.h field by field; test_mirror.py compares the mirror with what
a C compiler says of the header, so that the two cannot drift apart.
"""

import contextlib
import ctypes
import functools
import os
import pathlib
from ctypes import (
    CFUNCTYPE, POINTER, Structure, byref, c_char, c_char_p, c_double, c_int, c_int32, c_int64,
    c_size_t,
    c_uint16, c_uint32, c_uint64, c_void_p,
)
from types import SimpleNamespace

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIBRARY = pathlib.Path(os.environ.get("COGPU_LIB", ROOT / "build" / "libcogpu.so"))

# ---- constants: C name -> value; the values are compared with the header -----------------------

STATUSES = ["OK", "ARGUMENT", "MEMORY", "IO", "FORMAT", "CORRUPT", "UNSUPPORTED", "LIMIT", "DEVICE",
            "ABSENT", "CANCELLED"]
TYPES = ["TYPE_NONE", "U8", "I8", "U16", "I16", "U32", "I32", "U64", "I64", "F16", "F32", "F64",
         "CI16",
         "CI32", "CF32", "CF64"]
CONSTANTS = {f"COGPU_{name}": value for names in (STATUSES, TYPES) for value,
             name in enumerate(names)}
CONSTANTS |= {
    "COGPU_STRIPS": 0, "COGPU_TILES": 1, "COGPU_CPU": 0, "COGPU_CUDA": 1, "COGPU_EMU": 2,
    "COGPU_ALL_VALID": 0, "COGPU_BY_MASK": 1, "COGPU_BY_NODATA": 2, "COGPU_BY_ALPHA": 3,
    "COGPU_KEY_SHORT": 0, "COGPU_KEY_DOUBLE": 1, "COGPU_KEY_TEXT": 2,
    "COGPU_PIXELS": 0, "COGPU_MASK": 1,
    "COGPU_GHOST_PRESENT": 1, "COGPU_GHOST_IFDS_BEFORE_DATA": 2, "COGPU_GHOST_ROW_MAJOR": 4,
    "COGPU_GHOST_LEADER": 8, "COGPU_GHOST_TRAILER": 16, "COGPU_GHOST_MASK_INTERLEAVED": 32,
    "COGPU_MIN_IS_BLACK": 1, "COGPU_RGB": 2, "COGPU_PALETTE": 3, "COGPU_CMYK": 5, "COGPU_YCBCR": 6,
    "COGPU_CIELAB": 8, "COGPU_MIN_IS_WHITE": 256, "COGPU_PHOTOMETRIC_DEFAULT": 0,
    "COGPU_GHOST_BROKEN": 64, "COGPU_GHOST_TILE_INTERLEAVED": 128,
    "COGPU_NOTE": 1, "COGPU_WARNING": 2, "COGPU_FAULT": 3,
    "COGPU_SAYS_GDAL": 1, "COGPU_SAYS_RIO_COGEO": 2, "COGPU_SAYS_OGC": 4,
    "COGPU_INVALID": 0, "COGPU_VALID_WITH_WARNINGS": 1, "COGPU_VALID": 2,
}
RESAMPLINGS = ["RESAMPLE_DEFAULT", "NEAREST", "AVERAGE", "RMS", "BILINEAR", "CUBIC", "MODE", "MIN", "MAX", "MEDIAN"]
OVERVIEWS = ["DEFAULT", "NONE", "AUTO", "LISTED"]
BIGTIFF = ["AUTO", "YES", "NO"]
SIDECARS = ["DEFAULT", "NONE", "ALL"]
CONSTANTS |= {f"COGPU_{name}": value for value, name in enumerate(RESAMPLINGS)}
CONSTANTS |= {f"COGPU_OVERVIEWS_{name}": value for value, name in enumerate(OVERVIEWS)}
CONSTANTS |= {f"COGPU_BIGTIFF_{name}": value for value, name in enumerate(BIGTIFF)}
CONSTANTS |= {f"COGPU_SIDECARS_{name}": value for value, name in enumerate(SIDECARS)}
OK, ARGUMENT, MEMORY, IO, FORMAT, CORRUPT, UNSUPPORTED, LIMIT, DEVICE, ABSENT, CANCELLED = range(11)
STRIPS, TILES = 0, 1
CPU, CUDA, EMU = 0, 1, 2
GPU = CUDA if "cuda" in os.environ.get("COGPU_DEVICES", "") else EMU  # whose kernels the tests run
ALL_VALID, BY_MASK, BY_NODATA, BY_ALPHA = range(4)
PIXELS, MASK = 0, 1
SIDECARS_DEFAULT, SIDECARS_NONE, SIDECARS_ALL = range(3)

# Complex integers have no NumPy type of their own: a pair of fields stands for them.
CI16 = np.dtype([("re", "<i2"), ("im", "<i2")])
CI32 = np.dtype([("re", "<i4"), ("im", "<i4")])
DTYPES = [None] + [np.dtype(t) for t in (
    "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8", CI16, CI32, "c8", "c16")]


# ---- structs -----------------------------------------------------------------------------------

class Error(Structure):
    _fields_ = [("status", c_int), ("directory", c_int32), ("block", c_int64), ("offset", c_int64),
                ("message", c_char * 232)]


class Limits(Structure):
    _fields_ = [(name, c_uint64) for name in (
        "directories", "tags", "tag_bytes", "blocks", "block_bytes", "bands", "call_bytes")]


class Network(Structure):
    _fields_ = [("connections", c_uint32), ("requests", c_uint32), ("header_bytes", c_uint64),
                ("gap_bytes", c_uint64), ("request_bytes", c_uint64), ("held_bytes", c_uint64),
                ("whole_bytes", c_uint64), ("retries", c_uint32), ("connect_seconds", c_double),
                ("stall_seconds", c_double), ("least_bytes", c_uint32), ("total_seconds", c_double),
                ("header_seconds", c_double), ("private_addresses", c_int), ("link_local_addresses", c_int),
                ("private_hosts", c_char_p), ("schemes", c_char_p), ("ca_file", c_char_p),
                ("s3_region", c_char_p), ("s3_endpoint", c_char_p), ("s3_profile", c_char_p),
                ("s3_access_key", c_char_p), ("s3_secret_key", c_char_p),
                ("s3_session_token", c_char_p), ("s3_anonymous", c_int)]


class OpenOptions(Structure):
    _fields_ = [("limits", Limits), ("sidecars", c_int), ("context", c_void_p)]


READ = CFUNCTYPE(c_int, c_void_p, c_uint64, c_size_t, c_void_p, POINTER(c_size_t))
SIZE = CFUNCTYPE(c_int, c_void_p, POINTER(c_uint64))
CLOSE = CFUNCTYPE(None, c_void_p)


class SourceRead(Structure):
    _fields_ = [("offset", c_uint64), ("bytes", c_size_t), ("to", c_void_p)]


READ_MANY = CFUNCTYPE(c_int, c_void_p, POINTER(SourceRead), c_size_t)


class Source(Structure):
    _fields_ = [("user", c_void_p), ("read", READ), ("size", SIZE), ("close", CLOSE), ("read_many", READ_MANY)]


class Nodata(Structure):
    _fields_ = [("text", c_char_p), ("matches", c_int), ("value", c_double), ("i64", c_int64),
                ("u64", c_uint64)]


class Gcp(Structure):
    _fields_ = [*((name, c_double) for name in ("column", "row", "level", "x", "y", "z")), ("id", c_char_p),
                ("info", c_char_p)]


class Image(Structure):
    _fields_ = [
        ("images", c_uint32), ("directory", c_uint32), ("width", c_uint32), ("height", c_uint32),
        ("bands", c_uint32), ("type", c_int), ("bits", c_uint32), ("levels", c_uint32),
        ("layout", c_int), ("block_width", c_uint32), ("block_height", c_uint32),
        ("blocks", c_uint64), ("planar", c_int), ("compression", c_uint32), ("codec", c_char_p),
        ("predictor", c_uint32), ("photometric", c_uint32), ("orientation", c_uint32),
        ("fill_order", c_uint32), ("big_endian", c_int), ("bigtiff", c_int), ("ghost", c_uint32),
        ("description", c_char_p), ("validity", c_int), ("nodata", Nodata),
        ("alpha_band", c_uint32), ("premultiplied", c_int), ("palette", POINTER(c_uint16)),
        ("palette_entries", c_uint32), ("has_transform", c_int), ("transform", c_double * 6),
        ("pixel_is_point", c_int), ("gcps", POINTER(Gcp)), ("gcp_count", c_uint32),
        ("rpc", POINTER(c_double)), ("geokeys", c_uint32), ("items", c_uint32),
        ("warning", c_char_p)]


class Level(Structure):
    _fields_ = [
        ("directory", c_uint32), ("external", c_int), ("width", c_uint32), ("height", c_uint32),
        ("layout", c_int), ("block_width", c_uint32), ("block_height", c_uint32),
        ("blocks", c_uint64), ("compression", c_uint32), ("codec", c_char_p),
        ("predictor", c_uint32), ("has_mask", c_int), ("mask_external", c_int),
        ("mask_directory", c_uint32),
        ("has_transform", c_int), ("transform", c_double * 6)]


class Band(Structure):
    _fields_ = [("description", c_char_p), ("unit", c_char_p), ("interpretation", c_char_p),
                ("scale", c_double), ("offset", c_double), ("has_scale", c_int), ("nodata", Nodata)]


class Item(Structure):
    _fields_ = [("domain", c_char_p), ("name", c_char_p), ("value", c_char_p), ("role", c_char_p),
                ("band", c_int32)]


class Geokey(Structure):
    _fields_ = [("id", c_uint32), ("name", c_char_p), ("kind", c_int), ("count", c_uint32),
                ("shorts", POINTER(c_uint16)), ("doubles", POINTER(c_double)), ("text", c_char_p)]


class Crs(Structure):
    _fields_ = [("model", c_char_p), ("authority", c_char_p), ("code", c_uint32),
                ("vertical", c_uint32), ("name", c_char_p), ("epoch", c_double), ("external", c_int)]


class Directory(Structure):
    _fields_ = [("directories", c_uint32), ("offset", c_uint64), ("tags", c_uint32),
                ("parent", c_int32), ("subfile_type", c_uint32)]


class Tag(Structure):
    _fields_ = [("id", c_uint32), ("name", c_char_p), ("type", c_uint32), ("count", c_uint64),
                ("value_offset", c_uint64), ("bytes", c_uint64)]


class Raster(Structure):
    _fields_ = [("data", c_void_p), ("type", c_int), ("bands", c_uint32), ("height", c_uint32),
                ("width", c_uint32), ("stride_band", c_int64), ("stride_y", c_int64),
                ("stride_x", c_int64), ("device", c_int), ("device_index", c_uint32),
                ("stream", c_void_p)]


class ContextOptions(Structure):
    _fields_ = [("threads", c_uint32), ("cache_bytes", c_uint64), ("device_bytes", c_uint64),
                ("jpeg_engines", c_int), ("network", POINTER(Network))]


PROGRESS = CFUNCTYPE(c_int, c_void_p, c_uint64, c_uint64)


class Request(Structure):
    _fields_ = [("image", c_uint32), ("level", c_uint32), ("x", c_uint32), ("y", c_uint32),
                ("width", c_uint32), ("height", c_uint32), ("bands", POINTER(c_uint32)),
                ("band_count", c_uint32), ("part", c_int), ("fill_bad_blocks", c_int),
                ("nan_where_invalid", c_int), ("scaled", c_int), ("threads", c_uint32),
                ("context", c_void_p), ("pending", c_void_p), ("progress", PROGRESS), ("progress_user", c_void_p)]


class Stages(Structure):
    _fields_ = [(name, c_double) for name in ("fetch", "copy", "decode", "place")]


class Result(Structure):
    _fields_ = [("blocks", c_uint64), ("sparse_blocks", c_uint64), ("bad_blocks", c_uint64),
                ("cached_blocks", c_uint64), ("device_blocks", c_uint64), ("late_blocks", c_uint64),
                ("bytes_read", c_uint64), ("direct_bytes", c_uint64), ("stages", Stages), ("first_bad", Error)]


class ReadItem(Structure):
    _fields_ = [("file", c_void_p), ("request", Request), ("raster", Raster), ("result", Result),
                ("status", c_int)]


class Memory(Structure):
    _fields_ = [("data", c_void_p), ("bytes", c_size_t)]


WRITE = CFUNCTYPE(c_int, c_void_p, c_uint64, c_void_p, c_size_t)
COMMIT = CFUNCTYPE(c_int, c_void_p)


class Sink(Structure):
    _fields_ = [("path", c_char_p), ("keep_sidecars", c_int), ("no_replace", c_int), ("inputs", POINTER(c_char_p)),
                ("input_count", c_uint32), ("memory", POINTER(Memory)), ("buffer", c_void_p),
                ("buffer_bytes", c_size_t), ("user", c_void_p), ("write", WRITE), ("commit", COMMIT), ("abort", CLOSE), ("append_only", c_int)]


class Resample(Structure):
    _fields_ = [("method", c_int), ("type", c_int), ("bands", c_uint32), ("from_width", c_uint32), ("from_height", c_uint32),
                ("width", c_uint32), ("height", c_uint32), ("nodata", c_char_p), ("alpha_band", c_uint32), ("mask", c_int)]


class ExtraTag(Structure):
    _fields_ = [("id", c_uint32), ("type", c_uint32), ("count", c_uint64), ("values", c_void_p)]


class Profile(Structure):
    _fields_ = [
        ("width", c_uint32), ("height", c_uint32), ("bands", c_uint32), ("type", c_int), ("cog", c_int),
        ("strips", c_int), ("block_width", c_uint32), ("block_height", c_uint32), ("planar", c_int),
        ("codec", c_char_p), ("level", c_int), ("quality", c_int), ("lossless", c_int),
        ("max_error", c_double), ("predictor", c_int), ("bits", c_uint32), ("bigtiff", c_int), ("sparse", c_int),
        ("nodata", c_char_p), ("nan_is_nodata", c_int), ("photometric", c_int), ("alpha_band", c_uint32), ("premultiplied", c_int),
        ("palette", POINTER(c_uint16)), ("palette_entries", c_uint32), ("mask", c_int),
        ("has_transform", c_int), ("transform", c_double * 6), ("pixel_is_point", c_int),
        ("gcps", POINTER(Gcp)), ("gcp_count", c_uint32), ("rpc", POINTER(c_double)), ("crs", c_char_p),
        ("geokeys", POINTER(Geokey)), ("geokey_count", c_uint32), ("epoch", c_double), ("items", POINTER(Item)),
        ("item_count", c_uint32), ("description", c_char_p), ("tags", POINTER(ExtraTag)),
        ("tag_count", c_uint32), ("overviews", c_int), ("factors", POINTER(c_uint32)),
        ("factor_count", c_uint32), ("resampling", c_int), ("threads", c_uint32), ("context", c_void_p),
        ("device", c_int), ("device_index", c_uint32), ("progress", PROGRESS), ("progress_user", c_void_p)]


class Written(Structure):
    _fields_ = [("bytes", c_uint64), ("direct_bytes", c_uint64), ("blocks", c_uint64),
                ("sparse_blocks", c_uint64), ("levels", c_uint32), ("bigtiff", c_int)]


class Outline(Structure):
    _fields_ = [("levels", c_uint32), ("width", c_uint32), ("height", c_uint32), ("block_width", c_uint32),
                ("block_height", c_uint32), ("blocks", c_uint64), ("most_bytes", c_uint64)]


class S3Part(Structure):
    _fields_ = [("number", c_uint32), ("etag", c_char * 128)]


class Window(Structure):
    _fields_ = [("x", c_uint32), ("y", c_uint32), ("width", c_uint32), ("height", c_uint32)]


class Codec(Structure):
    _fields_ = [("compression", c_uint32), ("name", c_char_p), ("library", c_char_p),
                ("available", c_int)]


class Device(Structure):
    _fields_ = [("kind", c_int), ("index", c_uint32), ("name", c_char * 16),
                ("description", c_char * 160)]


FOUND = CFUNCTYPE(None, c_void_p, c_void_p)
INVALID, VALID_WITH_WARNINGS, VALID = range(3)


class Finding(Structure):
    _fields_ = [("severity", c_int), ("rule", c_char_p), ("advice", c_char_p), ("who", c_uint32),
                ("directory", c_int32), ("block", c_int64), ("offset", c_int64),
                ("more", c_uint64), ("message", c_char * 232)]


PROGRESS = CFUNCTYPE(c_int, c_void_p, c_uint64, c_uint64)


class CheckOptions(Structure):
    _fields_ = [("strict", c_int), ("skip_blocks", c_int), ("progress", PROGRESS), ("progress_user", c_void_p)]


class Checked(Structure):
    _fields_ = [("verdict", c_int), ("gdal", c_int), ("rio_cogeo", c_int), ("ogc", c_int),
                ("faults", c_uint64), ("warnings", c_uint64), ("notes", c_uint64),
                ("blocks", c_uint64)]


STRUCTS = {
    "cogpu_error": Error, "cogpu_limits": Limits, "cogpu_network": Network,
    "cogpu_open_options": OpenOptions, "cogpu_source_read": SourceRead, "cogpu_source": Source, "cogpu_nodata": Nodata, "cogpu_gcp": Gcp, "cogpu_image": Image,
    "cogpu_level": Level, "cogpu_band": Band, "cogpu_item": Item, "cogpu_geokey": Geokey,
    "cogpu_crs": Crs, "cogpu_directory": Directory, "cogpu_tag": Tag, "cogpu_raster": Raster,
    "cogpu_context_options": ContextOptions, "cogpu_request": Request, "cogpu_stages": Stages,
    "cogpu_result": Result,
    "cogpu_read_item": ReadItem, "cogpu_codec": Codec, "cogpu_device": Device,
    "cogpu_memory": Memory, "cogpu_sink": Sink, "cogpu_resample": Resample, "cogpu_extra_tag": ExtraTag, "cogpu_profile": Profile,
    "cogpu_written": Written, "cogpu_outline": Outline, "cogpu_s3_part": S3Part, "cogpu_window": Window,
    "cogpu_finding": Finding, "cogpu_check_options": CheckOptions, "cogpu_checked": Checked,
}


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
    if not LIBRARY.exists():
        return None
    library = ctypes.CDLL(str(LIBRARY))
    file, error = c_void_p, POINTER(Error)

    def declare(name, *arguments, result=c_int):
        function = getattr(library, name)
        function.argtypes, function.restype = arguments, result

    declare("cogpu_version", result=c_char_p)
    declare("cogpu_status_name", c_int, result=c_char_p)
    declare("cogpu_type_bytes", c_int, result=c_size_t)
    declare("cogpu_type_name", c_int, result=c_char_p)
    declare("cogpu_proj_version", result=c_char_p)
    declare("cogpu_curl_version", result=c_char_p)
    device = (c_void_p, c_int, c_uint32)
    declare("cogpu_device_allocate", *device, c_uint64, POINTER(c_void_p), error)
    declare("cogpu_device_release", *device, c_void_p, result=None)
    for name in "upload", "download":
        declare(f"cogpu_device_{name}", *device, c_void_p, c_uint64, c_void_p, error)
    declare("cogpu_open", c_char_p, POINTER(OpenOptions), POINTER(file), error)
    declare("cogpu_open_memory", c_void_p, c_size_t, POINTER(OpenOptions), POINTER(file), error)
    declare("cogpu_open_source", POINTER(Source), POINTER(OpenOptions), POINTER(file), error)
    declare("cogpu_state", file, result=c_char_p)
    declare("cogpu_sidecar_path", file, c_uint32, result=c_char_p)
    declare("cogpu_close", file, result=None)
    for name, struct in (("level", Level), ("band", Band), ("item", Item), ("geokey", Geokey)):
        declare(f"cogpu_{name}_info", file, c_uint32, c_uint32, POINTER(struct), error)
    declare("cogpu_info", file, c_uint32, POINTER(Image), error)
    declare("cogpu_crs_info", file, c_uint32, POINTER(Crs), error)
    declare("cogpu_crs_wkt", file, c_uint32, c_void_p, c_void_p, c_size_t, POINTER(c_size_t), error)
    declare("cogpu_directory_info", file, c_uint32, POINTER(Directory), error)
    declare("cogpu_tag_info", file, c_uint32, c_uint32, POINTER(Tag), error)
    declare("cogpu_tag_read", file, c_uint32, c_uint32, c_uint64, c_uint64, c_void_p, error)
    declare("cogpu_context_open", POINTER(ContextOptions), POINTER(c_void_p), error)
    declare("cogpu_context_close", c_void_p, result=None)
    declare("cogpu_read", file, POINTER(Request), POINTER(Raster), POINTER(Result), error)
    declare("cogpu_read_many", POINTER(ReadItem), c_size_t, c_void_p, error)
    declare("cogpu_writer_open", POINTER(Sink), POINTER(Profile), POINTER(c_void_p), error)
    declare("cogpu_writer_push", c_void_p, POINTER(Raster), POINTER(Raster), error)
    declare("cogpu_writer_close", c_void_p, POINTER(Written), error)
    declare("cogpu_writer_abort", c_void_p, result=None)
    declare("cogpu_write", POINTER(Sink), POINTER(Profile), POINTER(Raster), POINTER(Raster),
            POINTER(Written), error)
    declare("cogpu_memory_release", POINTER(Memory), result=None)
    declare("cogpu_check", file, POINTER(CheckOptions), FOUND, c_void_p, POINTER(Checked), error)
    declare("cogpu_codec_info", c_uint32, POINTER(Codec))
    declare("cogpu_device_info", c_uint32, POINTER(Device))
    return library


lib = _load()


def _check(status, error):
    if status != OK:
        raise CogpuError(status, error)


def _plain(struct):
    """A struct as Python values: text decoded, nested structs too; pointers are left as they are."""
    values = {}
    for name, _ in struct._fields_:
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
    """TIFF's compression numbers -> cogpu_codec, of all that the library knows by name."""
    found, row = {}, Codec()
    while lib.cogpu_codec_info(len(found), byref(row)) == OK:
        plain = _plain(row)
        found[plain.compression] = plain
    return found


class Context:
    """Threads and cached blocks that several reads share."""

    def __init__(self, threads=0, cache_bytes=0, device_bytes=0, jpeg_engines=0, network=None):
        self.handle, error = c_void_p(), Error()
        options = ContextOptions(threads, cache_bytes, device_bytes, jpeg_engines,
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
        raw = self._fill(Image, lib.cogpu_info, image)
        info = _plain(raw)
        info.dtype = DTYPES[info.type]
        info.palette = raw.palette[:3 * raw.palette_entries] if raw.palette else None
        info.gcps = [_plain(raw.gcps[i]) for i in range(raw.gcp_count)]
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
        return _plain(self._fill(Band, lib.cogpu_band_info, image, band))

    def item(self, index, image=0):
        return _plain(self._fill(Item, lib.cogpu_item_info, image, index))

    def items(self, image=0):
        return [self.item(i, image) for i in range(self.info(image).items)]

    def geokeys(self, image=0):
        """Key id -> its numbers as a list, or its text."""
        keys = {}
        for index in range(self.info(image).geokeys):
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
        count = self.directory(directory).tags
        rows = (self._fill(Tag, lib.cogpu_tag_info, directory, i) for i in range(count))
        return {row.id: row for row in map(_plain, rows)}

    def tag_read(self, directory, tag, first, count, dtype):
        """Elements of a tag; `dtype` is the NumPy type of one element (of a part, for a RATIONAL)."""
        values, error = np.zeros(count, dtype), Error()
        _check(lib.cogpu_tag_read(self.handle, directory, tag, first, count,
                                  values.ctypes.data_as(c_void_p), byref(error)), error)
        return values

    def request(self, *, window=None, level=0, bands=None, image=0, part=PIXELS, threads=0,
                fill_bad_blocks=False, nan=False, scaled=False, context=None, progress=None):
        """`progress` is called with done and total, and returns whether to cancel."""
        x, y, width, height = window or (0, 0, 0, 0)
        picked = (c_uint32 * len(bands))(*bands) if bands is not None else None
        return Request(image, level, x, y, width, height, picked, len(bands) if bands else 0, part,
                       int(fill_bad_blocks), int(nan), int(scaled), threads,
                       context.handle if context else None, None,
                       PROGRESS(lambda _, done, total: int(bool(progress(done, total)))) if progress else PROGRESS())

    def shape(self, request):
        """Bands, height and width of what a request returns."""
        info = self.info(request.image)
        level = self.level(request.level, request.image)
        bands = request.band_count or info.bands
        return bands, request.height or level.height - request.y, request.width or level.width - request.x

    def empty(self, request, dtype=None):
        """A packed array for the request, filled with what no reader would leave behind."""
        dtype = dtype or (np.dtype("u1") if request.part == MASK else self.info(request.image).dtype)
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
            findings.append(_plain(Finding.from_address(finding)))

        told = PROGRESS(lambda _, done, total: int(bool(progress(done, total)))) if progress else PROGRESS()
        options = CheckOptions(int(strict), int(skip_blocks), told, None)
        _check(lib.cogpu_check(self.handle, byref(options), FOUND(found), None, byref(checked),
                               byref(error)), error)
        return _plain(checked), findings

    def mask(self, band=1, **request):
        """The mask of a band as (height, width): 255 valid, 0 not."""
        return self.read(part=MASK, bands=[band], **request)[0]


def raster_of(array):
    bands, height, width = array.shape
    kind = DTYPES.index(array.dtype, 1)  # NumPy takes None, the first, for float64
    return Raster(array.ctypes.data, kind, bands, height, width, *array.strides)


@contextlib.contextmanager
def placed(array, device):
    """A raster in the memory of a device that has the array's bytes before and gives them back after.
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
        lib.cogpu_device_release(context, device, 0, memory)


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
    items, arrays, error = (ReadItem * len(requests))(), [], Error()
    with contextlib.ExitStack() as stack:
        for item, (file, request) in zip(items, requests):
            item.file, item.request = file.handle, file.request(**request)
            arrays.append(file.empty(item.request, dtype))
            item.raster = stack.enter_context(placed(arrays[-1], device))
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
    names in small letters, lists as lists, items as (name, value, domain, role, band), tags as
    (id, type, array)."""
    bands, height, width = array.shape
    profile = Profile(width, height, bands, DTYPES.index(array.dtype, 1))
    lists = {"gcps": ("gcp_count", Gcp), "factors": ("factor_count", c_uint32), "rpc": (None, c_double),
             "geokeys": ("geokey_count", Geokey), "palette": ("palette_entries", c_uint16)}
    names = {"resampling": RESAMPLINGS, "overviews": OVERVIEWS, "bigtiff": BIGTIFF}
    for name, value in options.items():
        if name == "transform":
            profile.has_transform, profile.transform = 1, (c_double * 6)(*value)
        elif name == "items":
            rows = [Item(text(domain), text(key), text(words), text(role), band)
                    for key, words, domain, role, band in value]
            profile.items, profile.item_count = array_of(Item, rows), len(rows)
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
            _check(lib.cogpu_writer_push(self.handle, byref(raster), byref(masks) if masks else None, byref(error)),
                   error)

    def close(self):
        """The file's bytes where they went to memory."""
        written, error = Written(), Error()
        handle, self.handle = self.handle, None
        _check(lib.cogpu_writer_close(handle, byref(written), byref(error)), error)
        self.written = _plain(written)
        data = ctypes.string_at(self.memory.data, self.memory.bytes) if self.memory.data else None
        lib.cogpu_memory_release(byref(self.memory))
        return data

    def abort(self):
        lib.cogpu_writer_abort(self.handle)


def write(array, mask=None, swaths=None, path=None, lies=CPU, **options):
    """The bytes of a file (None for one with a path), pushed in swaths of these heights from where they lie."""
    options |= {"mask": int(mask is not None)}
    if lies != CPU or options.get("device"):
        options = {"context": shared_context()} | options
    writer = Writer(profile_of(array, **options), path)
    height, first = array.shape[1], 0
    try:
        for rows in swaths or [height]:
            part = slice(first, first + rows)
            writer.push(array[:, part], mask[part] if mask is not None else None, lies)
            first += rows
    except CogpuError:
        writer.abort()
        raise
    return writer.close()
