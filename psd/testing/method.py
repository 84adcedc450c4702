"""Contract of a decomposition, checked on small data sets."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from psd._util.declared_parameters import from_settings
from psd.decompositions import Decomposition
from psd.estimation.least_squares import infer_counts
from psd.ingest.tally import Tally
from psd.privacy.budget import method_parameters
from psd.privacy.loss import NANO
from psd.publish.counting import coarsest_step
from psd.space.box_tree import MAX_CHILDREN, check_tree
from psd.space.domain import Domain
from psd.testing.data import small_domain, small_tally
from psd.testing.exact_loss import exact_loss, spent_by_cell
from psd.testing.transcripts import (
    SCRIPTS,
    RecordingSampler,
    ReplayingSampler,
    Run,
    Script,
    compare_runs,
    replay_loss,
    run_method,
)

SIDE = 8
"""Lattice of the checks of trees."""

DATA_SETS: Mapping[str, tuple[int, ...]] = {
    "empty": (),
    "one record": (0,),
    "one cell": (5,) * 1_000,
    "far corner": (63,) * 10,
    "spread": tuple(range(64)) * 3,
}
"""Records on the lattice of `SIDE` that trees are checked on."""

_REFLECTION = ("getattr", "vars", "eval", "exec", "__import__")

LATTICES = (1, 2, 3, 7)
STEP_LATTICES = ((8, 8), (96, 64), (90, 250), (2520, 720), (1024, 4096))
EPSILONS = (2, 1_000, NANO, 1_000 * NANO)


def check_method(method: Decomposition, *, thorough: bool = False) -> None:
    """Check the contract of a method; a method that passes is safe to publish with.

    Parameters
    ----------
    method : Decomposition
        Method whose parameters suit small lattices, so that its questions can depend on the data:
        a tree of two or three levels, a grid of two or three cells per side.
    thorough : bool
        Whether to check the privacy of all data sets of at most three records on a lattice of
        3 x 3, which takes minutes; otherwise of all on 2 x 2, and of some neighbours on 3 x 3.

    Raises
    ------
    AssertionError
        With the first fault: a `psd.testing.LeakError` if the build leaks.
    ParameterError, BudgetError
        If the method has an undeclared parameter, or spends more than its epsilon.

    Examples
    --------
    >>> import psd
    >>> check_method(psd.decompositions.Quadtree(height=1, budget="leaf"))
    """
    check_form(method)
    check_parameters_survive(method)
    for rows in DATA_SETS.values():
        for script in SCRIPTS:
            check_tree_is_sound(method, rows, script)
    check_any_lattice_and_epsilon(method)
    check_counts(method)
    check_step(method)
    check_replay(method)
    for k in (1, 2):
        replay_loss(method, 2, k)
        replay_loss(method, 3, k, every=1 if thorough else 20 * k)
    exact_loss(method)
    check_release(method)


def check_form(method: Decomposition) -> None:
    """Check that a method is a frozen dataclass of described public fields with a paper."""
    kind: Any = type(method)
    _expect(dataclasses.is_dataclass(kind), "must be a dataclass")
    _expect(kind.__dataclass_params__.frozen, "must be a frozen dataclass")
    _expect(isinstance(kind.paper, str) and kind.paper != "", "must state its paper")
    _expect((kind.__doc__ or "").strip() != "", "must have a docstring")
    method_parameters(method)
    try:
        source = inspect.getsource(inspect.getmodule(kind) or kind)
    except (OSError, TypeError):  # the class stands in no file
        source = ""
    private = private_members(source)
    _expect(not private, f"must use no private member and no reflection, got {private[:3]}")
    for field in dataclasses.fields(kind):
        _expect(bool(field.metadata["doc"]), f"must describe its parameter {field.name}")


def private_members(source: str) -> list[str]:
    """List private attributes of other objects than self, and functions of reflection."""
    names = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_"):
            of_self = isinstance(node.value, ast.Name) and node.value.id == "self"
            names += [] if of_self else [node.attr]
        if isinstance(node, ast.Name) and node.id in _REFLECTION:
            names.append(node.id)
    return names


def check_parameters_survive(method: Decomposition) -> None:
    """Check that the texts of the parameters in a release give an equal method."""
    stated = method_parameters(method)
    texts = {name: str(value) for name, value in stated.items() if value is not None}
    again = from_settings(type(method), texts)
    _expect(again == method, "must be equal to the method of its stated parameters")


def check_tree_is_sound(
    method: Decomposition, rows: Sequence[int], script: Script = SCRIPTS[0]
) -> Run:
    """Check that every leaf spends exactly epsilon and that estimates are consistent."""
    domain = small_domain(SIDE)
    run = run_method(method, small_tally(SIDE, rows), domain, NANO, RecordingSampler(script))
    curator, tree = run.curator, run.tree
    check_tree(tree, domain.lattice)
    _expect(int(tree.children.max()) <= MAX_CHILDREN, "must cut a cell into at most four")
    _expect(curator.spent == NANO, "must spend exactly epsilon")
    x, y = tree.boxes[tree.is_leaf, :2].T
    spent = spent_by_cell(curator.questions, SIDE)[x, y]
    _expect(bool((spent == NANO).all()), "must spend exactly epsilon on every leaf")
    _expect(tree.max_path_loss <= NANO, "must measure no path for more than epsilon")
    estimates = infer_counts(tree)
    for values in (estimates.signed, estimates.count):
        children = np.bincount(tree.parent[1:], values[1:], len(tree))
        sums = np.allclose(children[~tree.is_leaf], values[~tree.is_leaf], atol=1e-6)
        _expect(sums, "must give estimates whose children sum to their parents")
    _expect(bool((estimates.count >= 0).all()), "must give estimates of at least 0")
    return run


def check_any_lattice_and_epsilon(method: Decomposition) -> None:
    """Check small lattices and extreme epsilons: there is a tree, and epsilon is spent."""
    for side in LATTICES:
        for epsilon in EPSILONS:
            tally, sampler = small_tally(side, (0,)), RecordingSampler()
            run = run_method(method, tally, small_domain(side), epsilon, sampler)
            check_tree(run.tree, (side, side))
            _expect(run.curator.spent == epsilon, f"must spend exactly epsilon on {side} x {side}")


def check_counts(method: Decomposition) -> None:
    """Check that without noise, each measured count is the number of records in its box."""
    rows = np.random.default_rng(7).integers(0, SIDE * SIDE, 200)
    tally = small_tally(SIDE, rows.tolist())
    tree = run_method(method, tally, small_domain(SIDE), NANO, RecordingSampler()).tree
    measured = tree.loss > 0
    _expect(bool(measured.any()), "must count a cell")
    x, y = rows % SIDE, rows // SIDE
    # Each measured box against each record, (boxes, records).
    x0, y0, x1, y1 = tree.boxes[measured].T[:, :, None]
    true = ((x >= x0) & (x < x1) & (y >= y0) & (y < y1)).sum(axis=1)
    _expect(tree.count[measured].tolist() == true.tolist(), "must count the records of its cells")


def check_step(method: Decomposition) -> None:
    """Check that cells end at multiples of the step by which records are counted together."""
    for columns, rows in STEP_LATTICES:
        lattice = columns, rows
        domain = Domain(bounds=(0, 0, columns, rows), crs="EPSG:3857", lattice=lattice)
        # Records are counted by blocks of so many columns and rows. A cell that ends inside a block
        # would get all records of the block, or none.
        step = np.array(coarsest_step(method, domain) * 2)
        tree = run_method(method, small_tally(1, (0,)), domain, NANO, RecordingSampler()).tree
        inside = tree.boxes < np.array(lattice * 2)
        _expect(
            not (tree.boxes % step)[inside].any(),
            f"must have a step that its cells are multiples of on a lattice of {lattice}, got "
            f"{tuple(step[:2].tolist())}",
        )


def check_replay(method: Decomposition) -> None:
    """Check that the same answers give the same tree on the same and on other data."""
    domain, script = small_domain(SIDE), SCRIPTS[-1]
    recorder = RecordingSampler(script)
    first = run_method(method, _tally("spread"), domain, NANO, recorder)
    for name in ("spread", "one record"):
        replayer = ReplayingSampler(recorder.draws)
        compare_runs(first, run_method(method, _tally(name), domain, NANO, replayer))


def check_release(method: Decomposition) -> None:
    """Check that a release can be built, saved, loaded and queried, and states the parameters."""
    import psd

    points = pd.DataFrame({"lon": [0.5, 1.5, 6.5], "lat": [0.5, 1.5, 7.5]})
    release = psd.build(points, domain=small_domain(SIDE), epsilon=1, method=method)
    boxes = [(0, 0, SIDE, SIDE), (1, 1, 3.5, 2)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "release.psd.parquet"
        release.save(path)
        again = psd.load(path)
    same = again.query(boxes).table.equals(release.query(boxes).table)
    _expect(same, "must give the same answers from a file")
    stated = {**method_parameters(method)}
    loaded = {name: again.index.record.parameters.get(name) for name in stated}
    _expect(loaded == stated, "must have its parameters in the release file")
    _expect(again.method == method.name, "must have its name in the release file")


def _tally(name: str) -> Tally:
    """Exact counts of one of the data sets."""
    return small_tally(SIDE, DATA_SETS[name])


def _expect(holds: bool, sentence: str) -> None:
    """Raise an error that says what a method must do."""
    if not holds:
        raise AssertionError(f"the method {sentence}")
