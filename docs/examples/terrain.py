"""The terrain of the worked examples: made-up mountains with an unsurveyed lake, so that no data needs to be downloaded."""

import numpy as np
import xarray


def mountains(side=768, seed=11):
    """Heights in metres as an xarray.DataArray (y, x) with coordinates and CRS; NaN where nothing was measured."""
    random = np.random.default_rng(seed)
    frequency = np.hypot(np.fft.fftfreq(side)[:, None], np.fft.rfftfreq(side)[None, :])
    frequency[0, 0] = np.inf
    spectrum = np.fft.rfft2(random.standard_normal((side, side))) * (frequency + 2e-3) ** -2.7
    heights = np.fft.irfft2(spectrum, (side, side))
    heights = (900 + 260 * heights / heights.std()).astype("float32")
    y, x = np.ogrid[:side, :side]
    heights[(x - 0.7 * side) ** 2 / 2.5 + (y - 0.3 * side) ** 2 < (side / 18) ** 2] = np.nan
    return xarray.DataArray(heights, dims=("y", "x"), attrs={"crs": "EPSG:32632"},
                            coords={"y": 5_200_000 - 10.0 * (np.arange(side) + 0.5),
                                    "x": 600_000 + 10.0 * (np.arange(side) + 0.5)})
