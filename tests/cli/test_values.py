"""Values of options, and arguments of the library in its messages."""

import click
import pytest

from psd_cli.options.values import LIMITS, rename_arguments

NAMES = ("overwrite", "user", "max_contributions", "epsilon", "bounds")
OPTIONS = {name: f"--{name.replace('_', '-')}" for name in NAMES}
OPTIONS |= {name: f"--read {name}" for name in ("x", "y", "time", "layer")}
RENAMED = {
    "a exists; pass overwrite=True": "a exists; pass --overwrite",
    "pass layer=NAME, one of a, b": "pass --read layer=NAME, one of a, b",
    'no column "a"; see x=, y=, user=, time=': (
        'no column "a"; see --read x, --read y, --user, --read time'
    ),
    "epsilon must be above 0": "--epsilon must be above 0",
    "bounds: west 5 is not below east 4": "--bounds: west 5 is not below east 4",
    "the epsilon is too small": "the epsilon is too small",
    "give user= and max_contributions=": "give --user and --max-contributions",
    # Names of files and settings that look like arguments stay.
    "d/user=7/part.parquet cannot be read": "d/user=7/part.parquet cannot be read",
    "d=1/x.csv has no column": "d=1/x.csv has no column",
    "set height=8": "set height=8",
    "a:crs=EPSG:4326": "a:crs=EPSG:4326",
    "leave it out with layer=2": "leave it out with --read layer=2",
    # What a shell does not pass on stays in quotes.
    'state layer=";"': 'state --read layer=";"',
    'state layer="tab"': "state --read layer=tab",
}


def test_arguments_become_options(subtests):
    for message, shown in RENAMED.items():
        with subtests.test(message):
            assert rename_arguments(message, OPTIONS) == shown


def test_limits_are_shares_or_percentages():
    for text in ("0.3", ".3", "30%"):
        assert LIMITS(text) == pytest.approx(0.3)
    for text in ("12 %, 30%", "0.12,30%"):
        assert LIMITS(text) == pytest.approx((0.12, 0.3))
    for text in ("%", "30%%", "0.1,0.2,0.3", "a third"):
        with pytest.raises(click.BadParameter):
            LIMITS(text)
