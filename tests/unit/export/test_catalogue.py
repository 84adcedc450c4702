"""Entries of catalogues are what independent readers of the standards accept, without a network."""

import json
from pathlib import Path

import numpy as np
import pytest

import psd
from psd.errors import ParameterError
from support.releases import as_drawn

ABOUT = {
    "title": "Visits in Seoul",
    "publisher": "Office of Seoul",
    "description": "Counts of visits.",
    "licence": "CC-BY-4.0",
    "contact": "stat@example.org",
    "reference_date": "2024-01/2024-06",
    "language": "ko",
    "justification": "decision 7 of the board",
}
SEOUL = {"bounds": (126.4, 37, 127.6, 38)}


def release(about=ABOUT, **domain):
    domain = psd.Domain(**(domain or SEOUL))
    tree = psd.decompositions.grid_tree(domain, 4)
    counts = psd.Release.from_counts(tree, np.arange(16) * 10, 1.0, domain=domain)
    return as_drawn(counts).replace(about=about)


def series(about=None, time_zone="Asia/Seoul", by="month", names="2024-01..2024-03"):
    slices = psd.TimeSlices.parse(by, names, time_zone)
    return psd.Release.from_slices(slices, [release(about)] * len(slices))


@pytest.fixture
def stac_schema():
    """The schema of an item of STAC 1.1, from the files that pystac brings along."""
    import jsonschema
    from pystac.validation.local_validator import get_local_schema_cache
    from referencing import Registry, Resource

    stored = get_local_schema_cache()
    registry = Registry().with_resources(
        (address, Resource.from_contents(schema)) for address, schema in stored.items()
    )
    (item,) = [schema for address, schema in stored.items() if address.endswith("/item.json")]
    return jsonschema.Draft7Validator(item, registry=registry)


CASES = {
    "degrees": {},
    "metres": {"bounds": (900000, 1900000, 1000000, 2000000), "crs": "EPSG:5179"},
    "antimeridian": {"bounds": (2.9e6, -3e6, 5e6, -2e6), "crs": "EPSG:3832"},
    "local": {"bounds": (0, 0, 10, 10), "crs": 'LOCAL_CS["site",UNIT["metre",1]]'},
}


@pytest.mark.deep
@pytest.mark.parametrize("case", CASES)
def test_an_item_of_stac_follows_its_schema(stac_schema, case):
    entry = release(**CASES[case]).catalogue("stac", file="sub/seoul.psd.parquet")
    assert [fault.message for fault in stac_schema.iter_errors(json.loads(json.dumps(entry)))] == []
    assert entry["id"] == "seoul"
    assert entry["assets"]["release"]["href"] == "./seoul.psd.parquet"
    assert entry["properties"]["license"] == "CC-BY-4.0"
    assert (entry["geometry"] is None) == ("bbox" not in entry) == (case == "local")


@pytest.mark.deep
@pytest.mark.parametrize("case", CASES)
def test_pystac_reads_the_item(case):
    import pystac

    entry = release(**CASES[case]).catalogue("stac", file="seoul.psd.parquet")
    item = pystac.Item.from_dict(entry)
    times = item.common_metadata.start_datetime, item.common_metadata.end_datetime
    assert [f"{moment:%Y-%m-%d %H:%M:%S %z}" for moment in times] == [
        "2024-01-01 00:00:00 +0000",
        "2024-06-30 23:59:59 +0000",
    ]
    assert item.common_metadata.providers[0].name == "Office of Seoul"


def test_the_area_of_an_item_holds_the_domain():
    entry = release().catalogue("stac")
    assert entry["bbox"] == [126.4, 37.0, 127.6, 38.0]
    turned = release(**CASES["antimeridian"]).catalogue("stac")
    west, _, east, _ = turned["bbox"]
    assert west > east
    assert turned["geometry"]["type"] == "MultiPolygon"


@pytest.mark.deep
def test_an_item_needs_a_time_and_a_series_has_it(stac_schema):
    with pytest.raises(ParameterError, match="must have a reference_date for an item of STAC"):
        release({"title": "x"}).catalogue("stac")
    entry = series().catalogue("stac", file="year.psd.parquet")
    assert entry["properties"]["start_datetime"] == "2023-12-31T15:00:00Z"  # Seoul is 9 hours ahead
    assert entry["properties"]["end_datetime"] == "2024-03-31T14:59:59Z"
    assert list(stac_schema.iter_errors(json.loads(json.dumps(entry)))) == []
    hours = series(time_zone="UTC", by="hour", names="2024-01-31T22..2024-01-31T23")
    assert hours.catalogue("stac")["properties"]["end_datetime"] == "2024-01-31T23:59:59Z"


@pytest.mark.deep
def test_a_licence_of_another_form_is_a_link(stac_schema):
    address = "https://example.org/licence"
    entry = release({**ABOUT, "licence": address}).catalogue("stac")
    assert entry["properties"]["license"] == "other"
    assert entry["links"] == [{"rel": "license", "href": address}]
    assert list(stac_schema.iter_errors(json.loads(json.dumps(entry)))) == []
    words = release({**ABOUT, "licence": "free for research"}).catalogue("stac")
    assert (words["properties"]["license"], words["links"]) == ("other", [])


def graph_of(entry):
    """The document as rdflib reads it; a context that had to be fetched would fail."""
    import rdflib

    graph = rdflib.Graph()
    graph.parse(
        data=json.dumps(entry), format="json-ld", publicID="https://data.example.org/seoul.jsonld"
    )
    return graph, rdflib.Namespace("http://www.w3.org/ns/dcat#"), rdflib.DCTERMS


@pytest.mark.deep
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("case", CASES)
def test_a_dataset_of_dcat_has_what_dcat_ap_requires(case):
    made = release(**CASES[case])
    graph, dcat, dct = graph_of(made.catalogue("dcat", file="a b.psd.parquet"))
    (dataset,) = graph.subjects(predicate=None, object=dcat.Dataset)
    titles = list(graph.objects(dataset, dct.title))
    assert [(str(text), text.language) for text in titles] == [("Visits in Seoul", "ko")]
    (text,) = graph.objects(dataset, dct.description)
    assert made.record.guarantee_text in text
    (distribution,) = graph.objects(dataset, dcat.distribution)
    (address,) = graph.objects(distribution, dcat.accessURL)
    assert str(address) == "https://data.example.org/a%20b.psd.parquet"
    (licence,) = graph.objects(distribution, dct.license)
    assert str(licence) == "https://spdx.org/licenses/CC-BY-4.0"
    (language,) = graph.objects(dataset, dct.language)
    assert str(language).endswith("/language/KOR")
    (period,) = graph.objects(dataset, dct.temporal)
    (start,) = graph.objects(period, dcat.startDate)
    assert start.toPython().isoformat() == "2024-01-01T00:00:00+00:00"
    (agent,) = graph.objects(dataset, dct.publisher)
    assert {str(each) for each in graph.objects(agent)} >= {"Office of Seoul"}
    places = list(graph.objects(dataset, dct.spatial))
    assert len(places) == (case != "local")


@pytest.mark.deep
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_dataset_without_statements_has_a_title_too():
    graph, dcat, dct = graph_of(release(None).catalogue("dcat", file="seoul.psd.parquet"))
    (dataset,) = graph.subjects(predicate=None, object=dcat.Dataset)
    assert [str(text) for text in graph.objects(dataset, dct.title)] == ["seoul"]
    assert list(graph.objects(dataset, dct.temporal)) == []


@pytest.mark.deep
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_texts_of_any_form_are_valid(subtests):
    for key, text, words in (
        ("contact", "stat@example.org", "mailto:stat@example.org"),
        ("contact", "https://example.org/about", "https://example.org/about"),
        ("contact", 'the "office" <b>', 'the "office" <b>'),
        ("licence", "https://example.org/licence", "https://example.org/licence"),
        ("licence", "free for research <x>", "free for research <x>"),
        ("language", "fo", "http://id.loc.gov/vocabulary/iso639-1/fo"),
        ("title", '</script> "x" \\', '</script> "x" \\'),
    ):
        with subtests.test(text):
            graph, _, _ = graph_of(release({**ABOUT, key: text}).catalogue("dcat"))
            assert words in {str(each) for each in graph.objects()}


def test_an_entry_of_the_registry_has_all_fields():
    entry = release().catalogue("registry")
    assert entry["product"]["title"] == "Visits in Seoul"
    assert entry["unit"]["protects"] == "record"
    assert (entry["epsilon"], entry["flavour"]["delta"]) == ("1", "0")
    assert entry["model"].startswith("central")
    assert "parallel composition" in entry["accounting"]
    assert entry["implementation"]["library"] == f"psd {psd.__version__}"
    assert entry["implementation"]["mechanism"].startswith("discrete")
    assert entry["justification"] == "decision 7 of the board"
    assert release(None).catalogue("registry")["justification"] is None


def test_the_registry_does_not_vouch_for_counts_of_others():
    domain = psd.Domain(bounds=(0, 0, 2, 2))
    given = psd.Release.from_counts(psd.decompositions.grid_tree(domain, 1), [5], 1, domain=domain)
    entry = given.catalogue("registry")
    assert entry["model"].startswith("not known")
    assert "did not draw" in entry["accounting"]


def test_the_registry_states_the_model_of_local_releases_and_the_epsilon_of_series():
    stored = psd.load(Path(__file__).parents[2] / "golden" / "local.psd.parquet")
    entry = stored.catalogue("registry")
    assert entry["model"].startswith("local")
    assert "subset" in entry["implementation"]["mechanism"]
    several = series().catalogue("registry")
    assert several["epsilon"] == "3"
    assert "all 3 time slices together" in several["accounting"]


def test_other_standards_are_refused():
    with pytest.raises(ParameterError, match="standard must be"):
        release().catalogue("iso19115")
