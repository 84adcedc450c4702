"""The record of a cube: trees over space (the plane, or regions), time and categories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import InitVar, dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psd.errors import ParameterError
from psd.privacy.budget import AXES
from psd.privacy.unit import ContributionScope
from psd.release.record import ReleaseRecord
from psd.release.series import SeriesRecord, SharedRecord
from psd.space.axes import REGION, Axis, TimeAxis
from psd.space.box_tree import Tree
from psd.space.categories import CategoryAxis
from psd.space.cube_tree import CubeTree
from psd.space.growing_tree import refine_plane
from psd.space.region_axis import RegionAxis
from psd.space.region_tree import PAIRS, RegionTree
from psd.space.time_slices import TimeSlices, TimeWindow

__all__ = [
    "ALL_TIME",
    "CubeRecord",
    "WindowRecord",
    "all_time",
    "first_record",
    "other_layers",
    "shown_records",
    "window_record",
]

ALL_TIME = "all time"
"""Name of the window of all slices."""

_FACTS = [each.name for each in fields(ReleaseRecord) if each.name != "tree"]
_SHARED = [name for name in _FACTS if name != "covariate"]


@dataclass(frozen=True, kw_only=True, eq=False)
class CubeRecord(SharedRecord):
    """The public fields of a cube.

    P1. All layers agree in all fields but their trees, and state the loss of the whole cube.

    P2. Paths of all layers, one of each, together spend at most epsilon, or rho.

    P3. Boxes of the other layers are cut where those of the plane are, so that each is a node of
    the plane or lies in one of its leaves; `cells` has them all.

    P4. With a layer over space and categories, all layers but the plane have each category by
    itself: the nodes below one of them are those of a cube over time alone (`parts`).

    P5. A layer of times measures each slice of all places once, with one loss, and nothing else.
    """

    # Cells of the axis of time, if there is one. Regions are those of the tree of the plane.
    slices: TimeSlices | None
    category: CategoryAxis | None = None  # axis of a category, if there is one
    joint: ReleaseRecord  # over space and the axes, with a `psd.space.cube_tree.CubeTree`
    plane: ReleaseRecord  # over space alone
    labels: ReleaseRecord | None = None  # over space and the category, if it was divided first
    times: ReleaseRecord | None = None  # of each slice of all places, of each category if divided
    # Of a part of a cube, `cells`, `kept` and `nodes`, with the boxes of the whole cube.
    refined: InitVar[tuple[Tree, NDArray[np.int64], NDArray[np.int64]] | None] = None
    # The plane with all boxes of the joint layer, the numbers in it of the nodes of the plane, and
    # of the nodes with the boxes of the joint layer, (m,) and (n,) int64; they follow from the
    # layers.
    cells: Tree = field(init=False, repr=False)
    kept: NDArray[np.int64] = field(init=False, repr=False)
    nodes: NDArray[np.int64] = field(init=False, repr=False)
    # As `nodes`, of the layer of categories; none without it.
    label_nodes: NDArray[np.int64] = field(init=False, repr=False)
    is_part: bool = field(init=False, repr=False)  # whether it is one of the `parts` of a cube

    def __post_init__(
        self, refined: tuple[Tree, NDArray[np.int64], NDArray[np.int64]] | None
    ) -> None:
        """Check that the layers fit together."""
        object.__setattr__(self, "is_part", refined is not None)
        tree, plane = self.joint.tree, self.plane.tree
        if not isinstance(tree, CubeTree) or type(plane) not in (Tree, RegionTree):
            raise ParameterError("a cube must have a layer over space and time and one over space")
        if isinstance(plane, RegionTree) and plane.fan != PAIRS:
            raise ParameterError("the regions of a cube must be divided into pairs")
        if not tree.axes or tree.axes != self.axes:
            raise ParameterError("the axes of a cube must be its time slices and its category")
        for layer in self.layers[1:]:
            for name in _SHARED:
                if getattr(layer, name) != getattr(self.plane, name):
                    raise ParameterError(f"the layers of a cube differ in {name}")
            if layer.covariate is not self.plane.covariate and (
                layer.covariate is None
                or self.plane.covariate is None
                or layer.covariate.raster.tobytes() != self.plane.covariate.raster.tobytes()
            ):
                raise ParameterError("the layers of a cube differ in covariate")
        first, measure = self.plane, plane.noise.measure
        largest = first.epsilon if first.rho is None else first.loss.rho
        spent = sum(layer.tree.max_path_loss for layer in self.layers)
        if spent > largest:
            raise ParameterError(
                f"the layers of a cube must spend at most {measure.name} {measure.text(largest)} "
                f"together, got {measure.text(spent)}"
            )
        if refined is None and first.parameters.get(AXES) != ",".join(
            axis.name for axis in self.axes
        ):
            raise ParameterError("a cube must state its axes, by which its guarantee reads")
        if first.local is not None or first.values:
            raise ParameterError("a cube must have no reports of devices and no values")
        if refined is None and isinstance(plane, RegionTree):
            refined = _region_nodes(tree, plane)
        elif refined is None:
            refined = refine_plane(tree, plane)
        object.__setattr__(self, "label_nodes", np.zeros(0, np.int64))
        if self.labels is not None:
            refined = self._refine_labels(*refined)
        if self.times is not None:
            self._check_times(self.times.tree)
        for name, value in zip(("cells", "kept", "nodes"), refined, strict=True):
            object.__setattr__(self, name, value)

    def _refine_labels(
        self, cells: Tree, kept: NDArray[np.int64], nodes: NDArray[np.int64]
    ) -> tuple[Tree, NDArray[np.int64], NDArray[np.int64]]:
        """The cells, with the boxes of the layer of categories too; check that layer."""
        joint, category = self.joint.tree, self.category
        assert self.labels is not None
        tree = self.labels.tree
        assert isinstance(joint, CubeTree)  # is checked before
        if (
            not isinstance(tree, CubeTree)
            or category is None
            or self.slices is None
            or tree.axes != (category,)
        ):
            raise ParameterError(
                "a layer over space and categories must have the category of a cube with slices"
            )
        for each in (tree, joint):
            _check_labels(each, category)
        cells, of_plane, of_labels = refine_plane(tree, cells)
        object.__setattr__(self, "label_nodes", of_labels)
        return cells, of_plane[kept], of_plane[nodes]

    def _check_times(self, tree: Tree) -> None:
        """Refuse a layer of times that is not one of each slice, and of each category if divided.

        Categories are divided as in the layer of categories, or not at all.
        """
        if (
            not isinstance(tree, CubeTree)
            or self.slices is None
            or len(self.slices) == 1
            or isinstance(self.plane.tree, RegionTree)
            or tree.axes != self.axes
            or (tree.boxes != self.plane.tree.boxes[0]).any()
        ):
            raise ParameterError(
                "a layer of times must be of all places, with the slices of a cube without regions"
            )
        if self.labels is not None and self.category is not None:
            _check_labels(tree, self.category)
        of_leaf, leaf = np.array(self.sizes), tree.is_leaf
        of_leaf[0 if self.labels is None else slice(None)] = 1
        loss = np.unique(tree.loss[leaf])
        is_once = len(loss) == 1 and loss[0] > 0 and not tree.loss[~leaf].any()
        if not is_once or (tree.lengths[leaf] != of_leaf).any():
            raise ParameterError("a layer of times must measure each slice once, with one loss")

    @cached_property
    def parts(self) -> tuple[CubeRecord, ...]:
        """Of each category, the cube over time, as a view; none without a layer of categories."""
        if self.labels is None or self.category is None:
            return ()
        joint, plane, found = self.joint.tree, self.labels.tree, []
        assert isinstance(joint, CubeTree)
        assert isinstance(plane, CubeTree)  # is checked before
        for label in range(self.category.size):
            inside, of_plane = (_is_of_label(tree, label) for tree in (joint, plane))
            times = self.times
            if times is not None:
                times = replace(times, tree=_of_label(times.tree, label))
            found.append(
                CubeRecord(
                    slices=self.slices,
                    joint=replace(self.joint, tree=_of_label(joint, label)),
                    plane=replace(self.plane, tree=Tree(**_below(plane, of_plane))),
                    times=times,
                    refined=(self.cells, self.label_nodes[of_plane], self.nodes[inside]),
                )
            )
        return tuple(found)

    @property
    def layers(self) -> tuple[ReleaseRecord, ...]:
        """The layers, in the order of the file: the plane first, the joint one last."""
        others = (each for each in (self.labels, self.times) if each is not None)
        return (self.plane, *others, self.joint)

    @property
    def axes(self) -> tuple[Axis, ...]:
        """Time, category and regions, as far as there are these."""
        time: tuple[Axis, ...] = () if self.slices is None else (TimeAxis(self.slices),)
        axes = time if self.category is None else (*time, self.category)
        plane = self.plane.tree
        return (*axes, RegionAxis(plane.regions)) if isinstance(plane, RegionTree) else axes

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of cells of each axis that windows are of, all but that of regions."""
        return tuple(axis.size for axis in self.axes if axis.name != REGION)

    def cells_in(self, window: TimeWindow) -> TimeWindow:
        """A window of slices in numbers of cells of all axes: by slice, then by category."""
        if self.category is None:
            return window
        size = self.category.size
        cells = window.numbers[:, None] * size + np.arange(size)
        return replace(window, numbers=cells.ravel())

    @property
    def first(self) -> ReleaseRecord:
        """The plane."""
        return self.plane

    @property
    def epsilon(self) -> int:
        """Nano-epsilon of all layers together."""
        return self.plane.epsilon

    @property
    def scope(self) -> ContributionScope:
        """The contribution bound holds for all slices together."""
        return "series"

    @property
    def guarantee_text(self) -> str:
        """Loss, unit of privacy and, unless the curator drew the counts, their source."""
        return self.plane.guarantee_text

    @property
    def loss_text(self) -> str:
        """Loss of all layers together."""
        return self.plane.loss_text

    @property
    def are_running_totals(self) -> bool:
        """Whether slices count the records before them too; never."""
        return False

    @property
    def counted_text(self) -> str:
        """What an answer counts, in a few words."""
        return self.plane.counted_text

    @property
    def bound_text(self) -> str:
        """Words after a contribution bound that holds in each slice; none."""
        return ""


def other_layers(
    layers: Sequence[ReleaseRecord],
) -> tuple[ReleaseRecord | None, ReleaseRecord | None]:
    """Layers of categories and of times of a cube, of those between its plane and the joint one."""
    labels = times = None
    for layer in layers:
        tree = layer.tree
        assert isinstance(tree, CubeTree)  # over some axes
        is_of_times = tree.axes[0].name == "time"
        if times is not None or (labels is not None and not is_of_times):
            raise ParameterError("a cube must have a layer of categories, one of times, or both")
        labels, times = (labels, layer) if is_of_times else (layer, times)
    return labels, times


def _is_of_label(tree: CubeTree, label: int) -> NDArray[np.bool_]:
    """Which nodes have the records of one category alone, (n,)."""
    first, stop = tree.spans[:, -2:].T
    is_of_label: NDArray[np.bool_] = (first == label) & (stop == label + 1)
    return is_of_label


def _of_label(tree: Tree, label: int) -> CubeTree:
    """The tree over time of one category, of one over time and categories."""
    assert isinstance(tree, CubeTree)  # `CubeRecord` checks it
    inside = _is_of_label(tree, label)
    spans, axes = tree.spans[inside, :-2], tree.axes[:-1]
    return CubeTree(**_below(tree, inside), spans=spans, axes=axes, cap=tree.cap)


def _check_labels(tree: CubeTree, category: CategoryAxis) -> None:
    """Refuse a layer without a node of all of space and time for each category."""
    for label in range(category.size):
        inside = _is_of_label(tree, label)
        top, found = np.argmax(inside), inside.any()
        found &= (tree.boxes[top] == tree.boxes[0]).all()
        if not found or (tree.spans[top, :-2] != tree.spans[0, :-2]).any():
            raise ParameterError(
                "the layers of a cube over categories must be divided by category first"
            )


def _below(tree: CubeTree, inside: NDArray[np.bool_]) -> dict[str, Any]:
    """Fields of the tree of some nodes, all below the first of them."""
    rank = np.cumsum(inside) - 1
    parent = rank[tree.parent[inside]]
    parent[0] = -1
    level = tree.level[inside]
    arrays = {name: getattr(tree, name)[inside] for name in ("boxes", "count", "loss")}
    return {**arrays, "parent": parent, "level": level - level[0], "noise": tree.noise}


def _region_nodes(
    tree: CubeTree, plane: RegionTree
) -> tuple[RegionTree, NDArray[np.int64], NDArray[np.int64]]:
    """As `refine_plane`: every node of a layer over regions is one of the tree of regions."""
    axis = tree.axes[-1]
    assert isinstance(axis, RegionAxis)  # `CubeRecord` compares the axes
    if len(plane) != len(plane.frame) or (tree.boxes != tree.boxes[0]).any():
        raise ParameterError("the regions of a cube must be divided into slices and regions alone")
    return plane, np.arange(len(plane)), axis.nodes_of(tree.spans[:, -2], tree.spans[:, -1])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WindowRecord(ReleaseRecord):
    """A cube in a window of time and a category, as cells of the plane: a view, and no release.

    P1. It states the loss of its cube, and the unit of privacy. Writers of release files take no
    record of this type.

    P2. All that it states is of its cube: an export, which checks the cube, shows nothing else.
    """

    cube: CubeRecord
    # What is looked at as one, with numbers of cells of all axes, see `CubeRecord.cells_in`.
    window: TimeWindow
    category: str | None = None  # label that is looked at; all categories, if none is named

    def __post_init__(self) -> None:
        """Check that the fields are those of the cube."""
        cube, cells = self.cube, int(np.prod(self.cube.sizes))
        if self.tree is not cube.cells or any(
            getattr(self, name) is not getattr(cube.plane, name) for name in _FACTS
        ):
            raise ParameterError("a window of a cube must have the cells and the facts of its cube")
        if self.window.numbers[-1] >= cells:
            raise ParameterError(f"a window must be of the {cells:,} slices of its cube")
        if self.category is None:
            return
        spans = {} if cube.category is None else cube.category.spans
        first, stop = spans.get(self.category, (0, 0))
        # The cells of the category in every slice of time that the window has.
        size = cube.sizes[-1]
        slices = np.unique(self.window.numbers // size)[:, None]
        if not np.array_equal(
            self.window.numbers, (slices * size + np.arange(first, stop)).ravel()
        ):
            raise ParameterError("a window must be of the category that it names, of its cube")

    @property
    def shown(self) -> dict[str, str]:
        """What is looked at, by its names in metadata: the window of time, and the category."""
        time = {} if self.cube.slices is None else {"when": self.window.name}
        axis = self.cube.category
        if axis is None or self.category is None:
            return time
        return {**time, "category": f"{axis.column}={self.category}"}


def window_record(
    cube: CubeRecord, window: TimeWindow, category: str | None = None
) -> WindowRecord:
    """Record of the cells of a cube in a window, of all axes; of one category if one is named."""
    facts = {name: getattr(cube.plane, name) for name in _FACTS}
    return WindowRecord(tree=cube.cells, **facts, cube=cube, window=window, category=category)


def all_time(cube: CubeRecord) -> TimeWindow:
    """The window of all slices and categories."""
    return TimeWindow(name=ALL_TIME, numbers=np.arange(int(np.prod(cube.sizes))))


def shown_records(
    record: ReleaseRecord | SeriesRecord | CubeRecord,
) -> tuple[ReleaseRecord, ...]:
    """Records of each time slice, of a release without time, or of a cube in all time."""
    if isinstance(record, CubeRecord):
        return (window_record(record, all_time(record)),)
    return record.releases if isinstance(record, SeriesRecord) else (record,)


def first_record(record: ReleaseRecord | SeriesRecord | CubeRecord) -> ReleaseRecord:
    """Record of a release without time, of the first slice, or of the plane of a cube."""
    return record if isinstance(record, ReleaseRecord) else record.first


def refuse_views(record: ReleaseRecord | SeriesRecord | CubeRecord, what: str) -> None:
    """Refuse a cube, or a window of it, for what is done with releases of their own."""
    if isinstance(record, CubeRecord | WindowRecord):
        raise ParameterError(
            f"release must not be a cube, or a window of one, {what}, since its slices and "
            "categories are not counted one by one; build with another method, such as auto"
        )
