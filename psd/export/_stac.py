"""A release as an item of STAC 1.1, the format of catalogues of spatial data."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from psd.errors import ParameterError
from psd.export._catalogue import Described

if TYPE_CHECKING:
    from datetime import datetime

__all__ = ["entry"]

_PROJECTION = "https://stac-extensions.github.io/projection/v2.0.0/schema.json"
_LANGUAGE = "https://stac-extensions.github.io/language/v1.0.0/schema.json"

# Identifiers of SPDX, as STAC takes them; another licence is "other", with a link.
_LICENCE = re.compile(r"[\w.+-]+", re.ASCII)


def entry(described: Described) -> dict[str, Any]:
    """Item whose asset is the release file."""
    interval = described.interval
    if interval is None:
        raise ParameterError(
            "about must have a reference_date for an item of STAC, whose format requires a time, "
            "got none; build with it, or add it by release.replace(about=...)"
        )
    bbox = described.bbox
    item: dict[str, Any] = {
        "type": "Feature",
        "stac_version": "1.1.0",
        "stac_extensions": [_PROJECTION],
        "id": described.identifier,
        "geometry": None if bbox is None else _geometry(*bbox),
        **({} if bbox is None else {"bbox": bbox}),
        "properties": _properties(described, interval),
        "links": _links(described),
        "assets": {
            "release": {
                "href": f"./{quote(described.file)}",
                "type": "application/vnd.apache.parquet",
                "title": "noisy counts of the cells",
                "roles": ["data"],
            }
        },
    }
    if "language" in item["properties"]:
        item["stac_extensions"].append(_LANGUAGE)
    return item


def _properties(described: Described, interval: tuple[datetime, datetime]) -> dict[str, Any]:
    """Properties of the item: common metadata, the projection, and the guarantee."""
    metadata, domain = described.metadata, described.record.domain
    properties: dict[str, Any] = {
        "datetime": None,
        "start_datetime": _moment(interval[0]),
        "end_datetime": _moment(interval[1]),
        "title": described.title,
        "description": described.description,
    }
    if "licence" in metadata:
        is_name = _LICENCE.fullmatch(metadata["licence"]) is not None
        properties["license"] = metadata["licence"] if is_name else "other"
    if "publisher" in metadata:
        properties["providers"] = [{"name": metadata["publisher"], "roles": ["producer"]}]
    if "language" in metadata:
        properties["language"] = {"code": metadata["language"]}
    properties["proj:code"] = domain.crs if re.fullmatch(r"[A-Z]+:\d+", domain.crs) else None
    properties["proj:bbox"] = list(domain.bounds)
    stated = {key: text for key, text in metadata.items() if key not in ("title", "description")}
    return {**properties, **{f"psd:{key}": text for key, text in stated.items()}}


def _links(described: Described) -> list[dict[str, str]]:
    """Link to a licence that is an address."""
    licence = described.metadata.get("licence", "")
    if not licence.startswith(("https://", "http://")):
        return []
    return [{"rel": "license", "href": licence}]


def _moment(moment: datetime) -> str:
    """Time by RFC 3339."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _geometry(west: float, south: float, east: float, north: float) -> dict[str, Any]:
    """Rectangle; two of them if it crosses the antimeridian (RFC 7946)."""
    if west <= east:
        return {"type": "Polygon", "coordinates": [_ring(west, south, east, north)]}
    parts = [_ring(west, south, 180.0, north)], [_ring(-180.0, south, east, north)]
    return {"type": "MultiPolygon", "coordinates": list(parts)}


def _ring(west: float, south: float, east: float, north: float) -> list[list[float]]:
    """Corners of a rectangle, counterclockwise and closed."""
    return [[west, south], [east, south], [east, north], [west, north], [west, south]]
