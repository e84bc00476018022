"""gdalbuildvrt, gdal_translate and gdalwarp as functions: GDAL's own, called in the library that rasterio brings."""

import ctypes
import pathlib

import rasterio
import rasterio._env  # loads GDAL

HANDLE, NUMBER, TEXT = ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p
SIGNATURES = {"GDALOpenEx": (HANDLE, [TEXT, ctypes.c_uint, HANDLE, HANDLE, HANDLE]), "GDALClose": (NUMBER, [HANDLE]),
              "GDALBuildVRT": (HANDLE, [TEXT, NUMBER, HANDLE, HANDLE, HANDLE, HANDLE]),
              "GDALTranslate": (HANDLE, [TEXT, HANDLE, HANDLE, HANDLE]),
              "GDALWarp": (HANDLE, [TEXT, HANDLE, NUMBER, HANDLE, HANDLE, HANDLE])}
OPTIONS = {"GDALBuildVRT": "GDALBuildVRTOptions", "GDALTranslate": "GDALTranslateOptions",
           "GDALWarp": "GDALWarpAppOptions"}


def _load():
    folder = pathlib.Path(rasterio.__file__).parents[1] / "rasterio.libs"
    found = next(iter(folder.glob("libgdal-*.so*")), None)
    if not found:
        return None
    library = ctypes.CDLL(str(found))
    signatures = SIGNATURES | {f"{name}New": (HANDLE, [HANDLE, HANDLE]) for name in OPTIONS.values()}
    signatures |= {f"{name}Free": (None, [HANDLE]) for name in OPTIONS.values()}
    for name, (result, arguments) in signatures.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    library.GDALAllRegister()
    return library


LIBRARY = _load()


def _texts(values):
    return (TEXT * (len(values) + 1))(*[str(value).encode() for value in values], None)


def _open(path):
    file = LIBRARY.GDALOpenEx(str(path).encode(), 0, None, None, None)
    assert file, path
    return file


def _run(program, to, sources, options):
    """False if GDAL refuses the options."""
    prepared = getattr(LIBRARY, f"{OPTIONS[program]}New")(_texts(options), None)
    if not prepared:
        return False
    error, target, run = ctypes.c_int(), str(to).encode(), getattr(LIBRARY, program)
    file = _open(sources[0]) if program != "GDALBuildVRT" else None
    if program == "GDALWarp":
        made = run(target, None, 1, (HANDLE * 1)(file), prepared, ctypes.byref(error))
    elif file:
        made = run(target, file, prepared, ctypes.byref(error))
    else:
        made = run(target, len(sources), None, _texts(sources), prepared, ctypes.byref(error))
    for opened in (made, file):
        if opened:
            LIBRARY.GDALClose(opened)
    getattr(LIBRARY, f"{OPTIONS[program]}Free")(prepared)
    return bool(made)


def build_vrt(to, sources, *options):
    return _run("GDALBuildVRT", to, sources, options)


def translate(to, source, *options):
    return _run("GDALTranslate", to, [source], ("-of", "VRT", *options))


def warp(to, source, *options):
    return _run("GDALWarp", to, [source], ("-of", "VRT", *options))
