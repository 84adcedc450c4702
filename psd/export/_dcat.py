"""A release as a dataset of DCAT-AP in JSON-LD, the format of open data portals.

The context is part of the document, so no reader fetches one.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

from psd.export._catalogue import Described

__all__ = ["entry"]

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
_LICENCE = re.compile(r"[A-Za-z0-9.+-]+", re.ASCII)

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


def entry(described: Described) -> dict[str, Any]:
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
        dataset["dcat:contactPoint"] = _contact(metadata["contact"])
    if "language" in metadata:
        dataset["dct:language"] = _language(metadata["language"])
    interval = described.interval
    if interval is not None:
        dataset["dct:temporal"] = {
            "@type": "dct:PeriodOfTime",
            "dcat:startDate": _typed(f"{interval[0]:%Y-%m-%dT%H:%M:%SZ}", "xsd:dateTime"),
            "dcat:endDate": _typed(f"{interval[1]:%Y-%m-%dT%H:%M:%SZ}", "xsd:dateTime"),
        }
    bbox = described.bbox
    if bbox is not None:
        dataset["dct:spatial"] = {
            "@type": "dct:Location",
            "dcat:bbox": _typed(_polygon_text(*bbox), "geo:wktLiteral"),
        }
    return {**dataset, "dcat:distribution": _distribution(described)}


def _distribution(described: Described) -> dict[str, Any]:
    """Release file, at an address beside that of the document."""
    metadata = described.metadata
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
    return distribution


def _in_language(text: str, described: Described) -> Any:
    """Text with the language that the publisher states."""
    language = described.metadata.get("language")
    return text if language is None else {"@value": text, "@language": language}


def _typed(text: str, kind: str) -> dict[str, str]:
    """Literal of a type."""
    return {"@value": text, "@type": kind}


def _contact(text: str) -> dict[str, Any]:
    """Address of mail, of a page, or a name."""
    contact: dict[str, Any] = {"@type": "vcard:Kind", "vcard:fn": text}
    if re.fullmatch(r"[^@\s:/]+@[^@\s:/]+", text):
        contact["vcard:hasEmail"] = {"@id": f"mailto:{quote(text, safe='@')}"}
    elif _is_address(text):
        contact["vcard:hasURL"] = {"@id": text}
    return contact


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
    if _LICENCE.fullmatch(text):
        return {"@id": f"https://spdx.org/licenses/{text}", "@type": "dct:LicenseDocument"}
    return {"@type": "dct:LicenseDocument", "rdfs:label": text}


def _is_address(text: str) -> bool:
    """Whether a text is an address of the web, without characters that an IRI may not have."""
    return re.fullmatch(r"https?://[^\s<>\"{}|\\^`]+", text) is not None


def _polygon_text(west: float, south: float, east: float, north: float) -> str:
    """WKT of a rectangle; one that crosses the antimeridian continues beyond 180 degrees."""
    east = east + 360 if east < west else east
    corners = ((west, south), (east, south), (east, north), (west, north), (west, south))
    return f"POLYGON(({', '.join(f'{x:.9g} {y:.9g}' for x, y in corners)}))"
