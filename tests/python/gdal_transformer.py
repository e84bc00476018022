"""Positions by GDAL's GDALGenImgProjTransform and by cogpu's transformers, for test_transformer.py.

GDAL is the library inside rasterio's wheel, called by ctypes.
"""

import contextlib
import ctypes
import os
import pathlib
from ctypes import POINTER, Structure, byref, c_bool, c_char_p, c_double, c_float, c_int, c_size_t, c_uint32, c_void_p

import cogpu_ctypes as cogpu
import numpy as np
import rasterio

# ---- GDAL ----------------------------------------------------------------------------------------


class GdalGcp(Structure):
    _fields_ = [("id", c_char_p), ("info", c_char_p), ("column", c_double), ("row", c_double),
                ("x", c_double), ("y", c_double), ("z", c_double)]


def find_gdal():
    folder = pathlib.Path(rasterio.__file__).parent.parent / "rasterio.libs"
    found = sorted(folder.glob("libgdal-*.so*"))
    return found[0] if found else None


def load_gdal(path):
    gdal = ctypes.CDLL(str(path))
    for name, result, arguments in [
            ("GDALAllRegister", None, []),
            ("GDALGetDriverByName", c_void_p, [c_char_p]),
            ("GDALCreate", c_void_p, [c_void_p, c_char_p, c_int, c_int, c_int, c_int, c_void_p]),
            ("GDALClose", c_int, [c_void_p]),
            ("GDALSetGeoTransform", c_int, [c_void_p, POINTER(c_double)]),
            ("GDALSetProjection", c_int, [c_void_p, c_char_p]),
            ("GDALSetGCPs", c_int, [c_void_p, c_int, POINTER(GdalGcp), c_char_p]),
            ("GDALSetMetadata", c_int, [c_void_p, POINTER(c_char_p), c_char_p]),
            ("GDALCreateGenImgProjTransformer2", c_void_p, [c_void_p, c_void_p, POINTER(c_char_p)]),
            ("GDALGenImgProjTransform", c_int, [c_void_p, c_int, c_int] + [c_void_p] * 4),
            ("GDALDestroyGenImgProjTransformer", None, [c_void_p]),
            ("CPLGetLastErrorMsg", c_char_p, [])]:
        function = getattr(gdal, name)
        function.restype, function.argtypes = result, arguments
    gdal.GDALAllRegister()
    return gdal


GDAL_PATH = find_gdal()
gdal = load_gdal(GDAL_PATH) if GDAL_PATH else None


def text_list(items):
    """NAME=VALUE texts, with NULL at the end."""
    texts = [f"{name}={value}".encode() for name, value in items.items()]
    return (c_char_p * (len(texts) + 1))(*texts, None)


def wkt_of(crs):
    """GDAL's own WKT of a CRS."""
    with rasterio.Env():
        return rasterio.crs.CRS.from_user_input(crs).to_wkt(version="WKT2_2019")


@contextlib.contextmanager
def gdal_dataset(placed):
    dataset = gdal.GDALCreate(gdal.GDALGetDriverByName(b"MEM"), b"", placed.width, placed.height, 0, 1, None)
    if placed.gcps is not None:
        points = (GdalGcp * len(placed.gcps))(*(GdalGcp(b"", b"", *row, 0) for row in placed.gcps))
        assert gdal.GDALSetGCPs(dataset, len(points), points, wkt_of(placed.crs).encode()) == 0
    elif placed.transform is not None:
        assert gdal.GDALSetGeoTransform(dataset, (c_double * 6)(*placed.transform)) == 0
        assert placed.crs is None or gdal.GDALSetProjection(dataset, wkt_of(placed.crs).encode()) == 0
    if placed.rpc is not None:
        assert gdal.GDALSetMetadata(dataset, text_list(rpc_items(placed.rpc)), b"RPC") == 0
    yield dataset
    gdal.GDALClose(dataset)


RPC_NAMES = ["ERR_BIAS", "ERR_RAND", "LINE_OFF", "SAMP_OFF", "LAT_OFF", "LONG_OFF", "HEIGHT_OFF", "LINE_SCALE",
             "SAMP_SCALE", "LAT_SCALE", "LONG_SCALE", "HEIGHT_SCALE"]
RPC_LISTS = ["LINE_NUM_COEFF", "LINE_DEN_COEFF", "SAMP_NUM_COEFF", "SAMP_DEN_COEFF"]


def rpc_items(numbers):
    items = {name: repr(float(value)) for name, value in zip(RPC_NAMES, numbers, strict=False)}
    for index, name in enumerate(RPC_LISTS):
        start = len(RPC_NAMES) + 20 * index
        items[name] = " ".join(repr(float(value)) for value in numbers[start:start + 20])
    return items


@contextlib.contextmanager
def gdal_transformer(source, target, **options):
    with rasterio.Env(), gdal_dataset(source) as one, gdal_dataset(target) as other:
        made = gdal.GDALCreateGenImgProjTransformer2(one, other, text_list(options))
        assert made, gdal.CPLGetLastErrorMsg()
        yield made
        gdal.GDALDestroyGenImgProjTransformer(made)


def gdal_positions(made, back, points):
    """(n, 2) positions; NaN where GDAL fails."""
    x, y = np.array(points[:, 0]), np.array(points[:, 1])
    z, success = np.zeros(len(x)), np.zeros(len(x), np.int32)
    gdal.GDALGenImgProjTransform(made, int(back), len(x), x.ctypes.data, y.ctypes.data, z.ctypes.data,
                                 success.ctypes.data)
    found = np.stack([x, y], 1)
    found[(success == 0) | ~np.isfinite(found).all(1)] = np.nan
    return found


# ---- cogpu ---------------------------------------------------------------------------------------

PROBE_PATH = cogpu.LIBRARY.parent / "tests" / "libprobe_transformer.so"


class HeightModel(Structure):
    _fields_ = [("width", c_uint32), ("height", c_uint32), ("heights", POINTER(c_float)), ("crs", c_char_p),
                ("transform", c_double * 6)]


class Placement(Structure):
    """cogpu_placement of src/grid/transformer.h."""
    _fields_ = [("width", c_uint32), ("height", c_uint32), ("crs", c_char_p), ("has_transform", c_bool),
                ("transform", c_double * 6), ("gcps", POINTER(cogpu.Gcp)), ("gcp_count", c_uint32),
                ("rpc", POINTER(c_double)), ("rpc_height", c_double), ("rpc_dem", POINTER(HeightModel))]


class Probe(Structure):
    _fields_ = [("operations", c_void_p), ("transformer", c_void_p)]


def load_probe():
    if not PROBE_PATH.exists():
        return None
    probe = ctypes.CDLL(str(PROBE_PATH))
    probe.probe_open.argtypes = [POINTER(Placement), POINTER(Placement), POINTER(Probe), POINTER(cogpu.Error)]
    probe.probe_close.argtypes = [c_void_p, c_void_p]
    for function in (probe.probe_to_source, probe.probe_to_target):
        function.argtypes = [c_void_p, c_size_t, c_void_p, c_void_p]
    probe.probe_is_affine.argtypes = [c_void_p, POINTER(c_double)]
    probe.cogpu_proj_version.restype = c_char_p
    return probe


@contextlib.contextmanager
def gdal_database():
    """cogpu's PROJ uses the database and the grids in rasterio's wheel."""
    kept = os.environ.get("PROJ_DATA")
    os.environ["PROJ_DATA"] = str(pathlib.Path(rasterio.__file__).parent / "proj_data")
    yield
    os.environ.pop("PROJ_DATA")
    if kept is not None:
        os.environ["PROJ_DATA"] = kept


def has_proj_of_gdal():
    """Whether both have the same version of PROJ. Older ones compute authalic latitudes (LAEA, EASE-Grid) less
    precisely, by up to a millimetre."""
    return probe.cogpu_proj_version().decode() == rasterio.__proj_version__


probe = load_probe()


class Placed:
    """A raster as both libraries place it. GCPs are rows of column, row, x, y."""

    def __init__(self, crs, width, height, transform=None, gcps=None, rpc=None, rpc_height=0, rpc_dem=None):
        self.crs, self.width, self.height = crs, width, height
        self.transform, self.gcps, self.rpc = transform, gcps, rpc
        self.rpc_height, self.rpc_dem = rpc_height, rpc_dem

    def placement(self, crs=None):
        crs = crs or self.crs
        placed = Placement(self.width, self.height, crs.encode() if crs else None, rpc_height=self.rpc_height)
        if self.transform is not None:
            placed.has_transform, placed.transform = True, (c_double * 6)(*self.transform)
        if self.gcps is not None:
            rows = [cogpu.Gcp(column=row[0], row=row[1], x=row[2], y=row[3]) for row in self.gcps]
            placed.gcps, placed.gcp_count = (cogpu.Gcp * len(rows))(*rows), len(rows)
        if self.rpc is not None:
            placed.rpc = (c_double * 92)(*self.rpc)
        if self.rpc_dem is not None:
            heights, dem_crs, transform = self.rpc_dem
            self.heights = np.ascontiguousarray(heights, "f4")
            placed.rpc_dem = ctypes.pointer(HeightModel(
                heights.shape[1], heights.shape[0], self.heights.ctypes.data_as(POINTER(c_float)), dem_crs.encode(),
                (c_double * 6)(*transform)))
        return placed


class Transformer:
    """One of cogpu's. `shared` is another one, whose operations it uses too."""

    def __init__(self, source, target, shared=None, source_crs=None, target_crs=None):
        self.opened, self.is_shared = Probe(shared.opened.operations if shared else None), shared is not None
        self.keep, error = (source.placement(source_crs), target.placement(target_crs)), cogpu.Error()
        status = probe.probe_open(*map(byref, self.keep), byref(self.opened), byref(error))
        if status != cogpu.OK:
            self.close()
            raise cogpu.CogpuError(status, error)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        probe.probe_close(self.opened.transformer, None if self.is_shared else self.opened.operations)

    def positions(self, back, points):
        x, y = np.array(points[:, 0]), np.array(points[:, 1])
        function = probe.probe_to_source if back else probe.probe_to_target
        function(self.opened.transformer, len(x), x.ctypes.data, y.ctypes.data)
        return np.stack([x, y], 1)

    def affine(self):
        """The geotransform, or None."""
        found = (c_double * 6)()
        return list(found) if probe.probe_is_affine(self.opened.transformer, found) else None
