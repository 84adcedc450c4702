"""Regions that `psd query` is asked for by name: of a level, by their ids, or of a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..options.command import chain_options

if TYPE_CHECKING:
    from psd.api.release import Release
    from psd.api.series import SeriesRelease
    from psd.query.joint import Joint

__all__ = ["NamedRegions", "beside_shapes", "named_regions", "region_name_options"]

# Share of an area that rounding may put beyond the bounds.
_SLACK = 1e-9


def region_name_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--all-regions``, ``--region``, ``--table`` and ``--level``."""
    return chain_options(
        click.option(
            "--all-regions",
            is_flag=True,
            help="Answer all regions of a level of a release that counts regions by name.",
        ),
        click.option(
            "--region",
            multiple=True,
            metavar="ID",
            help="Answer the region of this id; may be repeated.",
        ),
        click.option(
            "--table",
            metavar="FILE",
            help="Answer the region of each row of a table: CSV, XLSX, Parquet, or any vector "
            "format. The answers have the columns and the order of the table.",
        ),
        click.option(
            "--table-id", metavar="COLUMN", help="Column of the ids in --table; by default id."
        ),
        click.option(
            "--level", metavar="NAME", help="Level of these regions; by default the lowest."
        ),
    )(command)


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedRegions:
    """Regions of a level that are asked for by name.

    Parameters
    ----------
    level : str, optional
        Name of the level; the lowest one by default.
    ids : tuple of str, optional
        Ids; all regions by default.
    table : DataFrame, optional
        Table of the caller, whose rows are answered.
    column : str
        Column of its ids.
    """

    level: str | None
    ids: tuple[str, ...] | None = None
    table: Any = None
    column: str = "id"

    def answer(self, loaded: Release | SeriesRelease, certainty: dict[str, Any]) -> Any:
        """Answers, with a geometry.

        Raises
        ------
        UsageError
            If the release has no named regions.
        ParameterError
            If it has no such level, or no region of an id.
        """
        regions = self._regions_of(loaded)
        if self.table is not None:
            return regions.query_table(self.table, self.column, level=self.level, **certainty)
        return regions.query_regions(self.level, self.ids, **certainty)

    def answer_sums(self, loaded: SeriesRelease, options: dict[str, Any]) -> Any:
        """Answers of several slices together; see `answer` for what is refused."""
        series = self._regions_of(loaded)
        if self.table is not None:
            return series.total_table(self.table, self.column, level=self.level, **options)
        return series.total_regions(self.level, self.ids, **options)

    def answer_jointly(self, loaded: Release | SeriesRelease, certainty: dict[str, Any]) -> Joint:
        """Joint answers; see `answer` for what is refused."""
        joint: Joint = self._regions_of(loaded).joint_regions(self.level, self.ids, **certainty)
        return joint

    def _regions_of(self, loaded: Release | SeriesRelease) -> Any:
        """The release, or series, if it counts regions by name."""
        from psd.api.region_release import RegionRelease
        from psd.api.series import SeriesRelease

        is_series = isinstance(loaded, SeriesRelease)
        first = loaded.releases[0] if isinstance(loaded, SeriesRelease) else loaded
        if not isinstance(first, RegionRelease):
            raise click.UsageError(
                "--all-regions, --region and --table must be used with a release that counts "
                f"regions by name, got a {'series' if is_series else 'release'} without any; give "
                "--boxes or --polygons"
            )
        return loaded

    def add_geometry(self, answers: Any, loaded: Release | SeriesRelease) -> Any:
        """Answers with the polygons of their regions, unless the table has a geometry."""
        import geopandas as gpd

        from psd.regions.ids import id_texts

        if isinstance(answers, gpd.GeoDataFrame):
            return answers
        release: Any = loaded.releases[0] if hasattr(loaded, "releases") else loaded
        regions, levels = release.regions_tree.regions, release.levels
        tier = len(levels) - 1 if self.level is None else levels.index(self.level)
        index = {name: number for number, name in enumerate(regions.levels[tier].ids)}
        ids = id_texts(answers["id" if self.table is None else self.column], "id")
        shapes = regions.shapes(tier)[[index[name] for name in ids]]
        return beside_shapes(answers, shapes, loaded.domain.crs)

    def count_beyond(self, loaded: Release | SeriesRelease) -> int:
        """Number of the lowest regions of the release that are not entirely inside the bounds."""
        release: Any = loaded.releases[0] if hasattr(loaded, "releases") else loaded
        return int((release.regions_tree.regions.part_outside > _SLACK).sum())


def beside_shapes(answers: Any, shapes: Any, crs: str) -> Any:
    """Answers with geometries, in a column with a name that no other one has."""
    import geopandas as gpd

    name = "geometry"
    while name in answers:
        name += "_of_region"
    return gpd.GeoDataFrame(answers.assign(**{name: shapes}), geometry=name, crs=crs)


def named_regions(
    *,
    all_regions: bool,
    region: tuple[str, ...],
    table: str | None,
    table_id: str | None,
    level: str | None,
) -> NamedRegions | None:
    """Regions of the options; None without any.

    Raises
    ------
    UsageError
        If options contradict each other.
    InputDataError
        If the table cannot be read.
    """
    from psd.regions.files import read_table

    if table_id is not None and table is None:
        raise click.UsageError("--table-id must be given with --table")
    chosen = sum(map(bool, (all_regions, region, table)))
    if not chosen:
        if level is not None:
            raise click.UsageError("--level must be given with --all-regions, --region or --table")
        return None
    if chosen > 1:
        raise click.UsageError(
            "at most one of --all-regions, --region and --table must be given; they answer regions "
            "of one level"
        )
    if table is None:
        return NamedRegions(level=level, ids=region or None)
    return NamedRegions(level=level, table=read_table(Path(table)), column=table_id or "id")
