"""The fields of a request: one table, from which all its forms follow.

A name is an argument of `psd.build`, a key of a recipe and, with hyphens, an option; one function
reads all three. Help reads the table, so nothing that reads records or draws is imported with it.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from psd._util.instances import check_names, is_table, shown, type_text
from psd._util.json_toml import read_toml, texts_of, values_of
from psd._util.plugins import names
from psd.decompositions import methods
from psd.decompositions._workload_shares import CLASSES
from psd.errors import InputDataError, ParameterError
from psd.privacy.budget import method_parameters
from psd.privacy.loss import delta_text
from psd.privacy.values import Value
from psd.publish.public_inputs import BoundaryFile, CovariateFile
from psd.regions.files import CellRegions, RegionFiles
from psd.regions.hierarchy import KINDS
from psd.release.about import ABOUT_KEYS, About, about_from_mapping
from psd.space.domain import DEFAULT_LATTICE, USUAL_MIN_CELL, Domain
from psd.space.time_slices import TimeSlices, names_of_times, slices_text

if TYPE_CHECKING:
    from psd.curator.private_bounds import PrivateBounds
    from psd.publish.request import BuildTerms

__all__ = ["FIELDS", "check_known", "public_files", "refuse_tables"]

AREA_OF_USE, PRIVATE, AUTO = "area-of-use", "private", "auto"
"""Words for the bounds of a CRS, for private bounds, and for a privately chosen bound of users."""

_ABOUT_FILE = "file"
_MAX_ABOUT = 2**17  # bytes; texts of all keys together are shorter
_WEIGHTS = re.compile(r"\d+( \d+)*", re.ASCII)

P = ParamSpec("P")
T = TypeVar("T")

Parser = Callable[[str, Any, Path | None], Any]
Formatter = Callable[["BuildTerms", Path | None], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A field of a request."""

    name: str  # argument of Python and key of a recipe; the option has hyphens
    group: str  # title under which the options of a command stand
    help: str  # what it means, one to three sentences
    # A private value is in no release, public part of a recipe, ledger, message or log.
    private: bool
    form: str = "NAME"  # form of the value, such as ``NAME`` or ``FILE``; empty for a flag
    # Value of a text, or of an object of Python, by the name of the field and the folder where
    # relative paths begin. By default the value as it is, which its class checks later.
    parse: Parser = lambda name, value, folder: value
    # Value of the field of a request, for a recipe in a folder; None where it is the default. A
    # private field has none, since no request holds it.
    value_of: Formatter | None = None
    choices: tuple[str, ...] = ()  # all values, if these are few
    is_list: bool = False  # whether there may be several values: the option is repeated
    is_everyday: bool = False  # whether ``--help`` shows it; ``--help-all`` shows all
    of_records: bool = False  # whether it says how records are read, so that tallies refuse it
    files: Callable[[Any], list[str]] | None = None  # files that a value names
    words: int = 1  # number of words of a value of the option
    long_option: str = ""  # the option, if it is not the name with hyphens
    # Whether `psd.build` has it; what else a run leaves behind has other functions.
    is_argument: bool = True

    @property
    def option(self) -> str:
        """The option of the command line."""
        return self.long_option or "--" + self.name.replace("_", "-")


# Values.


def _parse_values(name: str, value: Any, folder: Path | None) -> Any:
    """Values of names with two bounds, or of triples of words."""

    def is_list(item: Any, size: int | None = None) -> bool:
        return (
            isinstance(item, Sequence)
            and not isinstance(item, str)
            and (size is None or len(item) == size)
        )

    if isinstance(value, Mapping):
        for column, bounds in value.items():
            if not is_list(bounds, 2):
                raise ParameterError(
                    "values must have two bounds for each column, such as {'fare': (0, 60)}, got "
                    f"{type_text(bounds)} for {str(column)[:80]!r}"
                )
        value = [(column, *bounds) for column, bounds in value.items()]
    if not is_list(value) or not all(isinstance(v, Value) or is_list(v, 3) for v in value):
        raise ParameterError(
            f"values must be bounds by column, such as {{'fare': (0, 60)}}, got {type_text(value)}"
        )
    return tuple(each if isinstance(each, Value) else _value_of(*each) for each in value)


def _value_of(column: Any, low: Any, high: Any) -> Value:
    """A value of a column and two numbers, as such or in text."""
    try:
        bounds = float(low), float(high)
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(
            f"values must have two numbers as bounds, got {shown(low)} and {shown(high)} for "
            f"{str(column)[:80]!r}"
        ) from None
    return Value(str(column), *bounds)


def _values_value(request: BuildTerms, folder: Path | None) -> Any:
    """Bounds by column."""
    return {value.name: [value.lower, value.upper] for value in request.values} or None


# Paths.


def path_within(folder: Path | None, text: str) -> str:
    """A path of a recipe, which is relative to the recipe's folder; addresses stay as they are."""
    if folder is None or "://" in text or text == "-":
        return text
    return str(folder / text)


def path_beside(folder: Path | None, path: str) -> str:
    """A path as a recipe in a folder states it: the inverse of `path_within`."""
    if folder is None or "://" in path or path == "-" or os.path.isabs(path):
        return path
    return os.path.relpath(path, folder)


def _parse_file(name: str, value: Any, folder: Path | None) -> Any:
    """A path within the folder; another object stays."""
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    return path_within(folder, value) if isinstance(value, str) else value


def _parse_bounds(name: str, value: Any, folder: Path | None) -> Any:
    """Numbers and words as they are; a path within the folder."""
    if isinstance(value, str) and (value in (AREA_OF_USE, PRIVATE) or _is_box(value)):
        return value
    return _parse_file(name, value, folder)


def _is_box(text: str) -> bool:
    """Whether a text is made of numbers alone."""
    return re.fullmatch(r"[\[\]\s,.+\-0-9eE]+", text) is not None


def is_cells(text: str) -> bool:
    """Whether a text names regions that are cells, ``KIND=LEVELS`` as ``h3=5..9``, not a file."""
    kind, sign, _ = text.partition("=")
    return bool(sign) and kind in _kinds()


def _kinds() -> list[str]:
    """Kinds of regions that are cells."""
    return [kind for kind in names(KINDS) if kind != "polygons"]


def _parse_regions(name: str, value: Any, folder: Path | None) -> Any:
    """Cells of a kind; paths within the folder, as a tuple; another object stays."""
    items = value if isinstance(value, list | tuple) else (value,)
    if not all(isinstance(item, str | os.PathLike) for item in items):
        return value
    texts = tuple(map(os.fspath, items))
    if any(map(is_cells, texts)):
        if len(texts) > 1:
            raise ParameterError(
                f"{name} must be files, or one kind of cells, got {' and '.join(texts)}"
            )
        kind, _, cells = texts[0].partition("=")
        return CellRegions(kind=kind, cells=cells)
    for text in texts:
        if re.fullmatch(r"[\w-]+=[^/\\]*", text) and not os.path.exists(path_within(folder, text)):
            check_names("kind of regions", [text.partition("=")[0]], _kinds())
    return tuple(path_within(folder, text) for text in texts)


# Other values.


def _parse_texts(name: str, value: Any, folder: Path | None) -> tuple[str, ...]:
    """One text or several."""
    return texts_of(name, value)


def _parse_flag(name: str, value: Any, folder: Path | None) -> bool:
    """Whether a flag is set."""
    if isinstance(value, bool):
        return value
    raise ParameterError(f"{name} must be true or false, got {shown(value)}")


def _parse_slices(name: str, value: Any, folder: Path | None) -> Any:
    """A text of slices, or slices; days and other times of pandas as their names."""
    if isinstance(value, TimeSlices):
        return value
    is_numbers = getattr(getattr(value, "dtype", None), "kind", "") in ("f", "i", "u")
    if is_numbers or hasattr(value, "iloc"):
        raise ParameterError(
            f"{name} must be public, not a column, got {type_text(value)}; such as "
            'pd.period_range("2026-01", "2026-12", freq="M")',
            name=name,
        )
    return ",".join(texts_of(name, names_of_times(value)))


def _parse_labels(name: str, value: Any, folder: Path | None) -> Any:
    """A path within the folder; a list of labels, or parents by label, stays."""
    is_path = isinstance(value, os.PathLike) or (
        isinstance(value, str) and value.lower().endswith(".csv")
    )
    return Path(path_within(folder, os.fspath(value))) if is_path else value


def _label_files(value: Any) -> list[str]:
    """The file of labels."""
    return [str(value)] if isinstance(value, Path) else []


def _labels_value(request: BuildTerms, folder: Path | None) -> Any:
    """Labels, or parents by label if there is a tree."""
    category = request.category
    if category is None:
        return None
    if max(category.parents) < 0:
        return list(category.labels)
    above = ["" if each < 0 else category.labels[each] for each in category.parents]
    return dict(zip(category.labels, above, strict=True))


def _parse_bound(name: str, value: Any, folder: Path | None) -> Any:
    """A whole number, "auto", or how the bound is chosen."""
    if not isinstance(value, str) or value == AUTO:
        return value
    if not re.fullmatch(r"-?\d{1,20}", value, re.ASCII):
        raise ParameterError(
            f"{name} must be a whole number or {AUTO}, got {value[:80]!r}", name=name
        )
    return int(value)


def _parse_number(name: str, value: Any, folder: Path | None) -> Any:
    """A number of a text, in ASCII."""
    if not isinstance(value, str):
        return float(value) if isinstance(value, Decimal) else value  # of TOML
    try:
        if value.isascii() and "_" not in value:
            return float(value) if re.search(r"[.eE]", value) else int(value)
    except ValueError:
        pass
    raise ParameterError(f"{name} must be a number, got {value[:80]!r}", name=name)


def _parse_settings(name: str, value: Any, folder: Path | None) -> dict[str, Any]:
    """Parameters of a method: a mapping, or texts KEY=VALUE, each key once."""
    if not isinstance(value, Mapping):
        if not isinstance(value, str | list | tuple):
            raise ParameterError(
                f"{name} must be a table of KEY = VALUE, got {type_text(value)}", name=name
            )
        pairs = [text.partition("=") for text in texts_of(name, value)]
        for key, sign, text in pairs:
            if not (key and sign and text):
                raise ParameterError(
                    f"{name} must be KEY=VALUE, such as height=8, got {f'{key}{sign}{text}'!r}"
                )
            times = [key for key, _, _ in pairs].count(key)
            if times > 1:
                raise ParameterError(f"{name} {key} must be given once, got {times} times")
        value = {key: text for key, _, text in pairs}
    stated = {key: item for key, item in value.items() if item is not None}
    workload = stated.get("workload")
    workload = os.fspath(workload) if isinstance(workload, os.PathLike) else workload
    if isinstance(workload, str) and is_workload_file(workload):
        stated["workload"] = path_within(folder, workload)
    return stated


def is_workload_file(text: str) -> bool:
    """Whether a workload is a file, and not a size of boxes or the weights of levels."""
    return not (text in CLASSES or _WEIGHTS.fullmatch(text))


def _parse_about(name: str, value: Any, folder: Path | None) -> About | None:
    """What the publisher states: a mapping, or texts KEY=VALUE, and a file of them."""
    if isinstance(value, About):
        return value
    items: list[tuple[str, Any]] = []
    is_one = isinstance(value, Mapping | str | os.PathLike)
    for part in [value] if is_one else values_of(name, value):
        if isinstance(part, Mapping):
            items += ((key, item) for key, item in part.items() if item is not None)
        elif isinstance(part, os.PathLike):
            items.append((_ABOUT_FILE, part))
        else:
            key, sign, text = str(part).partition("=")
            if sign and not text:
                raise ParameterError(
                    f"{name} must be FILE or KEY=VALUE, such as title=Visits, got {part!r}"
                )
            items.append((key, text) if sign else (_ABOUT_FILE, key))
    texts: dict[str, Any] = {}
    for key, text in items:
        check_names(f"key of {name}", [key], (*ABOUT_KEYS, "license", _ABOUT_FILE))
        more = _read_about(path_within(folder, str(text))) if key == _ABOUT_FILE else {key: text}
        for stated, item in more.items():
            stated = "licence" if stated == "license" else stated
            if stated in texts:
                raise ParameterError(f"{name} {stated} must be given once", name=name)
            texts[stated] = item
    return about_from_mapping(texts)


def _read_about(path: str) -> dict[str, Any]:
    """Keys of a TOML file."""
    try:
        with Path(path).open("rb") as file:
            content = file.read(_MAX_ABOUT + 1)
        text = content.decode("utf-8")
    except (OSError, ValueError):
        raise InputDataError(f"about file {path} does not exist or is not UTF-8 text") from None
    if len(content) > _MAX_ABOUT:
        raise InputDataError(f"about file {path} must have at most {_MAX_ABOUT:,} bytes")
    table = read_toml("about file", text)
    check_names("key of about", table, (*ABOUT_KEYS, "license"))
    return table


# Public files that values name.


def _one_file(value: Any) -> list[str]:
    """The path of a text or of a file of a covariate or boundary."""
    path = value.path if isinstance(value, BoundaryFile | CovariateFile) else value
    return [path] if isinstance(path, str) else []


def _bounds_files(value: Any) -> list[str]:
    """The file that bounds are read from."""
    is_file = isinstance(value, str) and value not in (AREA_OF_USE, PRIVATE) and not _is_box(value)
    return [value] if is_file else []


def _region_files(value: Any) -> list[str]:
    """Files of regions."""
    paths = value.paths if isinstance(value, RegionFiles) else value
    return [path for path in paths if isinstance(path, str)] if isinstance(paths, tuple) else []


def _workload_files(value: Any) -> list[str]:
    """The file of a workload."""
    workload = value.get("workload")
    return [workload] if isinstance(workload, str) and is_workload_file(workload) else []


# Values of a request, for a recipe.


def _column(name: str) -> Formatter:
    """The name of a column, or how text is read; None where it is the default."""

    def value_of(request: BuildTerms, folder: Path | None) -> Any:
        stated = getattr(request.columns, name)
        return None if stated == getattr(type(request.columns)(), name) else stated

    return value_of


def _of_area(value_of: Callable[[Domain | PrivateBounds], Any]) -> Formatter:
    """A value of the domain, or of how its bounds are estimated; None without either."""
    return lambda request, folder: None if request.domain is None else value_of(request.domain)


def _private_bounds(name: str) -> Formatter:
    """How private bounds are estimated."""
    return _of_area(lambda area: getattr(area, name, None))


def _min_cell_value(area: Domain | PrivateBounds) -> Any:
    """Smallest cell of an area; 0 where there is none and the default would set one."""
    if not isinstance(area, Domain):
        return None if area.min_cell == USUAL_MIN_CELL else area.min_cell or "0"
    usual = replace(area, min_cell=USUAL_MIN_CELL).min_cell
    return area.min_cell or (None if usual is None else "0")


def _file_value(name: str, kind: type[BoundaryFile | CovariateFile]) -> Formatter:
    """The file of a covariate or boundary."""

    def value_of(request: BuildTerms, folder: Path | None) -> str | None:
        value = getattr(request, name)
        if value is None:
            return None
        if not isinstance(value, kind):
            raise ParameterError(
                f"{name} must be a file to be written to a recipe, got an object in memory"
            )
        return path_beside(folder, value.path)

    return value_of


def _of_covariate(name: str) -> Formatter:
    """A setting of the file of a covariate; None where it is the default."""

    def value_of(request: BuildTerms, folder: Path | None) -> Any:
        stated = getattr(request.covariate, name, None)
        is_file = isinstance(request.covariate, CovariateFile)
        return stated if is_file and stated != getattr(CovariateFile(path=""), name) else None

    return value_of


def _regions_value(request: BuildTerms, folder: Path | None) -> Any:
    """Files of regions, or cells."""
    if request.regions is None:
        return None
    source = request.region_source
    if source is None:
        raise ParameterError(
            "regions must be files or cells to be written to a recipe, got an object in memory"
        )
    if isinstance(source, CellRegions):
        return f"{source.kind}={source.cells}"
    return _shortened([path_beside(folder, path) for path in source.paths])


def _of_region_files(value_of: Callable[[RegionFiles], Any]) -> Formatter:
    """A value of files of regions; None without them."""
    return lambda request, folder: (
        value_of(request.region_source) if isinstance(request.region_source, RegionFiles) else None
    )


def _shortened(texts: list[str] | tuple[str, ...]) -> str | list[str] | None:
    """The text of a list of one, else the list; None for an empty one."""
    return (texts[0] if len(texts) == 1 else list(texts)) if texts else None


def _of_post_processing(name: str) -> Formatter:
    """How estimates are made, where it is not the default of the method."""

    def value_of(request: BuildTerms, folder: Path | None) -> Any:
        stated = getattr(request.post_processing, name)
        return None if stated == getattr(request.default_post_processing, name) else stated

    return value_of


def _bound_value(request: BuildTerms, folder: Path | None) -> int | str | None:
    """The bound of a user, or that it is chosen."""
    if request.contribution_choice is not None:
        return AUTO
    unit = request.unit
    return unit.max_contributions if unit.has_user and not unit.weight else None


def _of_choice(name: str) -> Formatter:
    """How the bound of a user is chosen."""
    return lambda request, folder: getattr(request.contribution_choice, name, None)


def _column_field(name: str, text: str, **more: Any) -> Field:
    """A field of how records are read, which `Columns` has under the same name."""
    return Field(
        name=name, group="Input", private=False, of_records=True, help=text,
        value_of=_column(name), **more,
    )  # fmt: skip


# fmt: off
FIELDS: Final = (
    # How records are read. Names of columns are public: a release of a ledger states them.
    _column_field("x", "Column of x or longitude; by default lon, else longitude, x or easting.",
                  is_everyday=True),
    _column_field("y", "Column of y or latitude; by default lat, else latitude, y or northing.",
                  is_everyday=True),
    _column_field("wkt", "Column of points as text such as POINT (127.01 37.5), in WKT, EWKT or "
                         "hexadecimal WKB, instead of x and y."),
    _column_field("geometry", "Column of points, if an input has several."),
    _column_field("layer", "Layer of a file, or sheet of a workbook, if it has several."),
    _column_field("delimiter", "Separator of CSV: , ; tab or |; by default found in the header "
                               "line.", form="CHAR"),
    _column_field("decimal", "Decimal sign of numbers in text, . or , (. by default).",
                  form="CHAR"),
    _column_field("encoding", "Of CSV: utf-8, utf-16 or windows-1252, which latin-1 means too; by "
                              "default UTF-8, and UTF-16 by its mark."),
    _column_field("skip_rows", "Number of lines above the header of CSV or of a sheet.", form="N",
                  parse=_parse_number),
    _column_field("input_crs", "CRS of the coordinates, if it is not --crs; they are transformed.",
                  form="CRS"),
    # Public, as bounds are: the proof of privacy holds for a filter that no record has chosen. A
    # recipe states it, and a ledger may register it; a release states no way of reading.
    _column_field("where", "Filter of the records by their own columns, such as \"diagnosis = "
                           "'asthma' AND age >= 18\"; with IN, LIKE, BETWEEN, IS NULL, OR, NOT. "
                           "Never chosen by the data; the release does not state it.",
                  form="FILTER", is_everyday=True),
    Field(name="table", group="Input", private=True, of_records=True,
          help="Table of an input postgresql://..., such as city.visits, or of Spark."),
    Field(name="query", group="Input", private=True, of_records=True, form="SELECT",
          help="SELECT statement of an input postgresql://..., instead of a table."),
    Field(name="memory", group="Input", private=True, form="SIZE",
          help="Limit on the memory for reading, such as 2GB."),
    Field(name="engine", group="Input", private=True, of_records=True, form="NAME:ADDRESS",
          help="What reads and counts records: duckdb, in this process, or Spark at an address, "
               "such as spark://host:7077, spark:sc://host:15002 or spark:local[2]. The release "
               "is the same."),
    Field(name="bounds", group="Area", private=False, of_records=True, form="W S E N",
          parse=_parse_bounds, files=_bounds_files, is_everyday=True,
          value_of=_of_area(
              lambda area: list(area.bounds) if isinstance(area, Domain) else PRIVATE),
          help="West south east north, from public knowledge, never from the data. Or FILE: "
               "those of public polygons; area-of-use: those in which the CRS is valid; private: "
               "estimated for a share of epsilon, and the input is read twice. By default those of "
               "--boundary, or else of --regions."),
    Field(name="bounds_crs", group="Area", private=False, of_records=True, form="CRS",
          help="CRS of the four numbers of --bounds, if it is not --crs."),
    Field(name="bounds_share", group="Area", private=False, of_records=True, form="SHARE",
          value_of=_private_bounds("share"),
          help="Share of epsilon that private bounds cost (0.1 by default)."),
    Field(name="bounds_beyond", group="Area", private=False, of_records=True, form="N",
          value_of=_private_bounds("beyond"),
          help="Private bounds leave about one record in N beyond each side (50 by default)."),
    Field(name="crs", group="Area", private=False, of_records=True, form="CRS", is_everyday=True,
          value_of=_of_area(lambda area: area.crs),
          help="CRS of the release, of --bounds and of coordinate columns; by default EPSG:4326."),
    Field(name="lattice", group="Area", private=False, of_records=True, form="NX,NY",
          value_of=_of_area(
              lambda area: None if area.coordinate_resolution is not None
              or area.lattice == DEFAULT_LATTICE else list(area.lattice)),
          help="Columns and rows of the lattice that all cells are made of."),
    Field(name="coordinate_resolution", group="Area", private=False, of_records=True, form="STEP",
          value_of=_of_area(lambda area: area.coordinate_resolution),
          help="Step to which the coordinates are rounded in the input, such as 0.0001, in units "
               "of --crs: a public fact about the source, never found in the data. Cells are no "
               "smaller, and edges of queries move to the middle between two values."),
    Field(name="min_cell", group="Area", private=False, form="METRES",
          value_of=_of_area(_min_cell_value),
          help="Smallest side on the ground of a cell of a method that adapts to the data, 0 for "
               "no limit; by default 5, but 0 for a local CRS and for narrower bounds. Sizes "
               "that are given, such as height=12, are not limited."),
    Field(name="boundary", group="Area", private=False, of_records=True, form="FILE",
          parse=_parse_file, value_of=_file_value("boundary", BoundaryFile), files=_one_file,
          is_everyday=True,
          help="Public polygons; records outside are dropped. Without --bounds, the bounds are "
               "theirs. FILE:layer=NAME names a layer, here and for other files."),
    Field(name="covariate", group="Area", private=False, form="FILE", parse=_parse_file,
          value_of=_file_value("covariate", CovariateFile), files=_one_file,
          help="Public raster or polygons that say where people can be; never made from the data."),
    Field(name="covariate_column", group="Area", private=False, value_of=_of_covariate("column"),
          help="Column of the weights of the polygons, per unit of area on the ground; without "
               "it they are a mask."),
    Field(name="covariate_size", group="Area", private=False, form="N", parse=_parse_number,
          value_of=_of_covariate("size"),
          help="Columns and rows to which the covariate is resampled (1024 by default)."),
    Field(name="regions", group="Regions", private=False, form="FILE", is_list=True,
          parse=_parse_regions, value_of=_regions_value, files=_region_files, is_everyday=True,
          help="Public regions that are counted by name; records in none of them are dropped. "
               "Polygons of the lowest regions, or a file of each level, top first. Or cells: "
               "grid-cells=1km,10km, h3=5..9, tiles=8..14. --method is then what is inside the "
               "lowest regions: auto, cascade or none; or cube, with slices."),
    Field(name="region_id", group="Regions", private=False, form="COLUMN", is_list=True,
          parse=_parse_texts, is_everyday=True,
          value_of=_of_region_files(lambda files: _shortened(files.ids)),
          help="Column of the ids of regions; one for each file, or for all."),
    Field(name="region_parent", group="Regions", private=False, form="COLUMN", is_list=True,
          parse=_parse_texts, value_of=_of_region_files(lambda files: _shortened(files.parents)),
          help="Column of the ids of the level above, the nearest first."),
    Field(name="gaps", group="Regions", private=False, choices=("refuse", "elsewhere", "outside"),
          value_of=_of_region_files(lambda files: None if files.gaps == "refuse" else files.gaps),
          help="What an area in no region is: an error, which is the default, one more region, "
               "or left out, the default where regions alone state the area."),
    Field(name="tolerance", group="Regions", private=False, form="LENGTH", parse=_parse_number,
          value_of=_of_region_files(
              lambda files: files.tolerance and Decimal(repr(files.tolerance))),
          help="Width of gaps and overlaps of regions that are accepted, in units of --crs."),
    Field(name="repair", group="Regions", private=False, form="", parse=_parse_flag,
          value_of=lambda request, folder: any(
              getattr(file, "repair", False) for file in (request.boundary, request.region_source)
          ) or None,
          help="Repair invalid polygons, of regions and of the boundary; they are refused "
               "otherwise, since a repair may change their area."),
    Field(name="epsilon", group="Release", private=False, form="E", is_everyday=True,
          value_of=lambda request, folder: request.epsilon,
          help="Privacy loss, such as 0.5; smaller is more private, and noisier."),
    Field(name="delta", group="Release", private=False, form="D",
          value_of=lambda request, folder: request.delta and delta_text(request.delta),
          help="Probability with which the release may reveal more than epsilon allows, such as "
               "1e-6: far below one over the number of users, and below 1e-3. Only Gaussian "
               "noise spends it."),
    Field(name="noise", group="Release", private=False, choices=("auto", "laplace", "gaussian"),
          value_of=lambda request, folder: None if request.noise == AUTO else request.noise,
          help="Law of the noise. auto, the default: with --delta, a series of many slices has "
               "Gaussian noise if that is less; else Laplace noise, which spends no delta. "
               "gaussian needs --delta."),
    Field(name="method", group="Release", private=False, choices=(*methods(), "none"),
          is_everyday=True, value_of=lambda request, folder: request.method.name,
          help="Method that divides space, see `psd methods`. By default auto, for more than 8 "
               "slices cube."),
    Field(name="set", group="Release", private=False, form="KEY=VALUE", is_list=True,
          parse=_parse_settings, files=_workload_files, is_everyday=True,
          value_of=lambda request, folder: {
              name: value for name, value in method_parameters(request.method).items()
              if value is not None},
          help="Parameter of the method, such as height=8. workload=FILE.csv favours the boxes of "
               "a file (west,south,east,north), workload=SIZE tiny, small, medium, large or huge "
               "ones. Never chosen by the data."),
    Field(name="estimate", group="Release", private=False,
          value_of=_of_post_processing("estimate"),
          help="How estimates are made of the noisy counts; by default as the method defines."),
    Field(name="density", group="Release", private=False, value_of=_of_post_processing("density"),
          help="How people are spread inside a cell; by default as the method defines."),
    Field(name="about", group="Release", private=False, form="KEY=VALUE|FILE", is_list=True,
          parse=_parse_about,
          value_of=lambda request, folder: None if request.about is None else request.about.texts,
          help="What the release states about itself; public, never taken from the data. Keys: "
               "title, publisher, description, licence (such as CC-BY-4.0), contact, "
               "reference_date (2024, 2024-06 or 2024-01/2024-06), language (such as en), "
               "justification (why this epsilon); or a TOML file with them."),
    Field(name="user", group="Unit of privacy", private=False, of_records=True, form="COLUMN",
          value_of=_column("user"), is_everyday=True,
          help="Column of user ids: all records of a user are protected together. Without it, "
               "each record is protected separately."),
    Field(name="max_contributions", group="Unit of privacy", private=False, of_records=True,
          form="K", parse=_parse_bound, value_of=_bound_value, is_everyday=True,
          help="Largest number of records kept of each user, or of each day or slice with --per. "
               "auto: chosen privately."),
    Field(name="choice_share", group="Unit of privacy", private=False, of_records=True,
          form="SHARE", value_of=_of_choice("share"),
          help="Share of epsilon that --max-contributions auto costs (0.05 by default)."),
    Field(name="choice_over", group="Unit of privacy", private=False, of_records=True, form="N",
          value_of=_of_choice("over"),
          help="Number of users with more records that --max-contributions auto aims at."),
    Field(name="choice_limit", group="Unit of privacy", private=False, of_records=True, form="N",
          value_of=_of_choice("limit"),
          help="Largest number that --max-contributions auto chooses."),
    Field(name="per", group="Unit of privacy", private=False, of_records=True,
          choices=("day", "user-slice", "slice", "record"),
          value_of=lambda request, folder: (
              "slice" if request.contribution_scope == "slice" else
              {"user-day": "day", "user-slice": "user-slice"}.get(request.unit.kind)),
          help="day: each day of a user is protected separately. user-slice: each slice of a "
               "user. slice: K records of a user are kept in each slice, and the slices share "
               "epsilon; of --method cube all slices together, which keep T x K in T slices. "
               "record: each record, as without --user; no warning asks for users."),
    Field(name="count", group="Unit of privacy", private=False, of_records=True,
          choices=("records", "users"),
          value_of=lambda request, folder: "users" if request.unit.weight else None,
          help="records, the default: estimates are numbers of records. users: the records of a "
               "user have a total weight of 1, so estimates are numbers of users; none is "
               "dropped."),
    Field(name="time", group="Time", private=False, of_records=True, form="COLUMN",
          value_of=_column("time"), is_everyday=True,
          help="Column of times: timestamps, dates or ISO 8601."),
    Field(name="time_zone", group="Time", private=False, of_records=True, form="ZONE",
          value_of=_column("time_zone"),
          help="Time zone of days and slices, such as Asia/Seoul (UTC by default)."),
    Field(name="slices", group="Time", private=False, of_records=True, form="NAMES",
          parse=_parse_slices, is_everyday=True,
          value_of=lambda request, folder: request.slices and slices_text(request.slices),
          help="Count each of these time slices: months, weeks, days or hours, such as "
               "2024-01,2024-03..2024-06, 2024-W05 or 2024-01-31T17. Public, never from the data; "
               "needs --time."),
    Field(name="max_per_slice", group="Time", private=False, of_records=True, form="M",
          parse=_parse_number, value_of=lambda request, folder: request.unit.max_per_slice,
          help="Largest number of records kept of each user in one slice, of the K in all."),
    Field(name="separate_slices", group="Time", private=False, form="", parse=_parse_flag,
          value_of=lambda request, folder: request.separate_slices or None,
          help="Count each of more than 8 slices separately, as those with regions, values or a "
               "--method are; without it they are one cube."),
    Field(name="category", group="Category", private=False, of_records=True, form="COLUMN",
          value_of=_column("category"),
          help="Column of labels by which records are counted too, in one release; needs --labels. "
               "The records of a unit in all categories share epsilon."),
    Field(name="labels", group="Category", private=False, of_records=True, form="LABELS",
          parse=_parse_labels, value_of=_labels_value, files=_label_files,
          help="Labels of --category, such as met,city, or a CSV file with columns label and "
               "parent. Public, never those that the data have. Records have the labels without "
               "labels below them."),
    Field(name="other_labels", group="Category", private=False, of_records=True,
          choices=("count", "drop"),
          value_of=lambda request, folder: (
              None if request.category is None or request.category.has_other else "drop"),
          help="count, the default: records of all other labels, or none, are the category other. "
               "drop: they are left out before any bound, wherever they lie."),
    Field(name="values", group="Release", private=False, of_records=True, form="COLUMN LOW HIGH",
          parse=_parse_values, value_of=_values_value, is_list=True, words=3,
          long_option="--value",
          help="Also publish sums and means of this column in every area, such as fare 0 60. The "
               "bounds are public, never from the data; values beyond them count as the nearest "
               "bound. Counts get sqrt(2) times the noise for the first value."),
    Field(name="ledger", group="Privacy budget", private=True, form="FILE", is_everyday=True,
          parse=_parse_file,
          help="Ledger to charge before noise is drawn; `psd ledger create` makes one."),
    Field(name="dataset", group="Privacy budget", private=True, is_everyday=True,
          help="Dataset of the ledger whose budget is charged."),
    Field(name="analyst", group="Privacy budget", private=True,
          help="Analyst who is charged; must be given if the dataset has caps."),
    Field(name="report_private", group="Private output", private=True, form="", parse=_parse_flag,
          is_argument=False,
          help="Print PRIVATE numbers of records to stderr; with --dry-run, nothing is drawn."),
    Field(name="keep_tally", group="Private output", private=True, form="FILE", parse=_parse_file,
          is_argument=False,
          help="Write the PRIVATE exact tally, for `psd check evaluate`; only its owner may read "
               "the file."),
)
"""All fields, in the order of `psd build --help-all`."""
# fmt: on

REPLACED: Final = {
    "read": "keys of their own, such as x, y, time and time_zone",
    "noise_law": "noise",
    "private_output": "report_private and keep_tally",
}
"""Keys and arguments of before version 0.2.0, and what replaces them."""

_SIZES = (
    'set, such as set={"height": 8}, or method=psd.decompositions.Quadtree(height=8); levels of '
    "regions are named by region_id and region_parent"
)
_TIMES = "time, the name of the column of times"
_SLICES = 'slices, such as slices="2026-01..2026-12"'

GUESSED: Final = {
    **dict.fromkeys(("unit", "protect", "privacy_unit"), 'per, such as per="day"; user= names ids'),
    **dict.fromkeys(("eps", "budget", "privacy_budget"), "epsilon"),
    **dict.fromkeys(("height", "depth", "size", "cell_size", "levels", "budget_split"), _SIZES),
    **dict.fromkeys(
        ("seed", "random_state", "rng", "random_seed"),
        "sampler, such as psd.testing.SeededSampler(1), for demonstrations alone: whoever knows a "
        "seed knows the noise",
    ),
    **dict.fromkeys(("date", "dates", "timestamp", "datetime", "time_column"), _TIMES),
    **dict.fromkeys(("tz", "timezone"), "time_zone"),
    **dict.fromkeys(("freq", "by", "periods", "windows"), _SLICES),
    **dict.fromkeys(("bbox", "extent", "total_bounds", "window"), "bounds"),
    **dict.fromkeys(("box", "polygon", "region"), "area"),
    **dict.fromkeys(("epsg", "srid", "projection", "to_crs", "out_crs"), "crs"),
    **dict.fromkeys(("data_crs", "from_crs", "points_crs"), "input_crs"),
    **dict.fromkeys(("lon", "longitude", "easting", "x_column"), "x"),
    **dict.fromkeys(("lat", "latitude", "northing", "y_column"), "y"),
    **dict.fromkeys(("columns", "column"), "x, y, user and time, one argument for each column"),
    **dict.fromkeys(("geom", "geometry_column"), "geometry"),
    **dict.fromkeys(("zones", "areas", "polygons", "wards", "districts"), "regions"),
    **dict.fromkeys(("region_levels", "region_parents", "parent", "parents", "hierarchy"),
                    'region_parent, the column of the level above, such as "district"'),
    **dict.fromkeys(("region_ids", "region_name", "region_names", "region_column"), "region_id"),
    **dict.fromkeys(("id", "ids", "id_column", "name"), "region_id, or user for ids of people"),
    **dict.fromkeys(("outside", "elsewhere"), "gaps, of areas in no region; queries have outside"),
    **dict.fromkeys(("mask", "clip", "study_area"), "boundary"),
    **dict.fromkeys(("user_id", "users", "user_column", "person", "individual"), "user"),
    **dict.fromkeys(("k", "max_per_user", "contributions", "sensitivity"), "max_contributions"),
    **dict.fromkeys(("mechanism", "noise_type", "distribution"), "noise"),
    **dict.fromkeys(("algorithm", "tree", "structure"), "method"),
    **dict.fromkeys(("resolution", "rounding", "precision"), "coordinate_resolution"),
    **dict.fromkeys(("metadata", "title"), 'about, such as about={"title": "Visits"}'),
    **dict.fromkeys(("n", "size_of_data", "records", "rows", "n_records"), "count"),
    **dict.fromkeys(("sep", "separator"), "delimiter"),
}  # fmt: skip
"""Arguments that do not exist and are guessed, and what is meant; the first word is a name."""


def field_names(*, private: bool | None = None) -> tuple[str, ...]:
    """Names of the fields; of the private or the public ones alone where that is asked."""
    return tuple(field.name for field in FIELDS if private in (None, field.private))


def check_known(kind: str, given: Mapping[str, Any], known: tuple[str, ...]) -> None:
    """Refuse names that do not exist, those of older versions with the new name."""
    for name in given:
        if name in REPLACED and name not in known:
            raise ParameterError(f"{kind} {name!r} is now {REPLACED[name]}", name=name)
        hint = GUESSED.get(name, "")
        if name not in known and re.split(r"\W", hint)[0] in known:
            raise ParameterError(f"{kind} {name!r} does not exist; give {hint}", name=name)
    check_names(kind, given, known)


_OBJECTS = ("area", "boundary", "bounds", "covariate", "data", "domain", "lattice", "regions",
            "slices", "where")  # fmt: skip
"""Arguments that may be tables, arrays or geometries."""


def refuse_tables(named: Mapping[str, Any]) -> None:
    """Refuse tables where a text or a number is meant, by their types: they may be records."""
    for name, value in named.items():
        if name not in _OBJECTS and is_table(value):
            raise ParameterError(
                f"{name} must not be a table, a column or an array, got {type_text(value)}; a "
                "column is given by its name, such as 'lon'",
                name=name,
            )


def answer_guesses(
    own: Mapping[str, str],
) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Let a function refuse unknown arguments by what is meant; `own` are sentences of it alone."""

    def of_function(function: Callable[P, T]) -> Callable[P, T]:
        arguments = inspect.signature(function).parameters
        known = tuple(arguments)
        first = [
            name for name, each in arguments.items() if each.kind == each.POSITIONAL_OR_KEYWORD
        ]

        @wraps(function)
        def checked(*args: P.args, **named: P.kwargs) -> T:
            if len(args) > len(first):
                raise ParameterError(
                    f"arguments after {' and '.join(first)} must be named, such as "
                    f"{known[len(first)]}=..., got {len(args)} without a name"
                )
            for name in named:
                if name in own and name not in known:
                    raise ParameterError(own[name], name=name)
            check_known("argument", named, known)
            refuse_tables(named)
            return function(*args, **named)

        return checked

    return of_function


def public_files(values: Mapping[str, Any], folder: Path | None = None) -> list[str]:
    """Public files that values name: of bounds, boundary, covariate, regions and workload."""
    files: list[str] = []
    for field in FIELDS:
        if field.files is not None and values.get(field.name) is not None:
            files += field.files(field.parse(field.name, values[field.name], folder))
    about = values.get("about")
    if isinstance(about, Mapping):
        files += [path_within(folder, str(about[_ABOUT_FILE]))] if _ABOUT_FILE in about else []
    elif about is not None and not isinstance(about, About):
        texts = [about] if isinstance(about, str | os.PathLike) else about
        files += [
            path_within(folder, str(text))
            for text in texts
            if isinstance(text, os.PathLike) or "=" not in str(text)
        ]
    return files


def values_of_request(request: BuildTerms, *, folder: Path | None = None) -> dict[str, Any]:
    """Values by public fields, paths relative to `folder`; public inputs in memory are refused."""
    values = {
        field.name: field.value_of(request, folder)
        for field in FIELDS
        if field.value_of is not None
    }
    return {name: value for name, value in values.items() if value is not None}
