"""Entries of catalogues: a release as an item of STAC, a dataset of DCAT, a registered deployment.

All are JSON of the release alone; the context of DCAT is part of the document, so no reader fetches
one. Fields of the registry are those of Dwork, Kohli, Mulligan. "Differential Privacy in Practice:
Expose your Epsilons!" Journal of Privacy and Confidentiality 9(2), 2019.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, time, timedelta
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import quote

import numpy as np

from psd._util.declared_parameters import choice
from psd._util.wall_clock import check_zone
from psd.errors import ParameterError
from psd.privacy.budget import BUDGET_STATEMENTS
from psd.space.crs import explain_proj_errors, parse_crs

if TYPE_CHECKING:
    from psd.release.about import About
    from psd.release.record import ReleaseRecord
    from psd.space.time_slices import TimeSlices


Standard = Literal["stac", "dcat", "registry"]

STANDARDS: Final = ("stac", "dcat", "registry")
"""Catalogues that an entry can be made for; each is a module of this package."""

_SUFFIXES = (".parquet", ".psd")
_DECIMALS = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """A release or a series, as catalogues describe it."""

    record: ReleaseRecord  # of the release, or of the first slice
    metadata: dict[str, str]  # see `psd.export._formats.release_metadata`
    guarantee: str  # epsilon and unit of privacy in words
    file: str  # name of the release file, with which links in the entry begin
    slices: TimeSlices | None = None  # of a series

    @property
    def about(self) -> About | None:
        """What the publisher states."""
        return self.record.about

    @property
    def identifier(self) -> str:
        """Name of the file without its endings."""
        name = PurePath(self.file).name
        for suffix in _SUFFIXES:
            name = name.removesuffix(suffix)
        return name or "release"

    @property
    def title(self) -> str:
        """Title, or the identifier."""
        return self.metadata.get("title", self.identifier)

    @property
    def description(self) -> str:
        """Description, or what the counts are; the guarantee follows."""
        lead = self.metadata.get(
            "description", f"Numbers of {self.record.counted_text}, by location"
        )
        return f"{lead.rstrip('.')}. Differentially private: {self.guarantee}."

    @property
    def interval(self) -> tuple[datetime, datetime] | None:
        """First and last second of the reference date, or of the slices; None without both."""
        period = None if self.about is None else self.about.period
        if period is not None:
            return (
                datetime.combine(period[0], time(), UTC),
                datetime.combine(period[1], time(23, 59, 59), UTC),
            )
        if self.slices is None:
            return None
        from zoneinfo import ZoneInfo

        zone = ZoneInfo(check_zone(self.slices.time_zone))
        first, after = (
            moment.astype("datetime64[s]").item().replace(tzinfo=zone)
            for moment in (self.slices.begins[0], self.slices.ends[-1])
        )
        return first.astimezone(UTC), (after - timedelta(seconds=1)).astimezone(UTC)

    @property
    def bbox(self) -> list[float] | None:
        """West, south, east, north in degrees of WGS 84; None for a local CRS.

        West is greater than east where the domain crosses the antimeridian.
        """
        from pyproj import Transformer

        from psd.errors import DomainError

        domain = self.record.domain
        try:
            with explain_proj_errors("the release", "EPSG:4326"):
                transformer = Transformer.from_crs(
                    parse_crs(domain.crs), "EPSG:4326", always_xy=True
                )
                sides = transformer.transform_bounds(*domain.bounds)
        except DomainError:
            return None
        if not np.isfinite(sides).all():
            return None
        west, south, east, north = (round(float(side), _DECIMALS) for side in sides)
        return [west, max(south, -90.0), east, min(north, 90.0)]


def catalogue_entry(standard: str, described: Described) -> dict[str, Any]:
    """Entry of a catalogue as JSON values; see `Release.catalogue`."""
    choice(*STANDARDS)("standard", standard)
    entries = {"stac": stac_entry, "dcat": dcat_entry, "registry": registry_entry}
    return entries[standard](described)


_CONTEXT = {
    "dcat": "http://www.w3.org/ns/dcat#",
    "dct": "http://purl.org/dc/terms/",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "geo": "http://www.opengis.net/ont/geosparql#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "spdx": "http://spdx.org/rdf/terms#",
    "vcard": "http://www.w3.org/2006/vcard/ns#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}

_PARQUET = "https://www.iana.org/assignments/media-types/application/vnd.apache.parquet"

# Licences by their identifiers of SPDX.
_DCAT_LICENCE = re.compile(r"[A-Za-z0-9.+-]+", re.ASCII)

# Codes of the EU's list of languages, which DCAT-AP prescribes, for its 24 languages and others.
# fmt: off
_LANGUAGES = {
    "bg": "BUL", "cs": "CES", "da": "DAN", "de": "DEU", "el": "ELL", "en": "ENG", "es": "SPA",
    "et": "EST", "fi": "FIN", "fr": "FRA", "ga": "GLE", "hr": "HRV", "hu": "HUN", "it": "ITA",
    "ja": "JPN", "ko": "KOR", "lt": "LIT", "lv": "LAV", "mt": "MLT", "nl": "NLD", "no": "NOR",
    "pl": "POL", "pt": "POR", "ro": "RON", "ru": "RUS", "sk": "SLK", "sl": "SLV", "sv": "SWE",
    "tr": "TUR", "uk": "UKR", "zh": "ZHO",
}
# fmt: on


def dcat_entry(described: Described) -> dict[str, Any]:
    """Dataset with one distribution, the release file."""
    metadata = described.metadata
    dataset: dict[str, Any] = {
        "@context": _CONTEXT,
        "@type": "dcat:Dataset",
        "dct:identifier": described.identifier,
        "dct:title": _in_language(described.title, described),
        "dct:description": _in_language(described.description, described),
        "dcat:keyword": ["differential privacy", "spatial statistics"],
        "dct:provenance": {
            "@type": "dct:ProvenanceStatement",
            "rdfs:label": f"{metadata['library']}, method {metadata['method']}; "
            f"{described.guarantee}",
        },
    }
    if "publisher" in metadata:
        dataset["dct:publisher"] = {"@type": "foaf:Agent", "foaf:name": metadata["publisher"]}
    if "contact" in metadata:
        text = metadata["contact"]
        contact: dict[str, Any] = {"@type": "vcard:Kind", "vcard:fn": text}
        if re.fullmatch(r"[^@\s:/]+@[^@\s:/]+", text):
            contact["vcard:hasEmail"] = {"@id": f"mailto:{quote(text, safe='@')}"}
        elif _is_address(text):
            contact["vcard:hasURL"] = {"@id": text}
        dataset["dcat:contactPoint"] = contact
    if "language" in metadata:
        dataset["dct:language"] = _language(metadata["language"])
    interval = described.interval
    if interval is not None:
        dataset["dct:temporal"] = {
            "@type": "dct:PeriodOfTime",
            "dcat:startDate": _typed(_moment(interval[0]), "xsd:dateTime"),
            "dcat:endDate": _typed(_moment(interval[1]), "xsd:dateTime"),
        }
    bbox = described.bbox
    if bbox is not None:
        west, south, east, north = bbox
        # One that crosses the antimeridian continues beyond 180 degrees.
        corners = _ring(west, south, east + 360 if east < west else east, north)
        wkt = f"POLYGON(({', '.join(f'{x:.9g} {y:.9g}' for x, y in corners)}))"
        dataset["dct:spatial"] = {
            "@type": "dct:Location",
            "dcat:bbox": _typed(wkt, "geo:wktLiteral"),
        }
    # The release file stands at an address beside that of the document.
    address = {"@id": quote(described.file)}
    distribution: dict[str, Any] = {
        "@type": "dcat:Distribution",
        "dcat:accessURL": address,
        "dcat:downloadURL": address,
        "dct:title": described.file,
        "dcat:mediaType": {"@id": _PARQUET},
    }
    if "licence" in metadata:
        distribution["dct:license"] = _licence(metadata["licence"])
    return {**dataset, "dcat:distribution": distribution}


def _in_language(text: str, described: Described) -> Any:
    """Text with the language that the publisher states."""
    language = described.metadata.get("language")
    return text if language is None else {"@value": text, "@language": language}


def _typed(text: str, kind: str) -> dict[str, str]:
    """Literal of a type."""
    return {"@value": text, "@type": kind}


def _language(tag: str) -> dict[str, str]:
    """Language in the list of the EU; others in that of the Library of Congress."""
    code = tag.split("-")[0].lower()
    if code in _LANGUAGES:
        return {
            "@id": f"http://publications.europa.eu/resource/authority/language/{_LANGUAGES[code]}"
        }
    vocabulary = "iso639-1" if len(code) == 2 else "iso639-2"
    return {"@id": f"http://id.loc.gov/vocabulary/{vocabulary}/{code}"}


def _licence(text: str) -> dict[str, str]:
    """Address of a licence; one of another form is a document with this text."""
    if _is_address(text):
        return {"@id": text, "@type": "dct:LicenseDocument"}
    if _DCAT_LICENCE.fullmatch(text):
        return {"@id": f"https://spdx.org/licenses/{text}", "@type": "dct:LicenseDocument"}
    return {"@type": "dct:LicenseDocument", "rdfs:label": text}


def _is_address(text: str) -> bool:
    """Whether a text is an address of the web, without characters that an IRI may not have."""
    return re.fullmatch(r"https?://[^\s<>\"{}|\\^`]+", text) is not None


_MODELS = {
    "curator": "central: a trusted curator holds the records",
    "local": "local: each device randomises its own answer, and no one holds the records",
    "given": "not known: the counts were given to the library",
}

_COMPOSITION = {
    True: "basic composition along each path of the tree, parallel composition across its cells",
    False: "rho adds up along each path of the tree; its largest sum is converted to epsilon and "
    "delta",
}

_PRODUCT = ("publisher", "description", "contact", "licence", "reference_date", "language")


def registry_entry(described: Described) -> dict[str, Any]:
    """Fields of the registry; what the release does not state is null."""
    record, metadata = described.record, described.metadata
    about = {} if record.about is None else record.about.texts
    product = {name: about.get(name) for name in _PRODUCT}
    # The definition of privacy, and what draws the noise.
    flavour = {"name": "pure differential privacy", "delta": "0"}
    if "rho" in metadata:
        name = "zero-concentrated differential privacy"
        flavour = {"name": name, "delta": metadata["delta"], "rho": metadata["rho"]}
    mechanism = f"{record.tree.noise.law.replace('_', ' ')} noise on integer counts"
    if record.local is not None:
        protocols = sorted({level.protocol for level in record.local.levels})
        mechanism = "randomised response: " + ", ".join(protocols)
    return {
        "product": {"title": described.title, **product, "digest": metadata.get("digest")},
        "unit": {
            "protects": record.unit.kind,
            "neighbours": "add or remove one",
            "max_contributions": record.unit.max_contributions,
            "counts": metadata["counts"],
        },
        "flavour": flavour,
        "epsilon": metadata["epsilon"],
        "guarantee": described.guarantee,
        "model": _MODELS[record.source],
        "accounting": _accounting(described),
        "implementation": {
            "library": metadata["library"],
            "mechanism": mechanism,
            "method": record.method,
            "parameters": dict(record.parameters),
            "post_processing": asdict(record.post_processing),
        },
        "justification": about.get("justification"),
    }


def _accounting(described: Described) -> str:
    """How epsilon adds up, and which charge of which ledger paid for it."""
    record = described.record
    if record.source == "given":
        return "epsilon is stated by the publisher; the library did not draw the counts"
    if record.local is not None:
        return "each device sends one report, of one level, so epsilon is that of a report"
    parts = [_COMPOSITION[record.tree.noise.measure.is_pure]]
    spent = [name for name in record.parameters if name in BUDGET_STATEMENTS]
    if any(name.endswith(("epsilon", "rho")) for name in spent):
        name = record.tree.noise.measure.name
        parts.append(f"{name} includes what was spent before the method began")
    if described.slices is not None:
        parts.append(f"epsilon is that of all {len(described.slices):,} time slices together")
    ledger, charge = (record.parameters.get(name) for name in ("ledger", "charge"))
    if charge is not None:
        parts.append(f"paid for by charge {charge} of ledger {ledger}")
    return "; ".join(parts)


_PROJECTION = "https://stac-extensions.github.io/projection/v2.0.0/schema.json"
_LANGUAGE = "https://stac-extensions.github.io/language/v1.0.0/schema.json"

# Identifiers of SPDX, as STAC takes them; another licence is "other", with a link.
_STAC_LICENCE = re.compile(r"[\w.+-]+", re.ASCII)


def stac_entry(described: Described) -> dict[str, Any]:
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
        "links": _stac_links(described),
        "assets": _stac_assets(described),
    }
    if "language" in item["properties"]:
        item["stac_extensions"].append(_LANGUAGE)
    return item


def stac_collection(described: Described) -> dict[str, Any]:
    """Collection whose asset is the release file: the entry of a release without a time.

    A collection must have a place; that of a local CRS is the world.
    """
    metadata = described.metadata
    stated = {key: text for key, text in metadata.items() if key not in ("title", "description")}
    return {
        "type": "Collection",
        "stac_version": "1.1.0",
        "id": described.identifier,
        "title": described.title,
        "description": described.description,
        "license": _stac_licence(metadata.get("licence", "")),
        **_stac_providers(metadata),
        "extent": {
            "spatial": {"bbox": [described.bbox or [-180.0, -90.0, 180.0, 90.0]]},
            "temporal": {"interval": [[None, None]]},
        },
        **{f"psd:{key}": text for key, text in stated.items()},
        "links": _stac_links(described),
        "assets": _stac_assets(described),
    }


def _stac_links(described: Described) -> list[dict[str, str]]:
    """Link to the licence, if it is stated by its address."""
    licence = described.metadata.get("licence", "")
    return [{"rel": "license", "href": licence}] if _is_address(licence) else []


def _stac_assets(described: Described) -> dict[str, Any]:
    """The release file."""
    release = {
        "href": f"./{quote(described.file)}",
        "type": "application/vnd.apache.parquet",
        "title": "noisy counts of the cells",
        "roles": ["data"],
    }
    return {"release": release}


def _stac_licence(licence: str) -> str:
    """Identifier of a licence as STAC takes it."""
    return licence if _STAC_LICENCE.fullmatch(licence) else "other"


def _stac_providers(metadata: dict[str, str]) -> dict[str, Any]:
    """The publisher, if it is stated."""
    if "publisher" not in metadata:
        return {}
    return {"providers": [{"name": metadata["publisher"], "roles": ["producer"]}]}


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
        properties["license"] = _stac_licence(metadata["licence"])
    properties |= _stac_providers(metadata)
    if "language" in metadata:
        properties["language"] = {"code": metadata["language"]}
    properties["proj:code"] = domain.crs if re.fullmatch(r"[A-Z]+:\d+", domain.crs) else None
    properties["proj:bbox"] = list(domain.bounds)
    stated = {key: text for key, text in metadata.items() if key not in ("title", "description")}
    return {**properties, **{f"psd:{key}": text for key, text in stated.items()}}


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
