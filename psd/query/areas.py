"""What is asked about: boxes, polygons, or regions by name, read once for every question.

Kinds of areas differ in their totals, what they have in common, and the table of the answers. What
answers leave out is said by public geometry alone.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats, Integers
from psd._util.declared_parameters import choice
from psd._util.file_endings import split_layer
from psd._util.instances import type_text
from psd.errors import ParameterError
from psd.query.answer_table import COLUMNS
from psd.query.boxes import are_boxes_outside, checked_totals, parse_boxes
from psd.query.index import QueryIndex
from psd.query.region_nodes import TOLERANCE, NamedQueries, find_named_regions, union_traversal
from psd.query.totals import QueryTotals, WindowFit, query_totals
from psd.space.region_tree import RegionTree
from psd.space.regions import check_box_crs, is_region, regions_table, to_release_crs

if TYPE_CHECKING:
    import geopandas
    import pandas

    from psd.estimation.fit import Fit
    from psd.query.region_overlaps import Regions
    from psd.space.box_tree import Tree
    from psd.space.domain import Domain

__all__ = ["SLIVER", "Areas", "BoxAreas", "NamedAreas", "named_areas"]

# How WKT, EWKT and GeoJSON begin.
_GEOMETRY = re.compile(
    r"[\ufeff\s]*(?:[{\[]|SRID\s*=|(?:MULTI)?(?:POINT|LINESTRING|POLYGON|CURVE|SURFACE)"
    r"[\sZM]*(?:\(|EMPTY)|(?:LINEARRING|GEOMETRYCOLLECTION)[\sZM]*(?:\(|EMPTY))",
    re.IGNORECASE,
)


class Areas(Protocol):
    """Areas of one kind, in the order of the caller."""

    @property
    def given(self) -> Any:
        """What the caller gave."""

    def __len__(self) -> int: ...

    def totals(self, index: QueryIndex) -> QueryTotals:
        """Totals over the cells of each area; an area that cannot be answered is refused."""

    def overlaps(self, fit: Fit) -> Regions:
        """What areas have in common, for their covariance."""

    def shapes(self, domain: Domain) -> NDArray[np.object_]:
        """Geometries in the CRS of the release, shape (n,)."""

    def labels(self) -> Any:
        """Id of each area."""

    def table(self, columns: Mapping[str, Any]) -> pandas.DataFrame:
        """Columns of answers with the index and the columns of the caller."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outside:
    """Areas outside the bounds: how many were left out, and which are answered by 0."""

    skipped: int = 0
    zero: NDArray[np.bool_] | None = None

    def with_zeros(self, totals: QueryTotals, asked: NDArray[np.bool_]) -> QueryTotals:
        """Totals of all areas: nothing was counted in the others, which is public."""
        # Not only the estimate is 0: nothing was counted there, so no error is either.
        spread = {field.name: np.zeros(len(asked)) for field in fields(QueryTotals)}
        for name, values in spread.items():
            values[asked] = getattr(totals, name)
        return QueryTotals(**spread)


_ALL_INSIDE = Outside()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BoxAreas:
    """Boxes in the CRS of the release, shape (n, 4), with their ids."""

    given: Any
    boxes: Floats
    ids: list[Any]
    outside: Outside = _ALL_INSIDE

    def __len__(self) -> int:
        return len(self.boxes)

    def totals(self, index: QueryIndex) -> QueryTotals:
        """Totals; see `Areas`."""
        if self.outside.zero is None:
            return checked_totals(index, self.boxes, self.ids)
        asked = ~self.outside.zero
        ids = [self.ids[number] for number in np.flatnonzero(asked)]
        return self.outside.with_zeros(checked_totals(index, self.boxes[asked], ids), asked)

    def overlaps(self, fit: Fit) -> Regions:
        """What boxes have in common; see `Areas`."""
        from psd.query.region_overlaps import Boxes

        return Boxes(fit=fit, sides=fit.domain.to_lattice(self.boxes))

    def shapes(self, domain: Domain) -> NDArray[np.object_]:
        """Boxes as polygons; see `Areas`."""
        import shapely

        shapes: NDArray[np.object_] = shapely.box(*self.boxes.T)
        return shapes

    def labels(self) -> list[Any]:
        """Ids of the caller, or 1, 2, ..."""
        return self.ids

    def table(self, columns: Mapping[str, Any]) -> pandas.DataFrame:
        """Answers; columns of the caller that have the name of one of them are left out."""
        import pandas as pd

        if not hasattr(self.given, "columns"):
            return pd.DataFrame({"id": self.ids, **columns})
        names = [name for name in self.given if name == "id" or name not in columns]
        table = self.given[names]
        if "id" not in names:
            table = table.assign(id=self.ids)[["id", *names]]
        joined: pandas.DataFrame = table.assign(**columns)
        return joined


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PolygonAreas:
    """Valid polygons in the CRS of the release, ids of the caller, and numbers of the kept rows."""

    given: Any
    polygons: NDArray[np.object_]
    names: list[str] | None = None
    numbers: Integers | None = None
    outside: Outside = _ALL_INSIDE

    def __len__(self) -> int:
        return len(self.polygons)

    def totals(self, index: QueryIndex) -> QueryTotals:
        """Totals; see `Areas`."""
        from psd.query.polygons import polygon_totals

        if self.outside.zero is None:
            return polygon_totals(index.fit, self.polygons, self.names)
        asked = ~self.outside.zero
        names = self.names and [self.names[number] for number in np.flatnonzero(asked)]
        totals = polygon_totals(index.fit, self.polygons[asked], names)
        return self.outside.with_zeros(totals, asked)

    def overlaps(self, fit: Fit) -> Regions:
        """What polygons have in common; see `Areas`."""
        from psd.query.region_overlaps import Polygons

        return Polygons(fit=fit, shapes=self.polygons)

    def shapes(self, domain: Domain) -> NDArray[np.object_]:
        """Polygons; see `Areas`."""
        return self.polygons

    def labels(self) -> Any:
        """1, 2, ..., for polygons have no ids but those in the caller's columns."""
        return np.arange(1, len(self) + 1) if self.numbers is None else self.numbers

    def table(self, columns: Mapping[str, Any]) -> pandas.DataFrame:
        """Answers beside a table or a series of geometries, or with ids 1, 2, ..."""
        import geopandas as gpd
        import pandas as pd

        if isinstance(self.given, gpd.GeoDataFrame):
            _check_free(self.given, columns)
            beside: pandas.DataFrame = self.given.assign(**columns)
            return beside
        if not isinstance(self.given, gpd.GeoSeries):
            return pd.DataFrame({"id": self.labels(), **columns})
        joined: pandas.DataFrame = gpd.GeoDataFrame(
            {"id": self.labels()}, geometry=self.given.array, index=self.given.index
        ).assign(**columns)
        return joined


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NamedAreas:
    """Regions of a level, or unions of them; in a column of the caller's table if one is given."""

    given: Any
    tree: RegionTree
    queries: NamedQueries

    def __len__(self) -> int:
        return len(self.queries.rows)

    def totals(self, index: QueryIndex) -> QueryTotals:
        """Totals; see `Areas`."""
        tree = index.record.tree  # of a series, that of each slice
        if not isinstance(tree, RegionTree):
            raise ParameterError(_NO_REGIONS)
        if isinstance(index.fit, WindowFit):
            return index.fit.of_areas(self)
        return query_totals(index.fit, union_traversal(tree, self.queries))

    def overlaps(self, fit: Fit) -> Regions:
        """What unions have in common; see `Areas`."""
        from psd.query.region_nodes import NamedUnions

        return NamedUnions(tree=self.tree, queries=self.queries)

    def in_tree(self, tree: Tree, domain: Domain) -> NamedAreas:
        """The same regions of another release of this domain, found by their ids."""
        import shapely

        advice = "ask for --polygons, which are answered by their outlines"
        if not isinstance(tree, RegionTree):
            raise ParameterError(
                f"both releases must count regions by name, got one without any; {advice}"
            )
        named = self.tree.regions.levels[self.queries.tier]
        # Numbers of regions differ between releases, their ids do not.
        ids = [[named.ids[number] for number in row] for row in self.queries.rows]
        queries = replace(find_named_regions(tree, named.name, ids), labels=self.queries.labels)
        found = NamedAreas(given=self.given, tree=tree, queries=queries)
        shapes = self.shapes(domain)
        # One id may name two outlines, as of districts before and after a reform.
        apart = shapely.area(shapely.symmetric_difference(shapes, found.shapes(domain)))
        is_other = apart > TOLERANCE * shapely.area(shapes)
        if is_other.any():
            label = self.labels()[int(is_other.argmax())]
            raise ParameterError(
                "regions must have one outline in both releases, got two outlines of region "
                f"{label[:80]!r}; {advice}"
            )
        return found

    def shapes(self, domain: Domain) -> NDArray[np.object_]:
        """Polygons of the regions, clipped to the bounds; see `Areas`."""
        import shapely

        shapes = self.tree.regions.shapes(self.queries.tier)
        parts = [shapes[list(row)] for row in self.queries.rows]
        return np.array(
            [part[0] if len(part) == 1 else shapely.union_all(part) for part in parts], object
        )

    def labels(self) -> list[str]:
        """Ids of the regions; those of a union with plus signs between them."""
        return list(self.queries.labels)

    def table(self, columns: Mapping[str, Any]) -> pandas.DataFrame:
        """Answers beside the rows of the caller's table, or with the ids."""
        import pandas as pd

        if not hasattr(self.given, "columns"):
            return pd.DataFrame({"id": self.labels(), **columns})
        _check_free(self.given, columns)
        joined: pandas.DataFrame = self.given.assign(**columns)
        return joined


_NO_REGIONS = (
    "areas must be boxes, polygons or a file of them, got regions by name; the release counts no "
    "regions"
)


def windows_by_slice(windows: Sequence[Integers]) -> list[list[tuple[int, bool]]]:
    """Numbers of the windows that each slice is in, and whether it is their last slice."""
    found: dict[int, list[tuple[int, bool]]] = defaultdict(list)
    for window, numbers in enumerate(windows):
        for number in numbers.tolist():
            # Numbers of a window ascend, so after its last one its sums are complete.
            found[number].append((window, number == numbers[-1]))
    return [found[number] for number in range(max(found) + 1)]


def answers_table(
    areas: Areas, blocks: Sequence[Mapping[str, Any]], labels: Sequence[Mapping[str, str]]
) -> pandas.DataFrame:
    """Answers of all windows below each other, with columns of their labels in front."""
    parts = []
    for columns, named in zip(blocks, labels, strict=True):
        part = areas.table(columns)
        _check_free(areas.given, named)
        for place, (name, label) in enumerate(named.items()):
            part.insert(place, name, label)
        parts.append(part)
    if len(parts) == 1:
        return parts[0]
    import pandas

    return pandas.concat(parts)


def beside_shapes(table: Any, areas: Areas, domain: Domain) -> geopandas.GeoDataFrame:
    """Answers with the geometries of their areas, repeated by slice, unless the table has some."""
    import geopandas as gpd

    if isinstance(table, gpd.GeoDataFrame):
        return table
    # The areas once for each window, as the rows of the table repeat.
    shapes = np.resize(areas.shapes(domain), len(table))
    name = "geometry"
    while name in table:
        name += "_of_region"
    return gpd.GeoDataFrame(table.assign(**{name: shapes}), geometry=name, crs=domain.crs)


def read_areas(
    given: Any,
    domain: Domain,
    tree: Tree,
    *,
    level: int | str | None = None,
    column: str | None = None,
    crs: Any = None,
    outside: str = "refuse",
) -> Areas:
    """Read what `Release.query` is asked about, or refuse what is malformed or does not exist."""
    if not hasattr(given, "columns") and hasattr(given, "to_list") and not is_region(given):
        given = given.to_list()  # a series of ids or of texts
    path = _file_name(given, tree, level)
    if path is not None:
        given = _read_file(path, crs, is_table=column is not None)
    choice("refuse", "skip", "zero")("outside", outside)
    if given is None or column is not None or _are_names(given, tree, level):
        if outside != "refuse":
            raise ParameterError(
                f"outside must be left out with regions by name, got {outside!r}; they are in the "
                "bounds"
            )
        return _named_areas(given, tree, level, column)
    if level is not None:
        raise ParameterError(
            f"level must be left out unless areas are regions by name, got {str(level)[:80]!r}"
        )
    if is_region(given):
        return _polygon_areas(given, domain, crs, outside)
    if crs is not None:
        check_box_crs(crs, domain)
    boxes, ids = parse_boxes(given)
    if outside == "refuse":
        return BoxAreas(given=given, boxes=boxes, ids=ids)
    # Bounds are public, and so is which boxes lie outside.
    lost = are_boxes_outside(boxes, domain)
    if outside == "zero":
        return BoxAreas(given=given, boxes=boxes, ids=ids, outside=Outside(zero=lost))
    return BoxAreas(
        given=given[~lost] if hasattr(given, "columns") else given,
        boxes=boxes[~lost],
        ids=[ids[number] for number in np.flatnonzero(~lost)],
        outside=Outside(skipped=int(lost.sum())),
    )


def _polygon_areas(given: Any, domain: Domain, crs: Any, outside: str) -> PolygonAreas:
    """Polygons; one shapely geometry without an SRID is in the CRS of the release."""
    import geopandas as gpd
    import shapely

    from psd._util.column_kinds import kind_of

    if crs is None and isinstance(given, shapely.Geometry) and not shapely.get_srid(given):
        crs = domain.crs
    _check_free(given, COLUMNS)
    shapes = regions_table(given, crs)
    if isinstance(given, gpd.GeoDataFrame):
        given = given.set_geometry(shapes)
    elif isinstance(given, gpd.GeoSeries):
        given = shapes
    # The caller's ids: a column ``id``, else texts of which no two are equal.
    columns = [name for name in getattr(given, "columns", ()) if name != given.geometry.name]
    ids = [name for name in columns if str(name).lower() == "id"]
    texts = [name for name in columns if kind_of(given[name]) == "text" and given[name].is_unique]
    names = given[(ids or texts)[0]].astype(str).tolist() if ids or texts else None
    polygons = to_release_crs(shapes, domain, names=names)
    if outside == "refuse":
        return PolygonAreas(given=given, polygons=polygons, names=names)
    from psd.query.polygons import are_outside

    lost = are_outside(polygons, domain)
    if outside == "zero":
        return PolygonAreas(given=given, polygons=polygons, names=names, outside=Outside(zero=lost))
    # Areas that are kept have their numbers in the caller's list.
    kept = np.flatnonzero(~lost)
    return PolygonAreas(
        given=given[~lost] if isinstance(given, gpd.GeoDataFrame | gpd.GeoSeries) else given,
        polygons=polygons[kept],
        names=names and [names[number] for number in kept],
        numbers=kept + 1,
        outside=Outside(skipped=int(lost.sum())),
    )


def named_areas(tree: Tree, level: str) -> NamedAreas:
    """All regions of a level, in the order of the hierarchy."""
    return _named_areas(None, tree, level, None)


def _named_areas(given: Any, tree: Tree, level: int | str | None, column: str | None) -> NamedAreas:
    """Regions by name: all of a level, those of ids, or those of a column of a table."""
    from psd.regions.hierarchy import id_texts

    if not isinstance(tree, RegionTree):
        raise ParameterError(
            "areas must be given, as boxes, polygons or a file of them; the release counts no "
            "regions by name, of which all could be answered"
            if given is None
            else _NO_REGIONS
        )
    if column is not None:
        if not hasattr(given, "columns"):
            raise ParameterError(
                f"areas must be a DataFrame, or a file of a table, with id=, got {type_text(given)}"
            )
        if column not in given.columns:
            names = ", ".join(map(str, given.columns))
            raise ParameterError(
                f"id must be one of the columns of areas ({names[:200] or 'none'}), got "
                f"{str(column)[:80]!r}"
            )
        ids: Any = id_texts(given[column], column)
        _check_free(given, COLUMNS)
    else:
        ids = [given] if isinstance(given, str) else given
    return NamedAreas(given=given, tree=tree, queries=find_named_regions(tree, level, ids))


def _are_names(given: Any, tree: Tree, level: int | str | None) -> bool:
    """Whether areas are ids of regions: lists in a list, texts beside a level, or no geometries."""
    rows = [given] if isinstance(given, str) else given
    if not isinstance(rows, list | tuple | np.ndarray) or not len(rows):
        return False
    unions = [row for row in rows if isinstance(row, list | tuple)]
    texts = [text for row in rows for text in (row if isinstance(row, list | tuple) else [row])]
    if not texts or not all(isinstance(text, str) for text in texts):
        return False
    if unions or level is not None:
        return True
    return isinstance(tree, RegionTree) and not any(map(_GEOMETRY.match, texts))


def _file_name(given: Any, tree: Tree, level: int | str | None) -> Path | None:
    """Path of a file that areas name; None for a text that is a geometry or the id of a region."""
    if isinstance(given, os.PathLike):
        return Path(given)
    if not isinstance(given, str) or _GEOMETRY.match(given):
        return None
    levels = tree.regions.levels if isinstance(tree, RegionTree) else ()
    if any(given in named.ids for named in levels if level in (None, named.name)):
        return None
    return Path(given) if os.path.isfile(split_layer(Path(given))[0]) else None


def _read_file(path: Path, crs: Any, *, is_table: bool) -> Any:
    """Table of a file: of ids of regions, of polygons, or of boxes."""
    from psd._util.column_kinds import match_name
    from psd._util.file_endings import split_layer
    from psd.regions import files

    if is_table:
        return files.read_table(path, "areas")
    if split_layer(path)[0].suffix.lower() in (".csv", ".xlsx", ".parquet"):
        table = files.read_table(path, "areas")
        names = [str(name) for name in table.columns]
        if not hasattr(table, "geometry") and match_name("wkt", names) is None:
            return files.read_boxes(path)
    return files.read_polygons(path, "areas", crs=crs)


def _check_free(table: Any, names: Any) -> None:
    """Refuse a table with a column that the answers add."""
    for name in names:
        if name in getattr(table, "columns", ()):
            raise ParameterError(
                f"areas must not have a column {name}, which the answers add; rename it"
            )


SLIVER = 1e-3
"""Share of an area up to which its part in no region says nothing."""

# Share of the bounds up to which a side beyond them is rounding.
_SLACK = 1e-9


def notes_of(areas: Areas, domain: Domain, tree: Tree) -> tuple[str, ...]:
    """What the answers to areas leave out: parts beyond the bounds, and parts in no region."""
    notes = []
    if beyond := _number_beyond(areas, domain):
        several = "1 region reaches" if beyond == 1 else f"{beyond:,} regions reach"
        notes.append(
            f"{several} beyond the bounds of the release; the part outside was never counted and "
            "is not in the answer"
        )
    uncounted = 0
    if isinstance(tree, RegionTree) and not isinstance(areas, NamedAreas):
        uncounted = _number_in_gaps(areas, domain, tree)
    if uncounted:
        several = "1 area reaches" if uncounted == 1 else f"{uncounted:,} areas reach"
        notes.append(
            f"{several} into parts of the bounds that lie in no region of the release; nothing was "
            "counted there, so 0 there is no estimate"
        )
    return tuple(notes)


def _number_beyond(areas: Areas, domain: Domain) -> int:
    """Number of areas that reach beyond the bounds."""
    if isinstance(areas, NamedAreas):  # of the lowest regions
        regions: Any = areas.tree.regions
        return int((regions.part_outside > _SLACK).sum())
    if isinstance(areas, BoxAreas):
        sides = areas.boxes
    else:
        import shapely

        # By their bounding boxes: a shape reaches beyond straight sides where its box does.
        sides = shapely.bounds(areas.shapes(domain))
    low, high = np.array(domain.bounds[:2]), np.array(domain.bounds[2:])
    slack = _SLACK * (high - low)
    is_low, is_high = sides[:, :2] < low - slack, sides[:, 2:] > high + slack
    return int((is_low | is_high).any(axis=1).sum())


def _number_in_gaps(areas: Areas, domain: Domain, tree: RegionTree) -> int:
    """Number of areas of which a part inside the bounds lies in no region."""
    regions: Any = tree.regions
    gap = regions.gap
    if gap is None:
        return 0
    import shapely

    shapely.prepare(gap)
    shapes = areas.shapes(domain)
    # Few areas meet a gap, and only these are cut, which takes longest.
    shapes = shapes[shapely.intersects(gap, shapes)]
    counted = shapely.area(shapely.intersection(shapes, shapely.box(*domain.bounds)))
    uncounted = shapely.area(shapely.intersection(shapes, gap))
    return int((uncounted > SLIVER * counted).sum())
