"""Checks of the types of arguments, at the functions that users call."""

import pandas as pd
import pytest

import psd
from psd._util.instances import check_instance, refuse_class, type_text
from psd.errors import ParameterError

POINTS = pd.DataFrame({"lon": [1.0], "lat": [1.0]})
DOMAIN = psd.Domain(bounds=(0, 0, 8, 8))
RELEASE = psd.testing.release_from_counts([[5, 1], [0, 2]])
BOX = (0, 0, 1, 1)


def build(**arguments):
    return psd.build(POINTS, **{"domain": DOMAIN, "epsilon": 1, "method": "quadtree"} | arguments)


def test_wrong_types_are_refused_with_a_sentence(subtests):
    check_instance("domain", DOMAIN, psd.Domain, "Domain(...)")
    with pytest.raises(ParameterError) as refused:
        check_instance("domain", "secret", psd.Domain, "Domain(...)")
    assert "secret" not in str(refused.value)
    assert "secret" not in type_text("secret")
    assert build(domain=(0, 0, 8, 8)).domain == DOMAIN
    assert build(domain=[0, 0, 8, 8]).domain == DOMAIN
    for name in ("columns", "noise_law", "report_private"):  # the signature has all there are
        with pytest.raises(ParameterError, match=f"argument '{name}' "):
            build(**{name: "lon"})
    tree = psd.decompositions.grid_tree((0, 0, 8, 8), 2)
    assert psd.Release.from_counts(tree, [1] * 4, 1, domain=(0, 0, 8, 8)).domain == DOMAIN
    for number, (call, message) in enumerate(WRONG_TYPES):
        with subtests.test(message, row=number), pytest.raises(ParameterError, match=message):
            call()


WRONG_TYPES = [
    (lambda: build(domain="0 0 8 8"), "domain must be a psd.Domain"),
    (lambda: build(domain=psd.Domain), "domain must be .* got the class Domain"),
    (lambda: build(method=psd.decompositions.Quadtree), r"write Quadtree\(\)"),
    (lambda: build(method=8), "method must be a name or a decomposition"),
    (lambda: build(slices=2024), "slices must be a list"),
    (lambda: build(account="city.ledger"), "account must be of type Account"),
    (lambda: build(sampler=psd.testing.SeededSampler), "sampler must be an instance"),
    (lambda: psd.tally(POINTS, domain=DOMAIN, columns="lon"), "argument 'columns' does not exist"),
    (lambda: psd.ask(POINTS, area=(0, 0, 1, 1), epsilon=1), "ledger and dataset must be given"),
    (
        lambda: psd.decompositions.grid_tree("0 0 8 8", 2),
        "domain must be a psd.Domain or four numbers",
    ),
    (lambda: psd.Release.from_counts([1], [1], 1, domain=DOMAIN), "tree must be of type Tree"),
    (lambda: RELEASE.query([BOX], difference=5), "difference must be of type Release"),
    (lambda: RELEASE.query([BOX], difference=psd.Release), "difference must be an instance"),
]


def test_a_class_in_place_of_an_instance_is_refused():
    with pytest.raises(ParameterError, match=r"^count must be an instance, got the class int"):
        refuse_class("count", int)
    refuse_class("count", 5)
