"""The apps: what of each is reached by a name of the core, as text. No other file names apps.

An app is a folder of `psd.apps` that builds on public names of the core. The core imports none, and
works without any: what is named here is imported when it is called, or answered by one sentence.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from psd.errors import MissingExtraError

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType

    from psd.apps import choosing as choosing
    from psd.apps import local as local
    from psd.apps import suggest as suggest
    from psd.apps.planning.plan import plan as plan

__all__ = ["has_command", "load_member", "member_of"]

USES: Final[dict[str, tuple[str, ...]]] = {
    "auditing": (),
    "choosing": (),
    "evaluation": (),
    "local": (),
    "planning": ("evaluation", "local"),
    "qgis": (),
    "spark": (),
    "streams": (),
    "suggest": (),
    "web": (),
}
"""The apps, and the other apps that each may import."""

MEMBERS: Final = {
    "auditing.audit": "psd.apps.auditing.attacks",
    "evaluation.compare": "psd.apps.evaluation.comparison",
    "evaluation.evaluate": "psd.apps.evaluation.true_errors",
    "local.plan": "psd.apps.planning.local_plan",
    "plan": "psd.apps.planning.plan",
    "planning.plan_regions": "psd.apps.planning.region_plan",
    "spark.Spark": "psd.apps.spark.engine",
    "spark.SparkTable": "psd.apps.spark.engine",
    "streams.Stream": "psd.apps.streams.stream",
    "suggest.train_factors": "psd.apps.suggest.training",
    "suggest.train_weights": "psd.apps.suggest.training",
    "web.write_site": "psd.apps.web.site",
}
"""Names of `psd.apps`, or of `psd` where they have no dot, that are imported when first used."""

COMMANDS: Final = {
    "check audit": "auditing",
    "check compare": "evaluation",
    "check evaluate": "evaluation",
    "choose": "choosing",
    "local": "local",
    "map": "web",
    "plan": "planning",
    "qgis": "qgis",
    "stream": "streams",
    "suggest": "suggest",
}
"""Commands of the apps; the modules of `psd_cli.apps` have the names of the apps."""

METHODS: Final = {"map": "psd.apps.web.map_page", "sheet": "psd.apps.web.methodology"}
"""Modules of apps that carry out methods of `psd.Release`."""

OPTIONS: Final = {"export --site": "web", "info --sheet": "web"}
"""Options of commands of the core that an app carries out."""

FAMILIES: Final = {"psd.apps.choosing.objectives": "psd.objectives"}
"""Families of variants that are of an app, and their groups of entry points."""

VARIANTS: Final = {"psd.ingest.engine": {"spark": "psd.apps.spark.engine"}}
"""Variants of families of the core that are apps: their modules by family and name."""

MOVED: Final = {
    "psd.Account": "psd.ledger.Account",
    "psd.CellRegions": "psd.regions.CellRegions",
    "psd.ContributionChoice": "psd.build(max_contributions=, choice_share=, choice_over=)",
    "psd.DuckDB": "psd.sources.DuckDB",
    "psd.Observer": "psd.build(observer=)",
    "psd.PostGIS": "psd.sources.PostGIS",
    "psd.PrivateBounds": "psd.build(bounds=, bounds_share=, bounds_beyond=)",
    "psd.RegionFiles": "psd.regions.RegionFiles",
    "psd.RegionHierarchy": "psd.regions.RegionHierarchy",
    "psd.SeriesRelease": "psd.Release",
    "psd.Spark": "psd.apps.spark.Spark",
    "psd.SparkTable": "psd.apps.spark.SparkTable",
    "psd.Stream": "psd.apps.streams.Stream",
    "psd.Tree": "psd.decompositions.Tree",
    "psd.audit": "psd.apps.auditing.audit",
    "psd.choosing": "psd.apps.choosing",
    "psd.compare": "psd.apps.evaluation.compare",
    "psd.difference": "psd.Release.query(difference=)",
    "psd.evaluate": "psd.apps.evaluation.evaluate",
    "psd.grid_tree": "psd.decompositions.grid_tree",
    "psd.local": "psd.apps.local",
    "psd.method": "psd.decompositions.method",
    "psd.new_key": "psd.signing.new_key",
    "psd.plan_regions": "psd.apps.planning.plan_regions",
    "psd.ratio": "psd.Release.query(difference=, ratio=)",
    "psd.sign": "psd.signing.sign",
    "psd.suggest": "psd.apps.suggest",
    "psd.train_factors": "psd.apps.suggest.train_factors",
    "psd.train_weights": "psd.apps.suggest.train_weights",
    "psd.verify": "psd.signing.verify",
}
"""Public names that had another one; they answer with the new one until version 1.0.0.

Words in brackets are arguments.
"""


@cache
def has_app(name: str) -> bool:
    """Whether the folder of an app is there, with those of the apps that it uses."""
    try:
        found = find_spec(f"psd.apps.{name}") is not None
    except ModuleNotFoundError:  # no app is there
        return False
    return found and all(map(has_app, USES[name]))


def apps_of(command: str) -> list[str]:
    """App of a command, or apps of the commands below it; none of the core."""
    return [app for name, app in COMMANDS.items() if f"{name} ".startswith(f"{command} ")]


def has_command(name: str) -> bool:
    """Whether a command is of the core, or it or one below it is of an app that is there."""
    apps = apps_of(name)
    return not apps or any(map(has_app, apps))


def check_app(name: str, *, what: str) -> None:
    """Check that an app is there."""
    if not has_app(name):
        raise MissingExtraError(
            f"{what} must have the app {name!r}, which this installation of psd was made without; "
            "install all of psd"
        )


def load_app(module: str, *, what: str) -> ModuleType:
    """Import a module such as ``"psd.apps.planning.plan"``; the message says what needs it."""
    check_app(module.split(".")[2], what=what)
    return importlib.import_module(module)


def load_member(name: str) -> Any:
    """Member of a module of an app, by a name of `MEMBERS`."""
    module = load_app(MEMBERS[name], what=f"psd.{'apps.' * ('.' in name)}{name}")
    return getattr(module, name.rpartition(".")[2])


def member_of(module: str, name: str) -> Any:
    """Member of the package of an app by its name; for `__getattr__` of such packages."""
    app = module.rpartition(".")[2]
    if f"{app}.{name}" not in MEMBERS:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    return load_member(f"{app}.{name}")


class _OldNames:
    """Answers imports of old names; being a `MetaPathFinder` would take half of `import psd`."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Refuse the old names; leave all others to other finders."""
        if fullname in MOVED:
            raise ModuleNotFoundError(f"{fullname} is {MOVED[fullname]} now")
        return None


def answer_old_names() -> None:
    """Let imports of modules that moved end in a sentence, once in a process."""
    if not any(type(finder).__name__ == _OldNames.__name__ for finder in sys.meta_path):
        sys.meta_path.append(_OldNames())
