"""Which module may reach which: the public side never the points, a method never a mechanism."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import psd

PACKAGE = Path(psd.__file__).parent

# Everything that holds points or draws on them.
PRIVATE = (
    "psd.sources", "psd.tally", "psd.curator", "psd.noise", "psd.publish", "psd.decompositions",
    "psd.points", "psd.tally_file", "psd.evaluation", "psd.plotting", "psd.workload",
    "psd.shape", "psd.comparison", "psd.truth", "psd.workers",
    "psd.heterogeneity", "psd.population", "psd.plan", "psd.plan_text", "psd.plan_plot",
    "psd.reports", "psd.report_figures", "psd.intake", "psd.ids", "psd.shelf", "psd.bounding",
    "psd.marks", "psd.counting", "psd.memory", "psd.reading", "psd.bound_choice",
    "psd.private_bounds", "psd.slicing", "psd.kept", "psd.carrying", "psd.keys", "psd.tallying",
    "psd.engines", "psd.ledger", "psd.ledger_file", "psd.journal", "psd.book", "psd.composition",
    "psd.spending", "psd.asking", "psd.bodies", "psd.audit", "psd.canaries", "psd.pairs",
    "psd.transcripts", "psd.insecure",
)  # fmt: skip
PUBLIC = (
    "psd.release", "psd.release_file", "psd.inference", "psd.query", "psd.export", "psd.tree",
    "psd.growing", "psd.cutting", "psd.domain", "psd.crs", "psd.epsilon", "psd.files", "psd.arrays",
    "psd.bins", "psd.hilbert", "psd.view", "psd.posterior", "psd.density", "psd.covariate",
    "psd.covariate_file", "psd.dasymetric", "psd.pieces", "psd.outlines", "psd.rasters",
    "psd.raster_files", "psd.errors", "psd.parameters", "psd.registry", "psd.demand", "psd.pages",
    "psd.published", "psd.statistics", "psd.unit", "psd.clock", "psd.postgres", "psd.boundary",
    "psd.known", "psd.receipts", "psd.leftovers",
    "psd.slices", "psd.series", "psd.series_file", "psd.public", "psd.digest", "psd.footer",
    "psd.page_headers", "psd.signing", "psd.binomial",
)  # fmt: skip


def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = ("psd", *path.relative_to(PACKAGE).with_suffix("").parts)
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def imports(source: str) -> set[str]:
    """Modules of the package that a source imports anywhere but for type checking."""
    found: set[str] = set()
    for node in ast.walk(_without_type_checking(ast.parse(source))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in found if name in MODULES}


def _without_type_checking(tree: ast.Module) -> ast.Module:
    """Drop the blocks that only a type checker reads."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            node.body = []
    return tree


def reach(start: str, graph: dict[str, set[str]]) -> set[str]:
    """All modules that a module leads to."""
    seen, left = set(), [start]
    while left:
        name = left.pop()
        if name not in seen:
            seen.add(name)
            left.extend(graph.get(name, ()))
    return seen - {start}


GRAPH = {name: imports(path.read_text()) for name, path in MODULES.items() if name != "psd"}


def is_in(name: str, families: tuple[str, ...]) -> bool:
    return any(name == family or name.startswith(family + ".") for family in families)


def test_every_module_has_a_side():
    lone = [
        n for n in MODULES if not is_in(n, PRIVATE + PUBLIC) and n not in ("psd", "psd._version")
    ]
    assert not lone, "say in this test whether these are public or private"


@pytest.mark.parametrize("name", [n for n in MODULES if is_in(n, PUBLIC)])
def test_public_side_reaches_nothing_that_holds_points(name):
    assert not [module for module in reach(name, GRAPH) if is_in(module, PRIVATE)]


@pytest.mark.parametrize("name", [n for n in MODULES if is_in(n, ("psd.decompositions",))])
def test_decompositions_reach_no_mechanism_and_no_points(name):
    held = tuple(name for name in PRIVATE if name != "psd.decompositions")
    assert not [module for module in reach(name, GRAPH) if is_in(module, held)]


@pytest.mark.parametrize("name", [n for n in MODULES if is_in(n, ("psd.decompositions",))])
def test_decompositions_touch_no_private_member(name):
    assert not private_members(MODULES[name].read_text())


def private_members(source: str) -> list[str]:
    """Underscore attributes of anything, and reflection that could reach them."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_"):
            own = isinstance(node.value, ast.Name) and node.value.id == "self"
            found += [] if own else [node.attr]
        if isinstance(node, ast.Name) and node.id in (
            "getattr",
            "vars",
            "eval",
            "exec",
            "__import__",
        ):
            found.append(node.id)
    return found


def test_public_side_loads_without_the_private_side():
    """The same at run time, lazy imports of a whole session included."""
    script = f"""
import sys, psd
domain = psd.Domain(bounds=(0, 0, 4, 4), crs="EPSG:3857")
release = psd.Release.from_counts(psd.grid_tree(domain, 4), list(range(16)), 1.0, domain=domain)
import tempfile, pathlib, shapely
with tempfile.TemporaryDirectory() as folder:
    release.save(folder + "/r.psd.parquet")
    release = psd.Release.load(folder + "/r.psd.parquet")
    for suffix in ("gpkg", "parquet", "geojson", "csv"):
        release.export(folder + "/cells." + suffix)
release.query([(0, 0, 1, 1)]); release.query(shapely.box(0, 0, 1, 1), crs=domain.crs)
release.to_geopandas("all")
release.joint([(0, 0, 1, 1)]).total(); release.nested([(0, 0, 1, 1), (0, 0, 2, 2)])
release.raster(3, 3); release.top(2, size=(3, 3)); release.quantiles(3, size=(3, 3))
private = {PRIVATE!r}
bad = [m for m in sys.modules if any(m == p or m.startswith(p + ".") for p in private)]
sys.exit(str(bad) if bad else 0)
"""
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize(
    ("source", "caught"),
    [
        ("from psd.curator import Curator", True),
        ("def f():\n    from psd import tally", True),
        ("import psd.noise.laplace", True),
        (
            "if TYPE_CHECKING:\n    from psd.curator import Curator",
            False,
        ),
        ("from psd.tree import Tree", False),
    ],
)
def test_the_walk_sees_planted_imports(source, caught):
    graph = {**GRAPH, "planted": imports(source)}
    assert bool([m for m in reach("planted", graph) if is_in(m, PRIVATE)]) is caught


def test_the_walk_sees_a_planted_peek():
    assert private_members("def build(self, curator):\n    return curator._layers[0]") == [
        "_layers"
    ]


def test_the_library_never_prints():
    for name, path in MODULES.items():
        calls = [n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Call)]
        assert not [c for c in calls if getattr(c.func, "id", "") == "print"], name
