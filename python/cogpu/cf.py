"""Parameters of a WKT 2 CRS under the names of the CF conventions (appendix F), spelled as pyproj spells them.

pyproj takes milliseconds for each new CRS, more than all else of opening a file.
"""

import re

NUMBER = r",(-?\d[-+.\deE]*)"
TEXT = r'"([^"]*(?:""[^"]*)*)"'
# KEYWORD["text",number,number,LENGTHUNIT["text",number]]: what CF asks for. Other texts match too, so that none is
# searched.
PART = re.compile(rf'(?:\b([A-Z]+)\[)?{TEXT}(?:{NUMBER})?(?:{NUMBER})?(?:,LENGTHUNIT\["[^"]*"{NUMBER})?')

EASTING, NORTHING = ("false easting",), ("false northing",)
LATITUDE, LONGITUDE = ("latitude of natural origin",), ("longitude of natural origin",)
SCALE = ("scale factor at natural origin",)
MAY_BE_ABSENT = (*EASTING, *NORTHING, *LATITUDE)
SHIFTS = {"false_easting": EASTING, "false_northing": NORTHING}
ABOUT_A_POINT = {"latitude_of_projection_origin": LATITUDE, "longitude_of_projection_origin": LONGITUDE, **SHIFTS}
CONE = {"standard_parallel": [("latitude of 1st standard parallel",), ("latitude of 2nd standard parallel",)],
        "latitude_of_projection_origin": ("latitude of false origin",),
        "longitude_of_central_meridian": ("longitude of false origin",),
        "false_easting": ("easting at false origin",), "false_northing": ("northing at false origin",)}
GEOSTATIONARY = {"perspective_point_height": ("satellite height",), **ABOUT_A_POINT}

# By the name of the method: the grid mapping, and for each attribute the names that its parameter may have; two
# parameters make a pair.
METHODS = {
    "albers equal area": ("albers_conical_equal_area", CONE),
    "azimuthal equidistant": ("azimuthal_equidistant", ABOUT_A_POINT),
    "modified azimuthal equidistant": ("azimuthal_equidistant", ABOUT_A_POINT),
    "geostationary satellite (sweep x)": ("geostationary", GEOSTATIONARY),
    "geostationary satellite (sweep y)": ("geostationary", GEOSTATIONARY),
    "lambert azimuthal equal area": ("lambert_azimuthal_equal_area", ABOUT_A_POINT),
    "lambert conic conformal (2sp)": ("lambert_conformal_conic", CONE),
    "lambert conic conformal (1sp)": ("lambert_conformal_conic", {
        "standard_parallel": LATITUDE, "longitude_of_central_meridian": LONGITUDE, **SHIFTS}),
    "lambert cylindrical equal area": ("lambert_cylindrical_equal_area", {
        "standard_parallel": ("latitude of 1st standard parallel",), "longitude_of_central_meridian": LONGITUDE,
        **SHIFTS}),
    "mercator (variant a)": ("mercator", {
        "standard_parallel": LATITUDE, "longitude_of_projection_origin": LONGITUDE, **SHIFTS,
        "scale_factor_at_projection_origin": SCALE}),
    "mercator (variant b)": ("mercator", {
        "standard_parallel": ("latitude of 1st standard parallel",), "longitude_of_projection_origin": LONGITUDE,
        **SHIFTS}),
    "hotine oblique mercator (variant b)": ("oblique_mercator", {
        "latitude_of_projection_origin": ("latitude of projection centre",),
        "longitude_of_projection_origin": ("longitude of projection centre",),
        "azimuth_of_central_line": ("azimuth of initial line", "azimuth at projection centre"),
        "scale_factor_at_projection_origin": ("scale factor on initial line", "scale factor at projection centre"),
        "false_easting": ("easting at projection centre",), "false_northing": ("northing at projection centre",)}),
    "orthographic": ("orthographic", ABOUT_A_POINT),
    "polar stereographic (variant a)": ("polar_stereographic", {
        "latitude_of_projection_origin": LATITUDE, "straight_vertical_longitude_from_pole": LONGITUDE, **SHIFTS,
        "scale_factor_at_projection_origin": SCALE}),
    "polar stereographic (variant b)": ("polar_stereographic", {
        "standard_parallel": ("latitude of standard parallel",),
        "straight_vertical_longitude_from_pole": ("longitude of origin",), **SHIFTS}),
    "sinusoidal": ("sinusoidal", {"longitude_of_projection_origin": LONGITUDE, **SHIFTS}),
    "stereographic": ("stereographic", {**ABOUT_A_POINT, "scale_factor_at_projection_origin": SCALE}),
    "transverse mercator": ("transverse_mercator", {
        "latitude_of_projection_origin": LATITUDE, "longitude_of_central_meridian": LONGITUDE, **SHIFTS,
        "scale_factor_at_central_meridian": SCALE}),
    "vertical perspective": ("vertical_perspective", {
        "perspective_point_height": ("viewpoint height",),
        "latitude_of_projection_origin": ("latitude of topocentric origin",),
        "longitude_of_projection_origin": ("longitude of topocentric origin",), **SHIFTS}),
}
TO_WGS84 = ("x-axis translation", "y-axis translation", "z-axis translation", "x-axis rotation", "y-axis rotation",
            "z-axis rotation", "scale difference")


def attributes(wkt):
    """A dict; empty where CF has no grid mapping for the system, or the text is no WKT 2."""
    system, _, target = wkt.partition(",TARGETCRS[")  # of a bound system
    try:
        (parts, parameters), (_, shifts) = _parts(system), _parts(target)
    except ValueError:
        return {}
    try:
        attrs = _horizontal(parts, parameters)
    except (KeyError, ValueError):
        attrs = {}
    for keyword, name in (("GEOIDMODEL", "geoid_name"), ("VDATUM", "geopotential_datum_name")):
        if keyword in parts:
            attrs[name] = parts[keyword][0]
    if target and attrs:
        attrs["towgs84"] = _shift(shifts)
    return attrs


def _shift(parameters):
    """Three metres, or with them three seconds and the parts per million that a factor stands for."""
    numbers = [parameters[name] for name in TO_WGS84 if name in parameters]
    return numbers[:6] + [round((factor - 1) * 1e6, 8) for factor in numbers[6:]]


def _parts(wkt):
    """By keyword, the first of its kind: text, two numbers, the unit; and the numbers of parameters by name."""
    parts, parameters = {}, {}
    for keyword, text, first, second, unit in PART.findall(wkt):
        if keyword == "PARAMETER":
            parameters[text.lower()] = float(first)
        elif keyword and keyword not in parts:
            parts[keyword] = text.replace('""', '"'), first, second, unit
    return parts, parameters


def _horizontal(parts, parameters):
    if "PROJCRS" in parts:
        method = parts["METHOD"][0].lower()
        mapping, wanted = METHODS[method]
        attrs = _datum(parts, "BASEGEOGCRS" if "BASEGEOGCRS" in parts else "BASEGEODCRS")
        attrs |= {"projected_crs_name": parts["PROJCRS"][0], "grid_mapping_name": mapping}
        if mapping == "geostationary":
            attrs["sweep_angle_axis"] = method[-2]
        return attrs | {name: _value(parameters, names) for name, names in wanted.items()}
    if "GEOGCRS" in parts and "DERIVINGCONVERSION" not in parts:
        return _datum(parts, "GEOGCRS") | {"grid_mapping_name": "latitude_longitude"}
    return {}


def _value(parameters, names):
    """Of the first of the names that is there. Shifts and origins that are not stated are 0."""
    if isinstance(names, list):
        return tuple(_value(parameters, each) for each in names)
    name = next((name for name in names if name in parameters), names[0])
    return parameters.get(name, 0.0) if name in MAY_BE_ABSENT else parameters[name]


def _datum(parts, system):
    datum = parts["DATUM"] if "DATUM" in parts else parts["ENSEMBLE"]
    name, major, inverse, unit = parts["ELLIPSOID"]
    major, inverse = float(major) * float(unit or 1), float(inverse)
    return {"semi_major_axis": major, "semi_minor_axis": major * (1 - 1 / inverse) if inverse else major,
            "inverse_flattening": inverse, "reference_ellipsoid_name": name,
            "longitude_of_prime_meridian": float(parts["PRIMEM"][1]), "prime_meridian_name": parts["PRIMEM"][0],
            "geographic_crs_name": parts[system][0], "horizontal_datum_name": datum[0]}
