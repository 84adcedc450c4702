"""The file of a cube: the release file with a column ``layer`` and the spans of the further axes.

Footer key ``psd-cube``: strict JSON of slices, category, and one header for all layers. Nodes of
the plane come first, those of the joint layer last; ``layers``: 3 or 4 with others between.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import fields as fields_of
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from psd._util.arrays import to_arrow
from psd._util.atomic_write import write_file
from psd._util.json_toml import strict_json
from psd._util.parquet_bytes import check_size, footer_keys, open_parquet
from psd.errors import ReleaseFormatError
from psd.privacy.unit import squared_sensitivity
from psd.release.cube import CubeRecord, other_layers
from psd.release.file import (
    CUBE_KEY,
    NODES,
    SERIES_KEY,
    canonical_json,
    check_digest,
    columns_of,
    content_digest,
    encode_tables,
    explain_read_errors,
    file_footer,
    limited_content,
    read_footer,
    read_release,
    regions_footer,
    schema_of,
    series_digest,
    unpack_fields,
)
from psd.release.node_reader import (
    MAX_NODES,
    NODE_BYTES,
    SPANS,
    check_node_count,
    read_layers,
)
from psd.release.record import ReleaseRecord
from psd.release.schema import FORMAT, check_cube_record, check_format, record_fields, record_header
from psd.release.series import SeriesRecord
from psd.release.series_file import read_series
from psd.space.axes import REGION, Axis, TimeAxis
from psd.space.box_tree import Tree
from psd.space.categories import CategoryAxis
from psd.space.cube_tree import CubeTree, SliceCap
from psd.space.region_axis import RegionAxis
from psd.space.region_tree import PAIRS, named_tree
from psd.space.time_slices import TimeSlices

__all__ = [
    "CUBE_SCHEMA",
    "decode_cube",
    "digest_of",
    "encode_cube",
    "read_cube",
    "read_published",
    "schema_of_axes",
]

MARK = "psd_cube"
"""Key of the format in the header; there were no earlier formats."""


def schema_of_axes(*axes: str) -> pa.Schema:
    """Names and types of the columns of a cube over some axes."""
    names = ["layer", *(name for axis in axes for name in SPANS[axis])]
    return schema_of(0, [pa.field(name, pa.int32(), nullable=False) for name in names])


CUBE_SCHEMA = schema_of_axes("time")
"""Names and types of the columns of a cube over time."""

# Without others, and with the layer of categories, that of times or both.
_LAYERS = (2, 3, 4)

_OF_TIME = {"by", "time_zone", "slices"}
_OF_CATEGORY = {"column", "labels", "parents", "other"}


def write_cube(cube: CubeRecord, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write a cube; a failure leaves no partial file."""
    write_file(path, encode_cube(cube), overwrite=overwrite)


def read_cube(
    path: str | os.PathLike[str], *, max_nodes: int = MAX_NODES
) -> tuple[CubeRecord, str]:
    """Read a cube, and the digest of its content; refuse more than `max_nodes` nodes in all."""
    with limited_content(path, max_nodes) as content:
        return decode_cube(content, str(path), max_nodes=max_nodes)


def read_published(
    path: str | os.PathLike[str], *, max_nodes: int = MAX_NODES
) -> tuple[ReleaseRecord | SeriesRecord | CubeRecord, str]:
    """Read a release, a series or a cube, and the digest of its content."""
    keys = footer_keys(path) if os.path.isfile(path) else {}  # a pipe may not end
    if SERIES_KEY in keys:
        return read_series(path, max_nodes=max_nodes)
    if CUBE_KEY in keys:
        return read_cube(path, max_nodes=max_nodes)
    return read_release(path, max_nodes=max_nodes)


def encode_cube(cube: CubeRecord) -> bytes:
    """Bytes, the same for the same cube. P1. A value that is not public is refused."""
    check_cube_record(cube)
    header = _header(cube)
    _cube_fields(strict_json(canonical_json(header)))  # a reader accepts what is written
    regions = regions_footer(cube.plane)
    schema, tables = schema_of_axes(*(axis.name for axis in cube.axes)), []
    for number, tree in enumerate(layer.tree for layer in cube.layers):
        # A layer is of all cells of the axes that it has not; its own are the last ones.
        spans = np.tile(np.array(_whole(cube.axes), np.int32), (len(tree), 1))
        if isinstance(tree, CubeTree):
            spans[:, -tree.spans.shape[1] :] = tree.spans
        layer = pa.array(np.full(len(tree), number, np.int32))
        columns = [layer, *(to_arrow(edge) for edge in spans.T), *columns_of(tree)]
        tables.append(pa.Table.from_arrays(columns, schema=schema))
    footer = {CUBE_KEY: canonical_json(header), **regions}
    return encode_tables(
        tables, schema, file_footer(footer, _digest(header, cube), cube.plane.covariate)
    )


def _whole(axes: tuple[Axis, ...]) -> list[int]:
    """Span of all of each axis."""
    return [edge for axis in axes for edge in (0, axis.size)]


def digest_of(cube: CubeRecord) -> str:
    """Digest of a cube, as its file states it."""
    check_cube_record(cube)
    return _digest(_header(cube), cube)


def _header(cube: CubeRecord) -> dict[str, Any]:
    """Everything about a cube but its nodes: an allow-list of public values."""
    header: dict[str, Any] = {MARK: FORMAT}
    if cube.slices is not None:
        slices = cube.slices
        header |= {"by": slices.by, "time_zone": slices.time_zone, "slices": list(slices.names)}
    if cube.category is not None:
        category = cube.category
        header["category"] = {
            "column": category.column,
            "labels": list(category.labels),
            "parents": list(category.parents),
            "other": category.has_other,
        }
    if len(cube.layers) > _LAYERS[0]:
        header["layers"] = len(cube.layers)
    return {**header, "release": record_header(cube.plane)}


def _digest(header: Mapping[str, Any], cube: CubeRecord) -> str:
    """Digest of a header and of the layers."""
    layers = (content_digest(b"psd-layer", {}, layer.tree) for layer in cube.layers)
    return series_digest(CUBE_KEY, header, layers)


def decode_cube(
    content: bytes, name: str = "cube", *, max_nodes: int = MAX_NODES
) -> tuple[CubeRecord, str]:
    """Decode bytes to a cube and its digest; a message names the first fault, and the file."""
    with explain_read_errors(name):
        file = open_parquet(content)
        footer = read_footer(file, CUBE_KEY)
        check_node_count(file.metadata.num_rows, max_nodes)
        # All that the footer states is checked before anything large is read.
        header = strict_json(footer[CUBE_KEY])
        slices, category, fields = _cube_fields(header)
        axes: tuple[Axis, ...] = () if slices is None else (TimeAxis(slices),)
        axes = axes if category is None else (*axes, category)
        names = tuple(axis.name for axis in axes)
        names = names if fields["regions"] is None else (*names, REGION)
        if not file.schema_arrow.remove_metadata().equals(schema_of_axes(*names)):
            raise ReleaseFormatError("the columns are not those of a cube")
        check_size(file, content, **NODES, row=NODE_BYTES)
        regions = unpack_fields(fields, footer)
        axes = axes if regions is None else (*axes, RegionAxis(regions))
        noise = fields.pop("noise")
        layers = read_layers(file, noise, header.get("layers", _LAYERS[0]), names)
        (plane, whole), *others, (joint, spans) = layers
        if not (whole == _whole(axes)).all():
            raise ReleaseFormatError(
                "a node of the plane is not of all slices, categories and regions"
            )
        if noise.factor != 1:
            raise ReleaseFormatError("the counts of a cube are drawn, so their noise has factor 1")
        cap = None
        if not noise.measure.is_pure and slices is not None:
            cap = SliceCap.of_unit(fields["unit"])
            if noise.squared_sensitivity != cap.squared_sensitivity(len(slices)):
                raise ReleaseFormatError("its noise is not that of its unit and slices")
        elif not noise.measure.is_pure and noise.squared_sensitivity != squared_sensitivity(
            fields["unit"], "series", 1
        ):
            raise ReleaseFormatError("its noise is not that of its unit")
        tree = CubeTree(**_nodes_of(joint), spans=spans, axes=axes, cap=cap)
        between = [
            ReleaseRecord(tree=_other_tree(each, spans, axes, cap), **fields)
            for each, spans in others
        ]
        plane = plane if regions is None else named_tree(plane, regions, PAIRS)
        labels, times = other_layers(between)
        cube = CubeRecord(
            slices=slices,
            category=category,
            joint=ReleaseRecord(tree=tree, **fields),
            plane=ReleaseRecord(tree=plane, **fields),
            labels=labels,
            times=times,
        )
        return cube, check_digest(footer, _digest(header, cube))


def _other_tree(
    tree: Tree, spans: NDArray[np.int32], axes: tuple[Axis, ...], cap: SliceCap | None
) -> CubeTree:
    """Tree of a layer of categories, whose cells have all slices, or of a layer of times."""
    whole = np.array(_whole(axes))
    if axes[-1].name == "category" and (spans[:, :-2] == whole[:-2]).all():
        return CubeTree(**_nodes_of(tree), spans=spans[:, -2:], axes=axes[-1:])
    return CubeTree(**_nodes_of(tree), spans=spans, axes=axes, cap=cap)


def _nodes_of(tree: Tree) -> dict[str, Any]:
    """Fields of a tree, for one with spans."""
    return {each.name: getattr(tree, each.name) for each in fields_of(tree)}


def _cube_fields(header: Any) -> tuple[TimeSlices | None, CategoryAxis | None, dict[str, Any]]:
    """Slices and category, as far as there are these, and the fields that all layers share."""
    check_format(header, MARK, ("cube", 0), "cube")
    stated = header.keys() - {MARK, "release", "layers"}
    if "layers" in header and (
        type(header["layers"]) is not int
        or header["layers"] not in _LAYERS[1:]
        or "slices" not in stated
    ):
        raise ReleaseFormatError("its header has other layers than that of a cube")
    if stated not in (_OF_TIME, {"category"}, {*_OF_TIME, "category"}) or "release" not in header:
        raise ReleaseFormatError("its header has other fields than that of a cube")
    slices = category = None
    if "slices" in stated:
        if not isinstance(header["slices"], list):
            raise ReleaseFormatError("its header has other fields than that of a cube")
        names = tuple(header["slices"])
        slices = TimeSlices(by=header["by"], names=names, time_zone=header["time_zone"])
    if "category" in stated:
        own = header["category"]
        lists = ("labels", "parents")
        if (
            not isinstance(own, dict)
            or own.keys() != _OF_CATEGORY
            or not all(isinstance(own[name], list) for name in lists)
            or type(own["other"]) is not bool
        ):
            raise ReleaseFormatError("its category has other fields than that of a cube")
        labels, parents = (tuple(own[name]) for name in lists)
        category = CategoryAxis(own["column"], labels, parents, own["other"])
    fields = record_fields(header["release"])
    if fields["values"] or fields["local"] is not None:
        raise ReleaseFormatError("a cube has no values or reports")
    if fields["regions"] is not None and stated != _OF_TIME:
        raise ReleaseFormatError("a cube has regions with slices alone, without categories")
    return slices, category, fields
