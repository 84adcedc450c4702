"""Names that moved answer with the new one in a sentence, and every new name exists."""

import inspect
import re
import subprocess
import sys
from operator import attrgetter

import numpy as np
import pytest

import psd
import psd.query.index
from psd._apps import MOVED, has_app
from psd.api.guesses import MOVED as MEMBERS
from support.pages import ROOT
from support.trees import grid_release

PAGE = (ROOT / "docs" / "reference" / "moved.md").read_text(encoding="utf-8")
PUBLIC_MEMBERS = {name for name in dir(psd.Release) if not name.startswith("_")} | {"record"}


def found(text):
    """What a new name such as ``psd.build(observer=)`` names; arguments must be among its own."""
    dotted, _, arguments = text.removesuffix(")").partition("(")
    value = attrgetter(dotted.removeprefix("psd."))(psd)
    names = [part.partition("=")[0].strip() for part in arguments.split(",") if part]
    assert {*names} <= {*(inspect.signature(value).parameters if names else ())}
    return value


def is_there(text):
    """Whether a new name is of the core, or of an app that is there."""
    app = re.match(r"psd\.apps\.(\w+)", text)
    return app is None or has_app(app[1])


def test_new_names_exist(subtests):
    for old, new in MOVED.items():
        if is_there(new):
            with subtests.test(old):
                assert found(new) is not None


def test_the_check_of_new_names_can_fail():
    with pytest.raises(AttributeError):
        found("psd.regions.RegionFile")
    with pytest.raises(AssertionError):
        found("psd.build(bounds_shares=)")


def test_no_old_name_is_public():
    assert not {old.removeprefix("psd.") for old in MOVED} & {*psd.__all__}
    assert len(psd.__all__) <= 25


def test_old_names_answer_with_the_new_one_until_version_one(subtests):
    assert psd.__version__.startswith("0.")
    for old, new in MOVED.items():
        name = old.removeprefix("psd.")
        with subtests.test(old), pytest.raises(AttributeError, match=re.escape(f"{old} is {new} ")):
            getattr(psd, name)


def test_the_page_has_the_names_that_moved():
    rows = re.findall(r"^\| `(psd\.\w+)` \| `(psd\.[^`]+)` \|", PAGE, re.M)
    assert dict(rows) == MOVED
    members = PAGE.partition("## Members of releases")[2].partition("\n## ")[0]
    assert dict(re.findall(r"^\| `(\w+)` \| `([^`]+)` \|$", members, re.M)) == MEMBERS


def test_a_release_has_at_most_26_members_and_none_that_moved():
    assert len(PUBLIC_MEMBERS) <= 26
    assert not PUBLIC_MEMBERS & {*MEMBERS}


@pytest.mark.parametrize("needs_xarray", [False, pytest.param(True, marks=pytest.mark.deep)])
def test_what_stands_for_an_old_member_runs(subtests, needs_xarray):
    """Each new member is evaluated as it is written."""
    from psd.release.post_processing import PostProcessing

    months = psd.TimeSlices.parse("month", "2024-01..2024-02")
    plain = grid_release(np.full((4, 4), 9))
    boxes = [(0, 0, 2, 2)]
    names = {
        "psd": psd, "areas": boxes, "boxes": boxes, "texts": {}, "other": PostProcessing(),
        "columns": 2, "rows": 2, "name": "2024-01",
    }  # fmt: skip
    members = {old: new for old, new in MEMBERS.items() if ("xarray" in new) == needs_xarray}
    assert members
    for old, new in members.items():
        timed = psd.Release.from_slices(months, [plain, plain]) if "[" in new else plain
        with subtests.test(old):
            with pytest.raises(AttributeError, match=re.escape(f"Release.{old} is {new} now")):
                getattr(plain, old)
            if "level=" not in new and "id=" not in new and "explore" not in new:
                assert eval(new, {**names, "release": timed}) is not False or old == "boundary"


def test_what_stands_for_an_old_member_needs_no_import():
    lines = [
        "import psd",
        "domain = psd.Domain(bounds=(0, 0, 2, 2))",
        "tree = psd.decompositions.grid_tree(domain, 2)",
        "release = psd.Release.from_counts(tree, [1, 2, 3, 4], 1, domain=domain)",
        MEMBERS["with_cache"],
    ]
    subprocess.run([sys.executable, "-c", "\n".join(lines)], check=True)


def test_a_name_that_never_was_is_no_old_one_and_errors_inside_members_are_their_own(monkeypatch):
    monkeypatch.setattr(psd.Release, "total", property(lambda release: release.tree.sides))
    with pytest.raises(AttributeError, match="'Tree' object has no attribute 'sides'"):
        grid_release(np.ones((2, 2), int)).total  # noqa: B018
    with pytest.raises(AttributeError, match=r"^'Release' object has no attribute 'sides'$"):
        grid_release(np.ones((2, 2), int)).sides  # noqa: B018
