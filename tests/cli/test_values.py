"""Values of options, and arguments of the library in its messages."""

import pytest

from psd_cli.options.values import rename_arguments

NAMES = ("overwrite", "user", "max_contributions", "epsilon", "bounds")
OPTIONS = {name: f"--{name.replace('_', '-')}" for name in NAMES}
OPTIONS |= {name: f"--read {name}" for name in ("x", "y", "time", "layer")}


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("a exists; pass overwrite=True", "a exists; pass --overwrite"),
        ("pass layer=NAME, one of a, b", "pass --read layer=NAME, one of a, b"),
        (
            'no column "a"; see x=, y=, user=, time=',
            'no column "a"; see --read x, --read y, --user, --read time',
        ),
        ("epsilon must be above 0", "--epsilon must be above 0"),
        ("bounds: west 5 is not below east 4", "--bounds: west 5 is not below east 4"),
        ("the epsilon is too small", "the epsilon is too small"),
        ("give user= and max_contributions=", "give --user and --max-contributions"),
        # Names of files and settings that look like arguments stay.
        ("d/user=7/part.parquet cannot be read", "d/user=7/part.parquet cannot be read"),
        ("d=1/x.csv has no column", "d=1/x.csv has no column"),
        ("set height=8", "set height=8"),
    ],
)
def test_arguments_become_options(message, shown):
    assert rename_arguments(message, OPTIONS) == shown
