"""Classes and colours of styles."""

import itertools
from xml.etree import ElementTree

import numpy as np
import pytest

import psd
from psd.export._styles import SEQUENTIAL, class_breaks, class_colours, layer_styles


@pytest.mark.parametrize("values", [[], [0.0, 0.0], [-3.0], [np.nan]])
def test_without_positive_values_there_is_one_class(values):
    assert class_breaks(np.array(values)) == []


@pytest.mark.parametrize("high", [0.002, 0.7, 3, 44, 1e3, 123_456, 9e9])
@pytest.mark.parametrize("low", [1, 0.1, 1e-6])
def test_breaks_are_few_round_and_rise(low, high):
    values = np.geomspace(low * high, high, 50)
    breaks = class_breaks(values)
    assert len(breaks) < len(SEQUENTIAL)
    assert breaks == sorted(set(breaks))
    assert all(values.min() < each < values.max() for each in breaks)
    assert {f"{each:e}"[0] for each in breaks} <= {"1", "2", "5"}


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
    release = psd.Release.from_counts(psd.grid_tree(domain, 2), counts, 1, domain=domain)
    table = release.to_geopandas()
    for style in layer_styles(table):
        tree = ElementTree.fromstring(style.qml.partition("\n")[2])
        ranges = [(float(r.get("lower")), float(r.get("upper"))) for r in tree.iter("range")]
        assert all(low < high for low, high in ranges)
        assert all(a[1] == b[0] for a, b in itertools.pairwise(ranges))
        column = tree.find("renderer-v2").get("attr")
        values = table["relative_error" if "relative_error" in column else column]
        if column == 'coalesce("relative_error", 100000000000)':  # infinite: no value in the file
            values = values.replace(np.inf, 1e11)
        assert ranges[0][0] <= values.min()
        assert values.max() <= ranges[-1][1]
        assert len(list(tree.iter("symbol"))) == len(ranges)
