"""Decimated reads: pixels of a level of a file become an output of another size, by GDAL's definitions.

A method is a list of weights for each row and each column of the output: which pixels of the level it takes, and how
much of each. Pixels that are not valid have no weight. Arrays stay where they are, on the host or a GPU: NumPy and CuPy
do the same to them.
"""


from .grids import inner_part
from .later import np

CHUNK_SAMPLES = 1 << 24  # of the level, that are held at once
EDGE = 1e-8  # of a pixel: what GDAL takes for the pixel's edge
LANCZOS_LOBES = 3


def array_module_of(array):
    """NumPy, or CuPy for its arrays."""
    if isinstance(array, np.ndarray):
        return np
    import cupy
    return cupy


# ---- windows that reach beyond a level -------------------------------------------------------------------------------


def read_padded(out, bounds, shape, fill, read):
    """Fills `out` (band, row, column), which stands for a window, where that is outside of the level of `shape`; has
    the rest read by `read(inner window, view of out)`. `fill` is a value, or one for each band."""
    row0, column0, *_ = bounds
    inner = inner_part(bounds, shape)
    if inner != tuple(bounds):
        out[...] = array_module_of(out).asarray(fill, dtype=out.dtype).reshape(-1, 1, 1)
    if inner:
        read(inner, out[:, inner[0] - row0:inner[2] - row0, inner[1] - column0:inner[3] - column0])
    return out


# ---- outputs of another size -----------------------------------------------------------------------------------------


def resampled(grid, rows, columns, read, fill, nodata, out):
    """Puts rows and columns (slices) of the output of a Grid into `out` (band, row, column), and returns it.

    read    function of a window of the level, (row0, col0, row1, col1), which may reach beyond it where the grid is
            boundless: its pixels, and a mask that is not 0 where they are valid, or None where all are
    fill    what pixels of the output become that have no valid pixel
    nodata  a value that must not stand for a valid pixel, or None
    """
    across = _taps(grid, 1, columns)
    width = int(across[0].max()) + 1 - int(across[0].min())
    step = max(1, int(CHUNK_SAMPLES / (max(grid.ratios[0], 1.0) * width * out.shape[0])))
    for start in range(rows.start, rows.stop, step):
        part = slice(start, min(start + step, rows.stop))
        down = _taps(grid, 0, part)
        row0, column0 = int(down[0].min()), int(across[0].min())
        pixels, valid = read((row0, column0, int(down[0].max()) + 1, column0 + width))
        target = out[:, part.start - rows.start:part.stop - rows.start]
        target[...] = _combined(grid.resampling, pixels, valid, (down[0] - row0, down[1]),
                                (across[0] - column0, across[1]), fill, nodata, out.dtype)
    return out


def _taps(grid, axis, picked):
    """Of each output row or column that is picked: numbers of the pixels of the level that it takes, and their weights,
    two arrays (output, tap). Where there are fewer than the most, the last is repeated with no weight."""
    offset, ratio = (grid.top, grid.left)[axis], grid.ratios[axis]
    first, end = (None, None) if grid.boundless else (0, grid.level_shape[axis])
    places = np.arange(picked.start, picked.stop)
    if grid.resampling == "nearest":
        pixels = np.floor((places + 0.5) * ratio + offset + 1e-10).astype("int64")
        return np.clip(pixels, first, None if end is None else end - 1)[:, None], np.ones((len(places), 1))
    if grid.resampling in ("average", "rms", "mode"):
        low, high = places * ratio + offset, (places + 1) * ratio + offset
        starts, stops = np.floor(low + EDGE), np.ceil(high - EDGE)
        weigh = lambda pixels: np.minimum(pixels + 1, high[:, None]) - np.maximum(pixels, low[:, None])  # noqa: E731
    else:
        kernel, radius = KERNELS[grid.resampling]
        stretch = max(ratio, 1.0)
        centres = (places + 0.5) * ratio + offset
        starts, stops = np.floor(centres - radius * stretch + 0.5), np.floor(centres + radius * stretch + 0.5)
        weigh = lambda pixels: kernel((pixels + 0.5 - centres[:, None]) / stretch)  # noqa: E731
    if end is not None:
        starts, stops = np.clip(starts, 0, end - 1), np.clip(stops, 1, end)
    stops = np.maximum(stops, starts + 1)
    pixels = starts[:, None] + np.arange(int((stops - starts).max()))
    weights = weigh(pixels)
    weights = np.maximum(weights, 0) if grid.resampling in AREAS else weights
    weights = np.where(pixels < stops[:, None], weights, 0)
    return np.minimum(pixels, stops[:, None] - 1).astype("int64"), weights


def _combined(resampling, pixels, valid, down, across, fill, nodata, dtype):
    """The output's pixels, of dtype."""
    module = array_module_of(pixels)
    down, across = (tuple(module.asarray(part) for part in taps) for taps in (down, across))
    if resampling == "nearest":
        out = pixels[:, down[0]][:, :, 0][:, :, across[0][:, 0]]
        return _filled(module, out, _nearest_mask(valid, down, across), fill) if valid is not None else out
    if resampling == "mode":
        out, has_any = _modes(module, pixels, valid, down, across)
    else:
        out, has_any = _weighted(module, resampling, pixels, valid, down, across)
    if dtype.kind in "iu" and resampling != "mode":
        info = np.iinfo(dtype)
        rounded = module.clip(module.floor(out + 0.5), info.min, None)
        is_most = rounded >= float(info.max)  # which a double may exceed, and a cast not survive
        out = module.where(is_most, module.asarray(info.max, dtype=dtype),
                           module.where(is_most, 0, rounded).astype(dtype))
    out = out.astype(dtype)
    if nodata is not None and nodata == nodata:  # a valid pixel that comes out as nodata would be called invalid
        out = module.where(has_any & (out == nodata), module.asarray(_beside(nodata, dtype)), out)
    return _filled(module, out, has_any, fill)


def _nearest_mask(valid, down, across):
    return valid[:, down[0][:, 0]][:, :, across[0][:, 0]] != 0


def _filled(module, out, has_any, fill):
    return module.where(has_any, out, module.asarray(fill, dtype=out.dtype).reshape(-1, 1, 1))


def _beside(nodata, dtype):
    """The value next to nodata that takes its place, as GDAL's: upward, unless that is the largest."""
    if dtype.kind in "iu":
        return dtype.type(nodata - 1 if nodata >= np.iinfo(dtype).max else nodata + 1)
    return np.nextafter(dtype.type(nodata), dtype.type(np.inf)) if dtype.kind == "f" else dtype.type(nodata)


# ---- sums ------------------------------------------------------------------------------------------------------------


def _weighted(module, resampling, pixels, valid, down, across):
    """Means of valid pixels by weight, and where there is one. Averages weigh all pixels of an area at once, kernels
    first those of each row and then of the rows, which differs where some pixels are not valid."""
    values = pixels.astype("complex128" if pixels.dtype.kind == "c" else "float64")
    values = values * values if resampling == "rms" else values
    if valid is None:
        out = _sum(_sum(values, across, 2), down, 1) / (across[1].sum(1) * down[1].sum(1)[:, None])
        return (module.sqrt(out) if resampling == "rms" else out), module.ones(out.shape, bool)
    weight = (valid != 0).astype("float64")
    values = module.where(valid != 0, values, 0)
    if resampling in AREAS:
        sums, weights = (_sum(_sum(part, across, 2), down, 1) for part in (values, weight))
        has_any = weights > 1e-6
        out = sums / module.where(has_any, weights, 1)
        return (module.sqrt(out) if resampling == "rms" else out), has_any
    has_negative_weights = resampling in ("cubic", "lanczos")
    for taps, axis in ((across, 2), (down, 1)):
        sums, weights = _sum(values, taps, axis), _sum(weight, taps, axis)
        has_any = weights > 1e-6
        if has_negative_weights:
            has_any &= _has_run(module, weight, taps, axis)
        values = module.where(has_any, sums / module.where(has_any, weights, 1), 0)
        weight = has_any.astype("float64")
    return values, has_any


def _has_run(module, weight, taps, axis):
    """Whether half of the pixels that an output takes are valid and neighbours: where fewer are, weights that are
    negative may sum up to nearly nothing, and the mean is no value of the surroundings. As in GDAL."""
    pixels, shape = taps[0], (-1, 1) if axis == 1 else (-1,)
    is_new = module.ones(pixels.shape, bool)
    is_new[:, 1:] = pixels[:, 1:] != pixels[:, :-1]  # and not a repeated last one
    run, longest = 0, 0
    for tap in range(pixels.shape[1]):
        run = (run + 1) * weight.take(pixels[:, tap], axis=axis) * is_new[:, tap].reshape(shape)
        longest = module.maximum(longest, run)
    return longest >= (is_new.sum(1) // 2).reshape(shape)


def _sum(values, taps, axis):
    """Sums along an axis of what each output takes, by weight."""
    pixels, weights = taps
    shape = (-1, 1) if axis == 1 else (-1,)
    out = 0.0
    for tap in range(pixels.shape[1]):
        out = out + values.take(pixels[:, tap], axis=axis) * weights[:, tap].reshape(shape)
    return out


def _modes(module, pixels, valid, down, across):
    """The value that most valid pixels have, of several the one that reaches that number first, row by row; and where
    there is a valid pixel."""
    bands, (rows, columns) = pixels.shape[0], (down[0].shape[0], across[0].shape[0])
    shape = (bands, rows, columns, down[0].shape[1] * across[0].shape[1])
    index = down[0][:, :, None, None], across[0][None, None]
    is_taken = ((down[1] > 0)[:, :, None, None] & (across[1] > 0)[None, None]).transpose(0, 2, 1, 3)

    def gathered(values):
        return values[:, index[0], index[1]].transpose(0, 1, 3, 2, 4)

    taken = gathered(valid != 0) & is_taken if valid is not None else module.broadcast_to(
        is_taken, (bands, *is_taken.shape))
    values, taken = gathered(pixels).reshape(shape), taken.reshape(shape)
    order = module.argsort(values, axis=-1, kind="stable")
    values, taken = (module.take_along_axis(part, order, -1) for part in (values, taken))
    counts = module.zeros(shape, "int32")
    run = module.zeros(shape[:-1], "int32")
    for tap in range(shape[-1]):
        if tap:
            run = module.where(values[..., tap] == values[..., tap - 1], run, 0)
        run = run + taken[..., tap]
        counts[..., tap] = run
    is_most = taken & (counts == counts.max(-1)[..., None])
    best = module.where(is_most, order, shape[-1]).argmin(-1)[..., None]
    return module.take_along_axis(values, best, -1)[..., 0], counts.max(-1) > 0


# ---- kernels ---------------------------------------------------------------------------------------------------------


def _bilinear(x):
    return np.maximum(1 - abs(x), 0)


def _cubic(x):
    """Keys' kernel with a = -1/2."""
    x = abs(x)
    return np.where(x <= 1, (1.5 * x - 2.5) * x * x + 1, np.where(x <= 2, ((-0.5 * x + 2.5) * x - 4) * x + 2, 0))


def _cubic_spline(x):
    """The cubic B-spline."""
    x = abs(x)
    return np.where(x <= 1, 2 / 3 + x * x * (0.5 * x - 1), np.where(x <= 2, (2 - x) ** 3 / 6, 0))


def _lanczos(x):
    return np.where(abs(x) < LANCZOS_LOBES, np.sinc(x) * np.sinc(x / LANCZOS_LOBES), 0)


KERNELS = {"bilinear": (_bilinear, 1), "cubic": (_cubic, 2), "cubic_spline": (_cubic_spline, 2),
           "lanczos": (_lanczos, LANCZOS_LOBES)}
AREAS = ("average", "rms", "mode")
