"""Classes and colours of styles."""

import itertools
from xml.etree import ElementTree

import geopandas as gpd
import numpy as np
import pytest
import shapely

import psd
from psd._util.colours import LINES, RELIABILITY, SEQUENTIAL, class_breaks, class_colours
from psd.export._maps import _QUALITIES, _UNRELIABLE, named_rows, view_of
from psd.export._styles import layer_styles

# Machado, Oliveira and Fernandes: "A Physiologically-Based Model for Simulation of Color Vision
# Deficiency", 2009, for the strongest of each kind, on linear RGB.
VISION = {
    "all": np.eye(3),
    "no red": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
               [-0.003882, -0.048116, 1.051998]],
    "no green": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
                 [-0.011820, 0.042940, 0.968881]],
    "no blue": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
                [0.004733, 0.691367, 0.303900]],
}  # fmt: skip
TO_XYZ = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
PALETTES = {"maps": SEQUENTIAL, "errors": RELIABILITY, "quality": _QUALITIES,
            "reliable": _UNRELIABLE, "lines": LINES}  # fmt: skip


def seen(colour, vision):
    """Colour as it is seen, in CIELAB."""
    values = np.array([int(colour[start : start + 2], 16) for start in (1, 3, 5)]) / 255
    linear = np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)
    linear = np.clip(VISION[vision] @ linear, 0, 1)
    xyz = TO_XYZ @ linear / np.array([0.95047, 1, 1.08883])
    f = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("colours", PALETTES.values(), ids=PALETTES)
def test_colours_are_told_apart_with_any_colour_vision(colours):
    """Apart by 8 in CIELAB, more than three times what is just seen."""
    for vision in VISION:
        for first, second in itertools.combinations(colours, 2):
            apart = np.linalg.norm(seen(first, vision) - seen(second, vision))
            assert apart > 8, (vision, first, second)


def test_breaks_are_few_round_and_rise():
    for high, low in itertools.product([0.002, 0.7, 3, 44, 1e3, 123_456, 9e9], [1, 0.1, 1e-6]):
        values = np.geomspace(low * high, high, 50)
        breaks = class_breaks(values)
        assert len(breaks) < len(SEQUENTIAL)
        assert breaks == sorted(set(breaks))
        assert all(values.min() < each < values.max() for each in breaks)
        assert {f"{each:e}"[0] for each in breaks} <= {"1", "2", "5"}
    for nothing in ([], [0.0, 0.0], [-3.0], [np.nan]):
        assert class_breaks(np.array(nothing)) == []


def test_tiny_cells_of_huge_densities_do_not_take_all_classes():
    values = np.array([*np.linspace(1, 100, 500), *np.geomspace(1e4, 1e8, 500)])
    areas = np.array([1.0] * 500 + [1e-9] * 500)
    assert max(class_breaks(values, areas)) <= 100
    assert max(class_breaks(values)) > 1e6


def test_colours_run_from_the_first_to_the_last():
    for classes in range(2, len(SEQUENTIAL) + 1):
        colours = class_colours(classes)
        assert (colours[0], colours[-1], len(set(colours))) == (
            SEQUENTIAL[0],
            SEQUENTIAL[-1],
            classes,
        )


@pytest.mark.parametrize("counts", [[0, 0, 0, 0], [5, 1, 0, 2], [10**9, 1, 0, 2]])
def test_each_value_has_one_class(counts):
    domain = psd.Domain(bounds=(0, 0, 2, 2), crs="EPSG:3857", lattice=(2, 2))
    release = psd.Release.from_counts(
        psd.decompositions.grid_tree(domain, 2), counts, 1, domain=domain
    )
    table = release.to_geopandas()
    for style in layer_styles(table):
        tree = ElementTree.fromstring(style.qml.partition("\n")[2])
        ranges = [(float(r.get("lower")), float(r.get("upper"))) for r in tree.iter("range")]
        assert all(low < high for low, high in ranges)
        assert all(a[1] == pytest.approx(b[0], rel=1e-11) for a, b in itertools.pairwise(ranges))
        column = tree.find("renderer-v2").get("attr")
        values = table["relative_error" if "relative_error" in column else column]
        if column == 'coalesce("relative_error", 100000000000)':  # infinite: no value in the file
            values = values.replace(np.inf, 1e11)
        assert ranges[0][0] <= values.min()
        assert values.max() <= ranges[-1][1]
        assert len(list(tree.iter("symbol"))) == len(ranges)


def test_names_with_quotes_stay_names_in_expressions():
    name = "mean_fare\" = '' OR \"a"
    table = gpd.GeoDataFrame(
        {name: [1.0, 2, 3, 4], f"{name}_quality": ["good", "good", "use with care", "poor"]},
        geometry=shapely.box([1, 2, 3, 4], 1, [2, 3, 4, 5], 2),
        crs="EPSG:3857",
    )
    [style] = layer_styles(table)
    tree = ElementTree.fromstring(style.qml.partition("\n")[2])
    # QGIS looks for a field of this very name before it reads an expression.
    assert tree.find("renderer-v2").get("attr") == name
    found = {o.get("value") for o in tree.iter("Option") if o.get("name") == "expression"}
    quoted = '"mean_fare"" = \'\' OR ""a_quality"'
    assert [text.count(quoted) for text in found] == [2]
    assert [text.count('"') for text in found] == [2 * quoted.count('"')]


def test_what_lies_in_no_region_has_no_class_and_is_not_in_the_first_view():
    shapes = [*shapely.box([1, 2, 3, 4], 1, [2, 3, 4, 5], 2), shapely.box(0, 5, 100, 100)]
    table = gpd.GeoDataFrame(
        {"id": [*"abcd", "elsewhere"], "estimate": [10.0, 20, 40, 80, 5e4]},
        geometry=shapes, crs="EPSG:3857",
    )  # fmt: skip
    assert named_rows(table).tolist() == [True] * 4 + [False]
    named = table[:4]
    domain = psd.Domain(bounds=(0, 0, 100, 100), crs="EPSG:3857")
    west, south, east, north = view_of(domain, named, table).bounds
    assert 0 < west < 1 < 5 < east < 6
    assert 0 < south < 1 < 2 < north < 3
    assert view_of(domain, table, table) is domain
    [style], [alone] = layer_styles(table), layer_styles(named)
    tree, other = (ElementTree.fromstring(s.qml.partition("\n")[2]) for s in (style, alone))
    limits = [[r.get("upper") for r in each.iter("range")] for each in (tree, other)]
    assert limits[0] == limits[1]
    assert tree.find("renderer-v2").get("attr") == 'if("id" = \'elsewhere\', NULL, "estimate")'
