"""A folder of releases that can be published as it is: pages, files, and entries of catalogues."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyogrio

from psd._util.atomic_write import temporary_folder
from psd._util.extras import require_matplotlib
from psd._util.instances import type_text
from psd.api.release import Release
from psd.apps.web.map_page import fitting_levels, map_page
from psd.apps.web.methodology import methodology_page
from psd.apps.web.sheet_words import Language, page_language
from psd.apps.web.site_page import Published, SiteFile, index_page
from psd.errors import ParameterError, WriteError
from psd.export import Described, density_unit, find_format, stac_collection
from psd.query.answer_table import reliability_limits
from psd.release.series import SeriesRecord
from psd.signing import read_signature, signature_name

if TYPE_CHECKING:
    import geopandas


MAX_LAYER_CELLS = 200_000
"""Limit of the cells of GeoPackage and tiles, all time slices together: more take minutes."""

_THRESHOLD = 0.3

# Most bytes of a name without what stands around it in the names of files, which have 255.
_NAME_BYTES = 200

# The time that GDAL writes into files.
_NOW = "OGR_CURRENT_DATE"

# Names of all files of a folder with their SHA-256, as `sha256sum -c` reads them. Its first line
# says that psd may replace the folder.
_SUMS = "SHA256SUMS"
_MARK = "# All files of this folder, written by psd\n"
_SUM = re.compile(r"([0-9a-f]{64})  (.+)")

_INDEX: dict[Language, str] = {"en": "index.en.html", "ko": "index.ko.html"}
_ROOT = ("index.html", "catalog.json", "datapackage.json", _SUMS, *_INDEX.values())

_PARQUET = "application/vnd.apache.parquet"
_TYPES = {
    "release": _PARQUET,
    "table": _PARQUET,
    "layer": "application/geopackage+sqlite3",
    "tiles": "application/vnd.pmtiles",
}


Source = str | os.PathLike[str]


def write_site(
    releases: Source | Sequence[Source] | Mapping[str, Release],
    folder: Source,
    *,
    overwrite: bool = False,
) -> None:
    """Write a folder that publishes releases from any static host, or from a disk.

    Guarantees
    ----------
    - Made of the releases alone: it costs no epsilon.
    - No page loads anything from elsewhere, or runs a script but those of the map page.
    - The folder appears whole, by a rename, or not at all. The same releases give the same bytes.
    - Only an empty folder, or one whose files are all as psd wrote them, is replaced.

    Parameters
    ----------
    releases : path-like, sequence of path-like, or mapping of Release by name
        Release files, which are copied, with their signatures (``.sig``) if these stand beside
        them; or releases with names for their folders.
    folder : path-like
        Folder to write; the folder above it must exist.
    overwrite : bool
        Whether a folder that was written before is replaced.

    Raises
    ------
    ParameterError
        If there is no release, or two have the same name.
    ReleaseFormatError
        If a file is not a release, or what stands in the place of its signature is a link or not
        a signature of this release.
    WriteError
        If the folder has other files, exists, or cannot be written.
    MissingExtraError
        If matplotlib is not installed.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from psd.apps.web import write_site
    >>> from psd.testing.data import release_from_counts
    >>> visits = release_from_counts([[500, 100], [0, 200]])
    >>> with tempfile.TemporaryDirectory() as place:
    ...     write_site({"visits": visits}, f"{place}/site")
    ...     sorted(path.name for path in Path(f"{place}/site").iterdir())[:3]
    ['SHA256SUMS', 'catalog.json', 'datapackage.json']
    """
    files = [releases] if isinstance(releases, str | os.PathLike) else releases
    named = files if isinstance(files, Mapping) else {}
    paths = files if isinstance(files, Sequence) else []
    wrong: list[Any] = [one for one in named.values() if not isinstance(one, Release)]
    wrong += [one for one in paths if not isinstance(one, str | os.PathLike)]
    wrong += [files] * (not isinstance(files, Mapping | Sequence))
    if wrong:
        raise ParameterError(
            "releases must be release files, or releases by name such as {'seoul': release}, got "
            f"{type_text(wrong[0])}",
            name="releases",
        )
    published = [Published(name=folder_name(name), release=each) for name, each in named.items()]
    published += [
        Published(name=folder_name(path), release=Release.load(path), path=Path(path))
        for path in paths
    ]
    write_folder(published, folder, overwrite=overwrite)


def folder_name(file: Source) -> str:
    """Name of a release file without its endings, in letters that need no care in an address."""
    name = Path(file).name.removesuffix(".parquet").removesuffix(".psd")
    plain = re.sub(r"[^\w.-]+", "-", unicodedata.normalize("NFC", name)).strip("-._")
    # File systems limit bytes, and letters of some languages take three.
    return plain[:100].encode()[:_NAME_BYTES].decode(errors="ignore") or "release"


def write_folder(releases: Sequence[Published], folder: Source, *, overwrite: bool) -> None:
    """Write the folder of releases; see `write_site`."""
    if not releases:
        raise ParameterError("releases must be at least one, got none", name="releases")
    taken = {name.casefold() for name in _ROOT}
    for name in (each.name for each in releases):
        if name.casefold() in taken:
            raise ParameterError(
                f"releases must have names of their own, got {name} twice or for a file of the "
                "folder itself; rename one of the files",
                name="releases",
            )
        taken.add(name.casefold())
    require_matplotlib("a folder with sheets of method")
    # Before anything is written: a file that only has the name of a signature is not published.
    signatures = {
        each.name: read_signature(beside, each.release.digest)
        for each in releases
        if each.path is not None and os.path.lexists(beside := signature_name(each.path))
    }
    named = Path(folder)
    target = Path(os.path.abspath(named))
    with temporary_folder(target, lambda: _check_target(named, overwrite=overwrite)) as made:
        written = [_write_release(each, made, signatures.get(each.name)) for each in releases]
        # Pages in the language of the first release, and in the other one.
        first = page_language(releases[0].release)
        pages: dict[str, Language] = {
            "index.html": first,
            **{_INDEX[x]: x for x in _INDEX if x != first},
        }
        for file, language in pages.items():
            other = next(name for name in pages if name != file)
            page = index_page(written, language, other)
            (made / file).write_text(page, encoding="utf-8")
        _write_json(made / "catalog.json", _stac_catalog(written))
        _write_json(made / "datapackage.json", _data_package(written))
        sums = sorted((name, _sha256(made / name)) for name in _files_of(made))
        text = _MARK + "".join(f"{digest}  {name}\n" for name, digest in sums)
        (made / _SUMS).write_text(text, encoding="utf-8")


# --- the folder that is replaced ------------------------------------------------------------------


def _check_target(folder: Path, *, overwrite: bool) -> None:
    """Refuse a folder that may hold anything but what psd wrote."""
    try:
        is_there = _is_there(folder)
        if folder.is_symlink() or (is_there and not folder.is_dir()):
            fault = f"folder must be a folder, got {folder}, a file or a link"
        elif not folder.absolute().parent.is_dir():
            fault = f"folder {folder.parent} does not exist; create it first"
        elif not os.access(folder.absolute().parent, os.W_OK):
            fault = f"folder {folder.parent} is not writable; choose another one"
        elif is_there and Path.cwd().is_relative_to(folder.resolve()):
            fault = f"folder must not hold the working folder, got {folder}; run from outside it"
        else:
            is_full = is_there and any(folder.iterdir())
            fault = _fault_of_content(folder) if is_full else ""
            if is_full and not fault and not overwrite:
                fault = f"{folder} exists; choose another name, or pass overwrite=True"
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "this is not a valid file name"
        fault = f"cannot write {folder}: {reason}"
    if fault:
        raise WriteError(fault, path=folder)


def _is_there(path: Path) -> bool:
    """Whether a name is taken, by a broken link too; one that is none is an error."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _fault_of_content(folder: Path) -> str:
    """What a folder holds that psd did not write, in a sentence; empty if nothing."""
    sums = folder / _SUMS
    text = sums.read_text(encoding="utf-8", errors="replace") if sums.is_file() else ""
    if not text.startswith(_MARK):  # it may be large
        return (
            f"folder must be new, empty, or one that psd wrote, got {folder} with other files; "
            "choose another name"
        )
    written = {m[2]: m[1] for m in map(_SUM.fullmatch, text.splitlines()[1:]) if m}
    for name in sorted(_files_of(folder) - {_SUMS}):
        path = folder / name
        if path.is_symlink() or written.get(name) != _sha256(path):
            return (
                f"folder must have the files that psd wrote alone, got {name} in {folder}, which "
                "was added or changed; move it away"
            )
    return ""


def _files_of(folder: Path) -> set[str]:
    """Names of all files below a folder, with ``/``."""
    paths = (path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
    return {path.relative_to(folder).as_posix() for path in paths}


def _sha256(path: Path) -> str:
    """SHA-256 of a file; of what is no plain file, none."""
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# --- the files of a release -----------------------------------------------------------------------


def _write_release(each: Published, made: Path, signature: bytes | None) -> Published:
    """Write the files of a release; the same with its files."""
    release, folder = each.release, made / each.name
    folder.mkdir()
    files: list[SiteFile] = []
    file = folder / f"{each.name}.psd.parquet"
    if each.path is None:
        release.save(file)
    else:
        shutil.copyfile(each.path, file)

    def note(
        kind: str,
        path: Path,
        columns: Mapping[str, str] | None = None,
        level: str = "",
        language: Language | None = None,
    ) -> None:
        files.append(
            SiteFile(
                kind=kind,
                path=f"{each.name}/{path.name}",
                size=path.stat().st_size,
                digest=_sha256(path),
                level=level,
                language=language,
                columns=dict(columns or {}),
            )
        )

    trees = [record.tree for record in each.records]
    levels = fitting_levels(trees)
    if levels:
        page = map_page(release, level=levels[-1])
        (folder / "map.html").write_text(page, encoding="utf-8")
        note("map", folder / "map.html")
    # As the first pages: in the language of the release, and in the other one.
    own = page_language(release)
    for language in sorted(_INDEX, key=lambda each: each != own):
        sheet = folder / ("sheet.html" if language == own else f"sheet.{language}.html")
        sheet.write_text(methodology_page(release, language), encoding="utf-8")
        note("sheet", sheet, language=language)
    note("release", file)
    if signature is not None:
        signature_name(file).write_bytes(signature)
        note("signature", signature_name(file))
    endings = {"layer": ".gpkg"}
    if "PMTiles" in pyogrio.list_drivers(write=True) and _described(each).bbox is not None:
        endings["tiles"] = ".pmtiles"
    few = sum(int(tree.is_leaf.sum()) for tree in trees) <= MAX_LAYER_CELLS
    for number, level in enumerate(release.levels or ("",)):
        stem = f"regions-{number + 1}-{folder_name(level)}" if level else "cells"
        columns = _write_table(each, level, folder / f"{stem}.parquet")
        note("table", folder / f"{stem}.parquet", columns, level)
        for kind, ending in endings.items() if few else ():
            _write_layer(each, level, folder / f"{stem}{ending}")
            note(kind, folder / f"{stem}{ending}", level=level)
    done = replace(each, files=tuple(files))
    _write_json(folder / _entry_name(done), _stac_entry(done))
    return done


def _tables(each: Published, level: str) -> Iterator[geopandas.GeoDataFrame]:
    """Table of each slice of a series, with its name in a first column; of others, the only one."""
    release = each.release
    stated = {
        "content": "regions" if level else "cells",
        **release.metadata,
        **reliability_limits(_THRESHOLD).texts,
        "unreliable": "keep",
        "density_unit": density_unit(each.records[0]),
    }
    names: list[Any] = list(release) if isinstance(release.record, SeriesRecord) else [None]
    for name in names:
        shown = release if name is None else release[name]
        table = shown.to_geopandas(level=level or None, threshold=_THRESHOLD)
        if name is not None:
            table.insert(0, "slice", name)
        table.attrs = stated
        yield table


def _write_table(each: Published, level: str, path: Path) -> dict[str, str]:
    """Write GeoParquet, a group of rows for each slice; the types of its columns."""
    import pyarrow.parquet as pq

    tables, writer = _tables(each, level), find_format(path)
    if not isinstance(each.release.record, SeriesRecord):
        writer.write(next(tables), path)
        schema = pq.read_schema(path)
    else:
        with tempfile.TemporaryDirectory(dir=path.parent) as place:
            one, several = Path(place) / "one.parquet", None
            for table in tables:
                writer.write(table, one)
                rows = pq.read_table(one)
                schema = rows.schema if several is None else schema
                several = several or pq.ParquetWriter(path, schema)
                several.write_table(rows.cast(schema))
            assert several is not None  # a series has slices
            several.close()
    return {column.name: str(column.type) for column in schema}


def _write_layer(each: Published, level: str, path: Path) -> None:
    """Write the cells of all slices together, without the time at which they are written."""
    import geopandas as gpd
    import pandas as pd

    tables = list(_tables(each, level))
    joined = tables[0] if len(tables) == 1 else gpd.GeoDataFrame(pd.concat(tables))
    joined.attrs = tables[0].attrs
    before = pyogrio.get_gdal_config_option(_NOW)
    pyogrio.set_gdal_config_options({_NOW: "1970-01-01T00:00:00.000Z"})
    try:
        find_format(path).write(joined, path)
    finally:
        pyogrio.set_gdal_config_options({_NOW: before})


# --- catalogues -----------------------------------------------------------------------------------


def _write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write JSON for people too."""
    text = json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False)
    path.write_text(f"{text}\n", encoding="utf-8")


def _described(each: Published) -> Described:
    """A release as catalogues describe it."""
    return Described(
        record=each.records[0],
        metadata=each.release.metadata,
        guarantee=each.release.record.guarantee_text,
        file=f"{each.name}.psd.parquet",
        slices=each.release.slices,
    )


def _entry_name(each: Published) -> str:
    """File of the entry: items of STAC must have a time, collections need none."""
    return "collection.json" if _described(each).interval is None else "item.json"


# What follows the name of a table in those of the same cells in other formats.
_KEYS = {"layer": "-layer", "tiles": "-tiles"}


def _stac_entry(each: Published) -> dict[str, Any]:
    """Item or collection of STAC, with all files of the release."""
    described = _described(each)
    if described.interval is None:
        entry = stac_collection(described)
    else:
        entry = each.release.catalogue("stac", file=described.file)
    # Addresses may have letters of all languages: programs that open a disk decode none.
    entry["assets"]["release"]["href"] = f"./{described.file}"
    roles = {
        "table": "data",
        "layer": "data",
        "tiles": "visual",
        "map": "overview",
        "sheet": "metadata",
    }
    for file in each.files:
        if file.kind in roles:
            name = Path(file.path).name
            entry["assets"][f"{Path(name).stem}{_KEYS.get(file.kind, '')}"] = {
                "href": f"./{name}",
                "type": _TYPES.get(file.kind, "text/html"),
                "title": file.title(file.language or "en"),
                "roles": [roles[file.kind]],
            }
    root = {"href": "../catalog.json", "type": "application/json"}
    entry["links"] += [{"rel": "root", **root}, {"rel": "parent", **root}]
    return entry


def _stac_catalog(releases: Sequence[Published]) -> dict[str, Any]:
    """Catalogue of STAC, with a link to the entry of each release."""
    links = [{"rel": "root", "href": "./catalog.json", "type": "application/json"}]
    for each in releases:
        name = _entry_name(each)
        is_item = name == "item.json"
        links.append(
            {
                "rel": "item" if is_item else "child",
                "href": f"./{each.name}/{name}",
                "type": "application/geo+json" if is_item else "application/json",
                "title": _described(each).title,
            }
        )
    return {
        "type": "Catalog",
        "stac_version": "1.1.0",
        "id": "releases",
        "title": _title(releases),
        "description": "Differentially private counts of locations.",
        "links": links,
    }


def _title(releases: Sequence[Published]) -> str:
    """Title of the whole: that of the only release, or of what they are."""
    return (
        _described(releases[0]).title if len(releases) == 1 else "Differentially private releases"
    )


def _data_package(releases: Sequence[Published]) -> dict[str, Any]:
    """Data Package 2.0, whose resources are the release, the tables, layers and tiles of each."""
    resources = []
    for each in releases:
        described, metadata = _described(each), each.release.metadata
        for file in each.files:
            if file.kind not in _TYPES:
                continue
            path = Path(file.path)
            stem = "" if file.kind == "release" else f"-{path.stem}{_KEYS.get(file.kind, '')}"
            resource: dict[str, Any] = {
                "name": f"{each.name}{stem}".lower(),
                "path": file.path,
                "title": f"{described.title}: {file.title('en')}",
                "description": described.description,
                "format": path.suffix[1:],
                "mediatype": _TYPES[file.kind],
                "bytes": file.size,
                "hash": f"sha256:{file.digest}",
                **_licences(metadata.get("licence")),
            }
            if file.columns:
                fields = [{"name": n, "type": _field_type(t)} for n, t in file.columns.items()]
                resource["schema"] = {"fields": fields}
            resources.append(resource)
    publishers = dict.fromkeys(each.release.metadata.get("publisher") for each in releases)
    contributors = [{"title": name, "roles": ["publisher"]} for name in publishers if name]
    return {
        "$schema": "https://datapackage.org/profiles/2.0/datapackage.json",
        "name": releases[0].name.lower() if len(releases) == 1 else "releases",
        "title": _title(releases),
        "description": "Differentially private counts of locations.",
        **({"contributors": contributors} if contributors else {}),
        "resources": resources,
    }


def _licences(licence: str | None) -> dict[str, Any]:
    """Licence of a resource: an identifier, an address, or a text."""
    if licence is None:
        return {}
    if licence.startswith(("https://", "http://")):
        return {"licenses": [{"path": licence}]}
    if re.fullmatch(r"[\w.+-]+", licence, re.ASCII):
        return {"licenses": [{"name": licence}]}
    return {"licenses": [{"name": "other", "title": licence}]}


def _field_type(arrow: str) -> str:
    """Type of a column as data packages name it."""
    kinds = {"bool": "boolean", "string": "string", "large_string": "string", "double": "number"}
    if arrow.startswith(("int", "uint")):
        return "integer"
    return "object" if arrow.startswith("struct") else kinds.get(arrow, "any")
