"""Files warped by cogpu.open_mosaic and by gdalwarp -et 0, for test_warp_crs.py: where they lie, what they contain, and
which pixels may differ. GDAL is the library inside rasterio's wheel, called by ctypes."""

import ctypes
import itertools
import math
import os
import sys
from ctypes import POINTER, byref, c_char_p, c_int, c_void_p

import cogpu_ctypes
import gdal_transformer as reference
import numpy as np
import rasterio
import rasterio.warp
from gdal_transformer import Placed, Transformer, gdal
from rasterio.crs import CRS
from rasterio.transform import Affine

PACKAGE = os.environ.get("COGPU_PACKAGE", str(cogpu_ctypes.ROOT / "build" / "python"))
if PACKAGE != "installed" and PACKAGE not in sys.path:
    sys.path.append(PACKAGE)

KERNELS = ("bilinear", "cubic", "cubicspline", "lanczos")
AREAS = ("average", "rms", "mode", "min", "max", "median", "q1", "q3")
METHODS = {name: {"nearest": "near", "median": "med"}.get(name, name) for name in ("nearest", *KERNELS, *AREAS, "sum")}
OUTPUTS = (f"/vsimem/warp_chain_{i}.tif" for i in itertools.count())


def declare():
    for name, result, arguments in [
            ("GDALWarpAppOptionsNew", c_void_p, [POINTER(c_char_p), c_void_p]),
            ("GDALWarpAppOptionsFree", None, [c_void_p]), ("GDALOpen", c_void_p, [c_char_p, c_int]),
            ("VSIUnlink", c_int, [c_char_p]), ("CPLSetConfigOption", None, [c_char_p, c_char_p]),
            ("GDALWarp", c_void_p, [c_char_p, c_void_p, c_int, POINTER(c_void_p), c_void_p, POINTER(c_int)])]:
        function = getattr(gdal, name)
        function.restype, function.argtypes = result, arguments


if gdal is not None:
    declare()


# ---- sources -------------------------------------------------------------------------------------

def place(crs, longitude, latitude, metres, angle, size):
    """A raster around a position, rotated by an angle in radians."""
    parsed, (width, height) = CRS.from_user_input(crs), size
    (x,), (y,) = rasterio.warp.transform("EPSG:4326", parsed, [longitude], [latitude])
    x = longitude if parsed.is_geographic and longitude > 180 else x
    pixel = metres / (111320 if parsed.is_geographic else parsed.linear_units_factor[1])
    along, down = pixel * math.cos(angle), pixel * math.sin(angle)
    return Placed(crs, width, height, [x - (width * along + height * down) / 2, along, down,
                                       y - (width * down - height * along) / 2, down, -along])


def samples(dtype, size, bands=1, nodata=None, part=0.05):
    """Hills with noise, and holes of nodata: single pixels and a disc."""
    random, dtype, (width, height) = np.random.default_rng(1), np.dtype(dtype), size
    y, x = np.mgrid[:height, :width]
    hills = np.stack([np.sin(x / 7 + band) * np.cos(y / 5) * 0.35 + 0.35 for band in range(bands)])
    hills += random.random(hills.shape) * 0.3
    if dtype.kind == "f":
        array = (hills * 1000).astype(dtype)
    else:
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        array = (low + hills * (high - low)).astype(dtype)
    if nodata is not None:
        array[random.random(array.shape) < part] = nodata
        array[:, np.hypot(x - width / 3, y - height / 2) < min(width, height) / 9] = nodata
    return array


def write(path, placed, pixels, **profile):
    bands, height, width = pixels.shape
    profile = {"transform": Affine.from_gdal(*placed.transform), "crs": placed.crs} | profile
    with rasterio.open(path, "w", driver="GTiff", width=width, height=height, count=bands, dtype=pixels.dtype.name,
                       **profile) as file:
        file.write(pixels)
    return path


# ---- both warpers --------------------------------------------------------------------------------

def gdalwarp(path, *words):
    """The target and its pixels by gdalwarp, with exact positions."""
    gdal.CPLSetConfigOption(b"GDAL_WARP_USE_TRANSLATION_OPTIM", None)
    out = next(OUTPUTS).encode()
    words = ["-q", "-et", "0", "-ovr", "NONE", "-wm", "2000", "-wo", "NUM_THREADS=1", "-of", "GTiff", *map(str, words)]
    with rasterio.Env():
        made = gdal.GDALWarpAppOptionsNew((c_char_p * (len(words) + 1))(*(word.encode() for word in words), None), None)
        source = c_void_p(gdal.GDALOpen(os.fsencode(path), 0))
        warped = gdal.GDALWarp(out, None, 1, byref(source), made, byref(c_int()))
        gdal.GDALWarpAppOptionsFree(made)
        gdal.GDALClose(source)
        assert warped, gdal.CPLGetLastErrorMsg()
        gdal.GDALClose(warped)
        with rasterio.open(out.decode()) as file:
            placed = Placed(file.crs.to_wkt() if file.crs else None, file.width, file.height,
                            list(file.transform.to_gdal()))
            pixels = file.read()
        gdal.VSIUnlink(out)
    return placed, pixels


def cogpu_warp(path, **words):
    """The same by cogpu."""
    import cogpu
    with cogpu.open_mosaic(path, max_error=0, full_resolution=True, **words) as mosaic:
        pixels = np.asarray(mosaic.read())
        return Placed(None, *pixels.shape[:0:-1], list(Affine(*mosaic.transform).to_gdal())), pixels


# ---- positions -----------------------------------------------------------------------------------

def lattice(placed, offset):
    """Points of all pixels: their centres (0.5), or all corners (0.0)."""
    extra = offset == 0
    y, x = np.mgrid[:placed.height + extra, :placed.width + extra] + offset
    return np.column_stack([x.ravel(), y.ravel()])


class Positions:
    """Source positions of target pixels by GDAL. `difference`: how far ours are from them at most."""

    def __init__(self, source, theirs, ours, crs):
        theirs.crs = ours.crs = crs
        self.source, self.target, self.difference = source, theirs, 0.0
        with reference.gdal_transformer(source, theirs) as expected, Transformer(source, ours) as found:
            self.centres = self._find(expected, found, 0.5).reshape(theirs.height, theirs.width, 2)
            self.corners = self._find(expected, found, 0.0).reshape(theirs.height + 1, theirs.width + 1, 2)

    def _find(self, expected, found, offset):
        points = lattice(self.target, offset)
        expected, found = reference.gdal_positions(expected, True, points), found.positions(True, points)
        near = ((expected > -2) & (expected < np.array([self.source.width, self.source.height]) + 2)).all(1)
        assert not np.isnan(found[near]).any()
        self.difference = max(self.difference, np.abs(expected - found)[near].max(initial=0))
        return expected

    def are_ties(self, method):
        """Which pixels have a position, as near as the positions of both agree, where the pixels that the method uses
        change: at the edge of a pixel, and for kernels also at its centre. A mean of slivers alone, where all else is
        nodata, magnifies the difference."""
        limit = self.difference * (1e6 if method in ("average", "rms") else 1) + 1e-9

        def close(positions, step):
            return (np.abs(positions / step - np.round(positions / step)) * step <= limit).any(-1)

        if method == "nearest" or method in KERNELS:
            return close(self.centres, 1 if method == "nearest" else 0.5)
        corners = close(self.corners, 1)
        return corners[1:, 1:] | corners[:-1, :-1] | corners[1:, :-1] | corners[:-1, 1:]


# ---- comparison ----------------------------------------------------------------------------------

def tolerances(method, source, ours, positions):
    """How far a sample may be from GDAL's: 1 of integers, 2 units in the last place of float32 at the larger of result
    and largest sample; and what the difference of positions makes of the steepest slope."""
    if method == "nearest":
        return np.zeros(ours.shape)
    largest, least = np.nanmax(source.astype(float)), np.nanmin(source.astype(float))
    units, slope = 1.0, 4 * (largest - least)
    if ours.dtype.kind == "f":
        magnitudes = np.maximum(np.abs(ours.astype(float)), max(abs(largest), abs(least)))
        units = 2 * np.spacing(magnitudes.astype("f4")).astype(float)
    if method == "sum":
        slope *= max(1, source.shape[1] * source.shape[2] / (ours.shape[1] * ours.shape[2]))
    return np.broadcast_to(units + slope * positions.difference, ours.shape)


def unequal(method, source, theirs, ours, positions):
    """Which samples differ."""
    theirs, found = theirs.astype(float), ours.astype(float)
    both_nan = np.isnan(theirs) & np.isnan(found)
    with np.errstate(invalid="ignore"):
        return ~(both_nan | (theirs == found) | (np.abs(theirs - found) <= tolerances(method, source, ours, positions)))


def clipped_area(polygon, column, row):
    """Of a polygon's part in a pixel: Sutherland and Hodgman, then the shoelace formula."""
    for axis, limit, sign in ((0, column, 1), (0, column + 1, -1), (1, row, 1), (1, row + 1, -1)):
        kept = []
        for a, b in zip(polygon, polygon[1:] + polygon[:1], strict=True):
            from_a, from_b = sign * (a[axis] - limit), sign * (b[axis] - limit)
            kept += [a] if from_a >= 0 else []
            if (from_a >= 0) != (from_b >= 0):
                part = from_a / (from_a - from_b)
                kept.append((a[0] + part * (b[0] - a[0]), a[1] + part * (b[1] - a[1])))
        polygon = kept
    return area(polygon)


def area(polygon):
    return abs(sum(a[0] * b[1] - b[0] * a[1] for a, b in zip(polygon, polygon[1:] + polygon[:1], strict=True))) / 2


def forward_quads(positions):
    """Corners of all source pixels in the target. Those that its antimeridian divides are NaN: GDAL smears them."""
    source = positions.source
    with reference.gdal_transformer(source, positions.target) as made:
        at = reference.gdal_positions(made, False, lattice(source, 0.0)).reshape(source.height + 1, source.width + 1, 2)
    quads = np.stack([at[:-1, :-1], at[:-1, 1:], at[1:, 1:], at[1:, :-1]])
    widths = np.ptp(quads, axis=0).max(-1)
    quads[:, widths > 20 * np.nanmedian(widths)] = np.nan
    return quads


def sum_of_pixel(positions, pixels, valid, column, row):
    """A pixel of the sum by its definition: each source pixel gives the part of its area that lies in the pixel. And
    the sum of these parts."""
    if not hasattr(positions, "quads"):
        positions.quads = forward_quads(positions)
    quads = positions.quads
    touches = ((quads.min(0) < (column + 1, row + 1)) & (quads.max(0) > (column, row))).all(-1) & valid
    total = weight = 0.0
    for y, x in np.argwhere(touches):
        quad = [tuple(corner) for corner in quads[:, y, x]]
        part = clipped_area(quad, column, row) / area(quad)
        total, weight = total + pixels[y, x] * part, weight + part
    return total, weight


def shares_of_pixel(positions, pixels, valid, column, row):
    """What part of a target pixel's area each value has: the mode's candidates."""
    (low, high), shares = np.sort([positions.corners[row, column], positions.corners[row + 1, column + 1]], 0), {}
    (left, top), (right, bottom) = np.maximum(np.floor(low), 0).astype(int), np.ceil(high).astype(int)
    for y in range(top, min(bottom, pixels.shape[0])):
        for x in range(left, min(right, pixels.shape[1])):
            part = (min(x + 1, high[0]) - max(x, low[0])) * (min(y + 1, high[1]) - max(y, low[1]))
            if valid[y, x]:
                shares[pixels[y, x]] = shares.get(pixels[y, x], 0) + part
    return shares


def lanczos_of_pixel(positions, scale, pixels, valid, column, row):
    """A pixel by its definition, of a kernel that grows where the scale is below 1."""
    weights = []
    for axis in 0, 1:
        at = positions.centres[row, column, axis]
        distance = (np.arange(pixels.shape[1 - axis]) + 0.5 - at) * min(scale[axis], 1)
        weights.append(np.where(np.abs(distance) < 3, np.sinc(distance) * np.sinc(distance / 3), 0))
    weight = weights[1][:, None] * weights[0] * valid
    return (weight * np.where(valid, pixels, 0)).sum() / weight.sum()


# ---- sources that go round the Earth -------------------------------------------------------------

def is_round(source):
    return CRS.from_user_input(source.crs).is_geographic and abs(source.transform[1] * source.width - 360) < 1e-6


def turned(source, pixels):
    """The same pixels from the opposite longitude on."""
    west, pixel, *rest = source.transform
    half = source.width // 2
    placed = Placed(source.crs, source.width, source.height, [west + half * pixel, pixel, *rest])
    return placed, np.roll(pixels, -half, 2)


def are_on_seam(positions):
    """Target pixels whose corners lie at both ends of the source."""
    x = positions.corners[..., 0]
    return np.abs(x[:-1, :-1] - x[1:, 1:]) > positions.source.width / 2
