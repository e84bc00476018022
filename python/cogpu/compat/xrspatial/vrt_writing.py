"""VRTs by xarray-spatial's rules: to_geotiff of a .vrt path writes a folder of tiles and an index; `write_vrt` makes an
index of files that are there."""

import contextlib
import itertools
import os
import shutil
import tempfile
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

import numpy as np

from ...errors import InvalidArgumentError
from ...file import File
from ...file import open as open_file
from .errors import VRTUnsupportedError
from .vrt import are_same, system_of, TYPES
from .write_checks import check_number

if TYPE_CHECKING:
    import xarray as xr

SAME_SIZE = 1e-6  # of a pixel's size
NAMES = {name: kind for kind, name in TYPES.items()}


def write_tiles(data: "xr.DataArray", axes: tuple[str, str], path: str, tile_size: int, nodata: Any,
                write: Any) -> str:
    """Writes the tiles by `write(part, path)` into a folder beside the VRT, which appears when all are there."""
    if data.ndim != 2:
        raise InvalidArgumentError(f"{path}: tiled VRT output takes 2D arrays only, not {data.dims}")
    stem = os.path.splitext(os.path.abspath(path))[0]
    folder = f"{stem}_tiles"
    if os.path.isdir(folder) and os.listdir(folder):
        raise FileExistsError(f"{folder}: the folder of tiles exists and is not empty; remove it, or choose another "
                              "path")
    staging = tempfile.mkdtemp(prefix=f"{os.path.basename(folder)}.tmp-", dir=os.path.dirname(folder))
    try:
        os.chmod(staging, 0o777 & ~_umask())
        names = [_write_tile(data, axes, staging, place, write) for place in _places(data, axes, tile_size)]
        with contextlib.suppress(FileNotFoundError):
            os.rmdir(folder)
        os.rename(staging, folder)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise
    try:
        write_vrt(path, [os.path.join(folder, name) for name, _ in names], nodata=nodata,
                  dst_offsets=[offset for _, offset in names])
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return path


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _places(data: "xr.DataArray", axes: tuple[str, str], tile_size: int) -> Any:
    """((row of tiles, rows), (column of tiles, columns)): chunks of a Dask array, else squares."""
    spans = []
    for axis in axes:
        sizes = data.chunksizes.get(axis) if data.chunks is not None else None
        stops = list(itertools.accumulate(sizes)) if sizes else \
            [min(stop, data.sizes[axis]) for stop in range(tile_size, data.sizes[axis] + tile_size, tile_size)]
        spans.append(list(enumerate(zip([0, *stops], stops))))
    return itertools.product(*spans)


def _write_tile(data: "xr.DataArray", axes: tuple[str, str], folder: str, place: Any,
                write: Any) -> tuple[str, tuple[int, int]]:
    (row, rows), (column, columns) = place
    part = data.isel({axes[0]: slice(*rows), axes[1]: slice(*columns)})
    transform = data.attrs.get("transform")
    if transform is not None and not any(axis in data.coords for axis in axes):
        a, b, c, d, e, f = tuple(transform)[:6]
        part = part.assign_attrs(transform=(a, b, c + columns[0] * a + rows[0] * b, d, e,
                                            f + columns[0] * d + rows[0] * e))
    name = f"tile_{row:02d}_{column:02d}.tif"
    write(part, os.path.join(folder, name))
    return name, (columns[0], rows[0])


# ---- the index -------------------------------------------------------------------------------------------------------


def write_vrt(path: Any, source_files: Sequence[Any], *, relative: bool = True, crs: Any = None, nodata: Any = None,
              dst_offsets: "Sequence[tuple[int, int]] | None" = None) -> str:
    """Writes a VRT over GeoTIFFs of one pixel size, type, number of bands and CRS: a SimpleSource each. Returns its
    path.

    Parameters
    ----------
    source_files : paths. In the VRT they are relative to it, where `relative` is True (default).
    crs : CRS of the VRT (default: that of the files).
    nodata : NoDataValue of each band (default: that of the files, which must be the same).
    dst_offsets : (column, row) of each file, for several files that are not georeferenced.
    """
    from ... import georef
    path = os.fspath(path)
    check_number("nodata", nodata)
    if not source_files:
        raise InvalidArgumentError(f"{path}: source_files is empty")
    names = [os.path.abspath(os.fspath(name)) for name in source_files]
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(open_file(name)) for name in names]
        _check_alike(files, nodata)
        offsets = _offsets(files, dst_offsets)
        left, top = (min(pair[axis] for pair in offsets) for axis in (0, 1))
        places = [(column - left, row - top) for column, row in offsets]
        text = _index(files, [_shown(name, path, relative) for name in names], places,
                      georef.crs_text(crs) or files[0].wkt or files[0].crs, files[0].nodata if nodata is None else
                      nodata, (left, top))
    part = f"{path}.tmp-{os.getpid()}"
    try:
        with open(part, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(part, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.remove(part)
        raise
    return path


def _check_alike(files: list[File], nodata: Any) -> None:
    first = files[0]
    if first.dtype.name not in NAMES:
        raise VRTUnsupportedError(f"{first.name}: a VRT here has no pixels of {first.dtype}")
    for file in files:
        for name, one, other in (("dtype", file.dtype, first.dtype), ("band count", file.shape[0], first.shape[0]),
                                 ("raster type", file.area_or_point, first.area_or_point),
                                 ("georeferencing", file.has_transform, first.has_transform)):
            if one != other:
                raise VRTUnsupportedError(f"{file.name}: its {name} is {one}, that of {first.name} {other}")
        if (file.crs is None) != (first.crs is None) or file.crs is not None and first.crs is not None and \
                not are_same(file.crs, first.crs):
            raise VRTUnsupportedError(f"{file.name}: its CRS differs from that of {first.name}")
        same = file.nodata == first.nodata or (file.nodata != file.nodata and first.nodata != first.nodata)
        if nodata is None and not same:
            raise VRTUnsupportedError(f"{file.name}: its nodata is {file.nodata}, that of {first.name} {first.nodata}; "
                                      "give nodata=")
        if file.transform is None or first.transform is None:
            continue
        if file.transform.b or file.transform.d:
            raise VRTUnsupportedError(f"{file.name}: its grid is rotated")
        for side in ("a", "e"):
            mine, due = getattr(file.transform, side), getattr(first.transform, side)
            if abs(mine - due) > SAME_SIZE * abs(due):
                raise VRTUnsupportedError(f"{file.name}: its pixel size is {mine}, that of {first.name} {due}")


def _offsets(files: list[File], given: Any) -> list[tuple[int, int]]:
    """(column, row) of each file on the grid of the first."""
    if given is not None:
        return [(int(column), int(row)) for column, row in given]
    if not files[0].has_transform:
        if len(files) > 1:
            raise InvalidArgumentError("dst_offsets: several files without georeferencing need it")
        return [(0, 0)]
    origin: Any = files[0].transform
    return [(round((file.transform.c - origin.c) / origin.a), round((file.transform.f - origin.f) / origin.e))
            for file in files if file.transform is not None]


def _shown(name: str, path: str, relative: bool) -> tuple[str, int]:
    folder = os.path.dirname(os.path.abspath(path))
    return (os.path.relpath(name, folder).replace(os.sep, "/"), 1) if relative else (name, 0)


def _index(files: list[File], names: list[tuple[str, int]], places: list[tuple[int, int]], crs: "str | None",
           nodata: Any, corner: tuple[int, int]) -> str:
    width = max(column + file.shape[2] for file, (column, _) in zip(files, places))
    height = max(row + file.shape[1] for file, (_, row) in zip(files, places))
    lines = [f'<VRTDataset rasterXSize="{width}" rasterYSize="{height}">']
    if crs:
        lines.append(f"  <SRS>{escape(system_of(crs)[1] or crs)}</SRS>")
    if files[0].transform is not None:
        lines.append(f"  <GeoTransform>{', '.join(map(repr, _placed(files[0], corner)))}</GeoTransform>")
    if files[0].area_or_point == "Point":
        lines.append('  <Metadata>\n    <MDI key="AREA_OR_POINT">Point</MDI>\n  </Metadata>')
    for band in range(1, files[0].shape[0] + 1):
        lines.append(f'  <VRTRasterBand dataType="{NAMES[files[0].dtype.name]}" band="{band}">')
        if nodata is not None:
            lines.append(f"    <NoDataValue>{_number(nodata)}</NoDataValue>")
        for file, (name, is_relative), (column, row) in zip(files, names, places):
            _, rows, columns = file.shape
            lines += ["    <SimpleSource>",
                      f'      <SourceFilename relativeToVRT="{is_relative}">{escape(name)}</SourceFilename>',
                      f"      <SourceBand>{band}</SourceBand>",
                      f'      <SrcRect xOff="0" yOff="0" xSize="{columns}" ySize="{rows}"/>',
                      f'      <DstRect xOff="{column}" yOff="{row}" xSize="{columns}" ySize="{rows}"/>',
                      "    </SimpleSource>"]
        lines.append("  </VRTRasterBand>")
    return "\n".join([*lines, "</VRTDataset>", ""])


def _placed(file: File, corner: tuple[int, int]) -> tuple[float, ...]:
    """The GeoTransform. xarray-spatial states the first centre where pixels are points."""
    transform: Any = file.transform
    half = 0.5 if file.area_or_point == "Point" else 0.0
    a, e = transform.a, transform.e
    return (transform.c + (corner[0] + half) * a, a, 0.0, transform.f + (corner[1] + half) * e, 0.0, e)


def _number(nodata: Any) -> str:
    value = nodata.item() if isinstance(nodata, np.generic) else nodata
    return "nan" if value != value else repr(value)
