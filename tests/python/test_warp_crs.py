"""Files in one CRS on grids of another, from file to pixels: cogpu.open_mosaic and cogpu warp beside gdalwarp -et 0.

Grids are gdalwarp's own, or have its options. Each pair is warped by some methods and sample types; with
COGPU_TEST_DEEP=1 by all. Nearest pixels are equal, integers differ by 1 at most, floats by 2 units in the last place
of float32, except:

- ties: GDAL and cogpu may have different versions of PROJ, whose positions differ in the last digits. A pixel may
  differ where its position is that close to the edge of a source pixel, or two values have shares of its area that
  are that equal. With the same version no pixel does.
- lanczos: where a source pixel's centre lies within a millionth of the target's, GDAL's weight of it is noise. There,
  the definition decides.
- edges: where taps of a kernel lie outside of the source and the weights of the others add up to nearly 1, one
  divides by them and the other does not: a difference of a hundred-thousandth at most.
- sums: GDAL loses parts of source pixels whose edges lie on edges of the target's, and smears those that the target's
  antimeridian divides over all columns; cogpu over a few. Where they differ, the definition of the sum decides, but
  for target pixels with a corner that has no position. Source pixels at a pole have no shape in degrees or in
  Mercator. To those beyond the antimeridian of their own CRS no position leads back: they count in GDAL's sums alone.
- seam: where a source ends that goes round the Earth, GDAL takes half of the target pixels for as wide as the source.
  There, the same source that begins at the opposite longitude decides.

Targets have at most 100 pixels a side: gdalwarp divides larger ones if the source fills less than half of them, and
each part has a scale of its own. -novshift: heights are another theme, and with them GDAL computes in float.
"""

import collections
import os
import subprocess

import gdal_transformer as reference
import numpy as np
import pytest
import rasterio
from conftest import BIN, DEVICES, OLD_GDAL
from gdal_transformer import Placed
from rasterio.transform import Affine
from test_grid import check_grid, complete, measure
from test_transformer import database, PAIRS  # noqa: F401: a fixture of all tests
from warp_chain import (AREAS, are_on_seam, cogpu_warp, gdalwarp, is_round, KERNELS, lanczos_of_pixel, METHODS, place,
                        Positions, samples, shares_of_pixel, sum_of_pixel, tolerances, turned, unequal, write)

cogpu = pytest.importorskip("cogpu")
pytestmark = [
    pytest.mark.skipif(OLD_GDAL, reason="rules of GDAL 3.12"),
    pytest.mark.skipif(reference.probe is None, reason="libprobe_transformer.so has not been built"),
    pytest.mark.skipif(reference.gdal is None, reason="rasterio has no libgdal of its own"),
    pytest.mark.skipif(reference.probe is not None and reference.probe.cogpu_proj_version() is None,
                       reason="this build has no PROJ")]
DEEP = bool(os.environ.get("COGPU_TEST_DEEP"))

# Type, nodata, bands, and the size of pixels: gdalwarp's, or so many times as many along an axis.
VARIANTS = [("f4", None, 1, None), ("u1", 0, 1, 0.3701), ("i2", -32768, 1, 2.3007), ("u2", None, 3, 0.6013),
            ("f8", -9999, 2, None), ("f4", float("nan"), 1, 0.4019), ("u1", None, 1, 1.7011), ("u2", 0, 1, None)]
SHARED = [method for method in METHODS if method != "nearest"]


# ---- pairs ---------------------------------------------------------------------------------------

def north_up(crs, size, west, north, pixel, pixel_y=None):
    return Placed(crs, *size, [west, pixel, 0, north, 0, -(pixel_y or pixel)])


# Sources, CRS of the target, metres of a source pixel, and -te and -ts, where the grid is not gdalwarp's own.
GLOBE = north_up("EPSG:4326", (120, 60), -180, 90, 3)
GLOBE_FROM_0 = north_up("EPSG:4326", (120, 60), 0, 90, 3)
SPECIAL = {
    "globe to web mercator": (GLOBE, "EPSG:3857", 3e5, (-2e7, -2e7, 2e7, 2e7), (90, 90)),
    "globe to north pole": (GLOBE, "EPSG:3413", 3e5, (-4e6, -4e6, 4e6, 4e6), (80, 80)),
    "globe to south pole": (GLOBE, "EPSG:3031", 3e5, (-4.1e6, -4e6, 4e6, 4e6), (81, 80)),
    "globe to europe": (GLOBE, "EPSG:3035", 3e5, (2.5e6, 1.5e6, 6e6, 5e6), (70, 70)),
    "globe to equal areas": (GLOBE, "EPSG:6933", 3e5, (-17367530, -7.3e6, 17367530, 7.3e6), (100, 42)),
    "globe to mollweide": (GLOBE, "ESRI:54009", 3e5, (-18040000, -9020000, 18040000, 9020000), (100, 50)),
    "globe across the antimeridian": (GLOBE, "EPSG:4326", 3e5, (150.3, -40.2, 210.3, 40.2), (60, 80)),
    "globe at the antimeridian in metres": (GLOBE, "EPSG:3832", 3e5, (1e6, -3e6, 6e6, 3e6), (50, 60)),
    "globe from 0 to -180": (GLOBE_FROM_0, "EPSG:4326", 3e5, (-180, -90, 180, 90), (90, 45)),
    "globe from 0 to web mercator": (GLOBE_FROM_0, "EPSG:3857", 3e5, (-1e7, -1e7, 1e7, 1e7), (80, 80)),
    "degrees beyond 180 to utm 60": (north_up("EPSG:4326", (80, 60), 176, 60, 0.1), "EPSG:32660", 11132, None, None),
    "degrees beyond 180 to utm 1": (north_up("EPSG:4326", (80, 60), 176, 60, 0.1), "EPSG:32601", 11132, None, None),
    "degrees beyond -180": (north_up("EPSG:4326", (80, 60), -184, 10, 0.1), "EPSG:3832", 11132, None, None),
    "utm 60 to degrees": (north_up("EPSG:32660", (90, 80), 5e5, 6e6, 5000), "EPSG:4326", 5000, (176, 50, 184, 54),
                          (80, 60)),
    "utm 1 to degrees": (north_up("EPSG:32601", (90, 80), 2e5, 6e6, 5000), "EPSG:4326", 5000, (-184, 50, -176, 54),
                         (80, 60)),
    "north pole to degrees": (north_up("EPSG:3413", (80, 80), -4e6, 4e6, 1e5), "EPSG:4326", 1e5, None, None),
    "north pole to equal areas": (north_up("EPSG:3413", (60, 60), -3e6, 3e6, 1e5), "EPSG:6931", 1e5, None, None),
    "north pole to ups": (north_up("EPSG:3408", (60, 60), -3e6, 3e6, 1e5), "EPSG:32661", 1e5, None, None),
    "north pole to bering": (north_up("EPSG:3995", (60, 60), -3e6, 3e6, 1e5), "EPSG:3571", 1e5, None, None),
    "south pole to degrees": (north_up("EPSG:3031", (80, 80), -4e6, 4e6, 1e5), "EPSG:4326", 1e5,
                              (-180, -90, 180, -60), (100, 50)),
    "south pole to equal areas": (north_up("EPSG:3031", (80, 80), -4e6, 4e6, 1e5), "EPSG:6932", 1e5, None, None),
    "south pole to web mercator": (north_up("EPSG:3031", (80, 80), -4e6, 4e6, 1e5), "EPSG:3857", 1e5,
                                   (-2e7, -2e7, 2e7, -8e6), (100, 40)),
    "south up": (north_up("EPSG:32632", (90, 80), 4e5, 5e6, 1000, -1000), "EPSG:4326", 1000, None, None),
    "south up degrees": (north_up("EPSG:4326", (90, 80), 5, 41, 0.01, -0.01), "EPSG:3857", 1113, None, None),
    "sheared": (Placed("EPSG:32632", 60, 50, [4e5, 8, 3, 5e6, 2, -6]), "EPSG:3857", 8, None, None),
    "mirrored": (Placed("EPSG:32632", 60, 50, [4e5, -8, 0, 5e6, 0, -8]), "EPSG:3035", 8, None, None),
    "rows and columns changed": (Placed("EPSG:32632", 60, 50, [4e5, 0, 8, 5e6, 8, 0]), "EPSG:4326", 8, None, None),
    "oblong pixels": (north_up("EPSG:32632", (60, 80), 4e5, 5e6, 10, 40), "EPSG:32633", 10, None, None),
    "same crs, turned": (Placed("EPSG:32632", 60, 50, [4e5, 8, 1, 5e6, 1, -8]), "EPSG:32632", 8, None, None),
    "same crs, finer": (north_up("EPSG:32632", (60, 50), 4e5, 5e6, 10), "EPSG:32632", 10,
                        (4e5, 4999600, 400500, 4999900), (83, 51)),
    "same crs, whole pixels": (north_up("EPSG:32632", (60, 50), 4e5, 5e6, 10), "EPSG:32632", 10,
                               (400030, 4999600, 400430, 4999960), (40, 36)),
    "same crs in degrees": (north_up("EPSG:4326", (60, 50), 5, 41, 0.1), "EPSG:4326", 11132, (5.33, 37, 10.1, 40.8),
                            (77, 61)),
}
# Source pixels at a pole, and beyond the antimeridian of their own CRS, where positions do not lead back to them.
NO_SUMS = {"EPSG:3857 EPSG:3832", "EPSG:3031 EPSG:3857", "north pole to degrees", "south pole to degrees",
           "south pole to web mercator"}
# gdalwarp makes a grid of no rows, or of thousands.
BOUNDED = {("EPSG:32601", "EPSG:4326"): ((-180, 59.94, -179.7, 60.06), (60, 50)),
           ("EPSG:3031", "EPSG:3857"): ((-2e7, -6e7, 2e7, -4e7), (43, 40))}


def sized(crs, longitude, latitude, metres, angle, target, factor):
    """A source around a position, so small that gdalwarp does not divide its target."""
    for side in 96, 60, 36, 24:
        placed = place(crs, longitude, latitude, metres, angle, (side, side * 5 // 6))
        grid = complete([placed], target)
        if grid and max(grid[1:]) * (factor or 1) <= 100:
            break
    return placed


def pair(index, factor):
    source, longitude, latitude, target = PAIRS[index]
    metres = (30, 300, 2000)[index % 3]
    box, size = BOUNDED.get((source, target), (None, None))
    placed = sized(source, longitude, latitude, metres, 0.3 * (index // 3 % 3), target, factor)
    return placed, target, metres, box, size


CASES = {f"{one[0]} {one[3]}": lambda factor, index=index: pair(index, factor) for index, one in enumerate(PAIRS)}
CASES |= {name: lambda _, case=case: case for name, case in SPECIAL.items()}


# ---- comparison ----------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def tally():
    """Pairs, pixels, and pixels that differ, by method and reason. Of nearest, at most one in 100,000."""
    found = collections.defaultdict(collections.Counter)
    yield found
    if DEEP:
        pairs = {name for counts in found.values() for name in counts if name not in REASONS}
        own = reference.probe.cogpu_proj_version().decode()
        print(f"\n{len(pairs)} pairs of CRSs, {len(found)} methods, PROJ {own} beside {rasterio.__proj_version__}")
        for method, counts in found.items():
            counted = ", ".join(f"{counts[why]} {why}" for why in REASONS[1:])
            print(f"{method:12} {counts['pixels']:10} pixels, {counted}")
        assert found["nearest"]["ties"] <= found["nearest"]["pixels"] * 1e-5


REASONS = ("pixels", "differ", "seam", "lanczos", "ties", "edges", "sums")


def requested(box, size, base, factor):
    """Options of gdalwarp, and the same as keywords. `base` is the grid of gdalwarp without them."""
    factor = min(factor or 1, 100 / max(size or (base.width, base.height)))
    if box:
        width, height = (max(1, round(side * factor)) for side in size)
        return ["-te", *box, "-ts", width, height], {"bbox": box, "shape": (height, width)}
    if factor == 1:
        return [], {}
    resolution = base.transform[1] / factor, -base.transform[5] / factor
    return ["-tr", *map(repr, resolution)], {"resolution": resolution}


class Warp:
    """A file and its target, warped by both."""

    def __init__(self, folder, case, dtype, nodata, bands, factor):
        self.source, self.crs, self.metres, box, size = case
        self.nodata, self.folder, self.positions = nodata, folder, {}
        self.pixels = samples(dtype, (self.source.width, self.source.height), bands, nodata)
        self.path = write(folder / "source.tif", self.source, self.pixels, nodata=nodata)
        base = None if box else gdalwarp(self.path, "-t_srs", self.crs)[0]
        self.options, self.words = requested(box, size, base, factor)

    def gdal(self, method, path=None):
        return gdalwarp(path or self.path, "-t_srs", self.crs, *self.options, "-novshift", "-r", METHODS[method])

    def valid(self, band):
        return self.pixels[band] != self.nodata if self.nodata == self.nodata else ~np.isnan(self.pixels[band])

    def compare(self, method, counts):
        theirs, expected = self.gdal(method)
        ours, found = cogpu_warp(self.path, crs=self.crs, resampling=method, **self.words)
        check_grid([ours.transform, ours.width, ours.height], [theirs.transform, theirs.width, theirs.height], 1e-9)
        assert found.shape == expected.shape and found.dtype == expected.dtype
        positions = self.positions_of(theirs, ours)
        assert positions.difference <= (1e-8 if reference.has_proj_of_gdal() else max(1e-6, 0.002 / self.metres))
        differ = unequal(method, self.pixels, expected, found, positions)
        counts["pixels"] += differ.size
        counts["differ"] += differ.sum()
        for reason in REASONS[2:]:
            known = differ & getattr(self, reason)(method, differ, expected, found, positions)
            counts[reason] += known.sum()
            differ &= ~known
        where = np.argwhere(differ)
        assert len(where) == 0, (method, len(where), where[0], expected[tuple(where[0])], found[tuple(where[0])])

    def positions_of(self, theirs, ours):
        grid = *theirs.transform, theirs.width, theirs.height
        if grid not in self.positions:
            self.positions[grid] = Positions(self.source, theirs, ours, self.crs)
        return self.positions[grid]

    def ties(self, method, differ, expected, found, positions):
        known = differ & positions.are_ties(method) & (method != "sum")
        for band, row, column in np.argwhere(differ & ~known) if method == "mode" and positions.difference else ():
            shares = shares_of_pixel(positions, self.pixels[band], self.valid(band), column, row)
            one, other = (shares.get(pixels[band, row, column], -1) for pixels in (expected, found))
            known[band, row, column] = abs(one - other) <= 1e-6 + 8 * positions.difference
        return known

    def lanczos(self, method, differ, _, found, positions):
        known = np.zeros_like(differ)
        if method != "lanczos" or not differ.any():
            return known
        scale, limits = measure(self.source, positions.target, 3)[0], tolerances(method, self.pixels, found, positions)
        off = np.abs(positions.centres % 1 - 0.5)
        for band, row, column in np.argwhere(differ & (off < 1e-6).any(-1)):
            samples_of_band = self.pixels[band].astype(float)
            expected = lanczos_of_pixel(positions, scale, samples_of_band, self.valid(band), column, row)
            known[band, row, column] = abs(found[band, row, column] - expected) <= limits[band, row, column]
        return known

    def edges(self, method, _, expected, found, positions):
        scale, size = measure(self.source, positions.target, 3)[0][:2], (self.source.width, self.source.height)
        reach = np.ceil(3 / np.minimum(scale, 1)) + 1
        is_near = ((positions.centres < reach) | (positions.centres > size - reach)).any(-1)
        found = found.astype(float)
        return is_near & (method in KERNELS) & (np.abs(expected - found) <= 1e-5 * np.abs(found))

    def sums(self, method, differ, _, found, positions):
        failed = np.isnan(positions.corners).any(-1)
        known = (failed[1:, 1:] | failed[:-1, :-1] | failed[1:, :-1] | failed[:-1, 1:]) & differ & (method == "sum")
        for band, row, column in np.argwhere(differ & ~known) if method == "sum" else ():
            expected, weight = sum_of_pixel(positions, self.pixels[band].astype(float), self.valid(band), column, row)
            value = found[band, row, column]
            if weight < 1e-9 and (value == (self.nodata or 0) or value != value):
                known[band, row, column] = True
                continue
            if found.dtype.kind != "f":
                expected = np.clip(expected, np.iinfo(found.dtype).min, np.iinfo(found.dtype).max)
            part = 1e-3 if np.isnan(positions.quads).any() else 1e-6
            unit = (found.dtype.kind != "f") + part * max(abs(expected), np.nanmax(np.abs(self.pixels.astype(float))))
            known[band, row, column] = abs(value - expected) <= unit
        return known

    def seam(self, method, differ, _, found, positions):
        if method not in AREAS or not is_round(self.source) or not (differ & are_on_seam(positions)).any():
            return np.zeros_like(differ)
        path = write(self.folder / "turned.tif", *turned(self.source, self.pixels), nodata=self.nodata)
        return are_on_seam(positions) & ~unequal(method, self.pixels, self.gdal(method, path)[1], found, positions)


def methods_of(index):
    """All, or nearest and two others."""
    return METHODS if DEEP else ["nearest", *(SHARED[(2 * index + k) % len(SHARED)] for k in range(2))]


@pytest.mark.parametrize("name", CASES)
def test_pair(name, tmp_path, tally):
    index = list(CASES).index(name)
    for variant in VARIANTS if DEEP else [VARIANTS[index % len(VARIANTS)]]:
        warp = Warp(tmp_path, CASES[name](variant[-1]), *variant)
        for method in methods_of(index):
            if method == "sum" and name in NO_SUMS:
                continue
            tally[method][name] += 1
            warp.compare(method, tally[method])


# ---- the command line, and files that lie in other ways ------------------------------------------

@pytest.mark.parametrize("name", ["EPSG:32633 EPSG:3857", "EPSG:4326 EPSG:3035", "EPSG:2154 EPSG:4326",
                                  "north pole to ups", "utm 60 to degrees", "sheared"])
def test_command_line(name, tmp_path):
    warp = Warp(tmp_path, CASES[name](None), "i2", -32768, 1, None)
    for method in "nearest", "bilinear", "median":
        grid = ["--bounds", ",".join(map(repr, warp.words["bbox"])), "--size", "{1},{0}".format(*warp.words["shape"])] \
            if warp.words else []
        subprocess.run([BIN, "warp", warp.path, tmp_path / "out.tif", "--crs", warp.crs, "--error", "0", "--resampling",
                        method, "--full-resolution", "--quiet", *grid], check=True)
        theirs, expected = warp.gdal(method)
        with rasterio.open(tmp_path / "out.tif") as file:
            found, ours = file.read(), Placed(None, file.width, file.height, list(file.transform.to_gdal()))
        assert found.shape == expected.shape and np.allclose(ours.transform, theirs.transform, rtol=1e-9, atol=0)
        positions = warp.positions_of(theirs, ours)
        assert not (unequal(method, warp.pixels, expected, found, positions) & ~positions.are_ties(method)).any()


def check_as_gdal(path, crs, source, pixels, methods=("nearest", "bilinear", "average")):
    for method in methods:
        theirs, expected = gdalwarp(path, "-t_srs", crs, "-r", METHODS[method])
        ours, found = cogpu_warp(path, crs=crs, resampling=method)
        check_grid([ours.transform, ours.width, ours.height], [theirs.transform, theirs.width, theirs.height], 1e-9)
        positions = Positions(source, theirs, ours, crs)
        assert not (unequal(method, pixels, expected, found, positions) & ~positions.are_ties(method)).any(), method


@pytest.mark.parametrize("kind", ["point", "gcps", "mask", "alpha"])
def test_other_files(kind, tmp_path):
    source = north_up("EPSG:32632", (60, 50), 4e5, 5e6, 300)
    pixels = samples("u1", (60, 50), 2 if kind == "alpha" else 1)
    path = tmp_path / "source.tif"
    if kind == "gcps":
        points = [(x, y, 4e5 + 300 * x + 2 * y, 5e6 - 300 * y + x) for x in (0, 30, 60) for y in (0, 25, 50)]
        source = Placed("EPSG:32632", 60, 50, gcps=points)
        with rasterio.open(path, "w", driver="GTiff", width=60, height=50, count=1, dtype="uint8") as file:
            made = [rasterio.control.GroundControlPoint(y, x, e, n) for x, y, e, n in points]
            file.gcps = made, rasterio.CRS.from_epsg(32632)
            file.write(pixels)
    elif kind == "alpha":
        pixels[1] = (pixels[1] > 60) * 255
        write(path, source, pixels, alpha="YES")
    else:
        write(path, source, pixels)
        with rasterio.open(path, "r+") as file:
            if kind == "point":
                file.update_tags(AREA_OR_POINT="Point")
            else:
                file.write_mask(samples("u1", (60, 50), nodata=0)[0] > 60)
    check_as_gdal(path, "EPSG:3857", source, pixels)


@pytest.mark.parametrize("method", METHODS)
def test_one_pixel(method, tmp_path):
    source = Placed("EPSG:32632", 1, 1, [5e5, 1000, 0, 5e6, 0, -1000])
    path = write(tmp_path / "one.tif", source, np.full((1, 1, 1), 7, "u1"))
    _, expected = gdalwarp(path, "-t_srs", "EPSG:4326", "-r", METHODS[method])
    _, found = cogpu_warp(path, crs="EPSG:4326", resampling=method)
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("method", ["average", "max", "mode", "sum"])
def test_seam_in_windows(method, tmp_path):
    """Pixels over the seam of a globe are the same in every window: each reads all columns."""
    path = write(tmp_path / "globe.tif", GLOBE, samples("f4", (120, 60)))
    with cogpu.open_mosaic(path, crs="EPSG:4326", bbox=(150.3, -40.2, 210.3, 40.2), shape=(40, 31),
                           resampling=method) as mosaic:
        whole = np.asarray(mosaic.read())
        for device in set(DEVICES) - {"cpu", "cuda"}:
            assert np.array_equal(np.asarray(mosaic.read(device=device)), whole)
        for window in (0, 0, 40, 15), (3, 14, 9, 17), (20, 15, 21, 16), (0, 15, 40, 31):
            top, left, bottom, right = window
            assert np.array_equal(mosaic.read(window=window), whole[:, top:bottom, left:right])


# ---- what has no pixels, or no answer ------------------------------------------------------------

@pytest.mark.parametrize("words", [
    {"crs": "EPSG:32632", "bbox": (9e5, 6e6, 9.1e5, 6.01e6), "shape": (10, 10)},
    {"crs": "EPSG:4326", "bbox": (-170, -50, -160, -40), "shape": (10, 10)},
    {"crs": "+proj=ortho +lat_0=-45 +lon_0=-170", "bbox": (-1e6, -1e6, 1e6, 1e6), "shape": (5, 5)},
    {"crs": "+proj=ortho +lat_0=-45 +lon_0=-170", "bbox": (-9e6, -9e6, 9e6, 9e6), "shape": (9, 9)}])
@pytest.mark.parametrize("method", ["nearest", "lanczos", "mode", "sum"])
def test_without_overlap(method, words, tmp_path):
    source = north_up("EPSG:32632", (30, 20), 5e5, 5e6, 100)
    path = write(tmp_path / "a.tif", source, samples("f4", (30, 20)), nodata=-9999)
    assert (cogpu_warp(path, resampling=method, **words)[1] == -9999).all()


@pytest.mark.parametrize("words, message", [
    ({"crs": "EPSG:4326", "bbox": (float("nan"), 0, 1, 1), "shape": (3, 3)}, "finite"),
    ({"crs": "EPSG:4326", "bbox": (1, 1, 1, 2), "shape": (3, 3)}, "left < right"),
    ({"crs": "EPSG:4326", "bbox": (0, 0, 1, 1), "shape": (0, 0)}, "neither height nor width"),
    ({"crs": "EPSG:4326", "resolution": 0}, "size 0"),
    ({"crs": "EPSG:4326", "resolution": float("nan")}, "not a number"),
    ({"crs": "EPSG:4326", "resolution": 1e-12}, "2147483647"),
    ({"crs": "EPSG:4326", "transform": (0, 0, 0, 0, 0, 0), "shape": (3, 3)}, "no inverse"),
    ({"crs": "EPSG:4326", "transform": (1, 2, 0, 2, 4, 0), "shape": (3, 3)}, "no inverse"),
    ({"crs": "EPSG:999999"}, "does not know"), ({"crs": "EPSG:4978"}, "no horizontal CRS"),
    ({"crs": "EPSG:5773"}, "no horizontal CRS"), ({"crs": 'LOCAL_CS["x",UNIT["metre",1]]'}, "cannot transform"),
    ({"crs": "+proj=ortho +lat_0=-45 +lon_0=-170"}, "441 of 441 positions")])
def test_grids_that_are_refused(words, message, tmp_path):
    path = write(tmp_path / "a.tif", north_up("EPSG:32632", (30, 20), 5e5, 5e6, 100), samples("f4", (30, 20)))
    with pytest.raises(cogpu.Error, match=message):
        cogpu_warp(path, **words)


@pytest.mark.parametrize("profile, message", [
    ({}, "a.tif: it has no CRS"), ({"transform": Affine(1, 0, 0, 0, -1, 5)}, "a.tif: it has no CRS"),
    ({"crs": "EPSG:32632"}, "a.tif: it has no transform")])
def test_sources_without_a_place(profile, message, tmp_path):
    kind = dict(driver="GTiff", width=5, height=5, count=1, dtype="uint8")
    with rasterio.open(tmp_path / "a.tif", "w", **kind, **profile) as file:
        file.write(np.ones((1, 5, 5), "uint8"))
    with pytest.raises(cogpu.Error, match=message):
        cogpu_warp(tmp_path / "a.tif", crs="EPSG:4326")
