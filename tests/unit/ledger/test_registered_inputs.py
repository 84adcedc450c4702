"""A dataset with registered inputs is built from no others."""

import shutil
import warnings

import geopandas as gpd
import pandas as pd
import pytest

import psd
from psd.errors import LedgerError, ParameterError
from psd.ledger.ledger import Ledger
from psd.publish.observer import Observer
from psd.publish.public_inputs import BoundaryFile

AREA = {"domain": (0, 0, 2, 2), "method": "grid"}


@pytest.fixture
def visits(tmp_path):
    path = tmp_path / "visits.csv"
    path.write_text("lon,lat\n1,1\n")
    return path


@pytest.fixture
def ledger(tmp_path):
    return Ledger.create(tmp_path / "l")


def build(ledger, data, **options):
    account = psd.ledger.Account(ledger, "rows")
    return psd.build(data, **AREA, **options, epsilon="0.1", account=account)


def refused(ledger, data, number, total):
    stages = []
    words = f"registered inputs, and input {number} of {total} is not one of them, so nothing was"
    with pytest.raises(LedgerError, match=words):
        build(ledger, data, observer=Observer(progress=stages.append))
    assert stages == []  # nothing was read


def test_other_files_and_copies_are_refused_unread(ledger, visits, tmp_path):
    ledger.register("rows", 1, inputs=[visits])
    copy, link = tmp_path / "copy.csv", tmp_path / "link.csv"
    shutil.copy(visits, copy)
    link.symlink_to(visits)
    build(ledger, visits)
    build(ledger, link)
    refused(ledger, copy, 1, 1)
    refused(ledger, [visits, copy], 2, 2)
    refused(ledger, pd.read_csv(visits), 1, 1)
    refused(ledger, [visits, tmp_path / "missing.csv"], 2, 2)
    with pytest.raises(LedgerError, match="input 1 of 1 is not one of them"):
        psd.ask(copy, area=(0, 0, 1, 1), epsilon=1, account=psd.ledger.Account(ledger, "rows"))
    assert len(ledger.state().charges) == 2


def test_inputs_are_added_and_never_removed(ledger, visits, tmp_path):
    """Any input is read by default. All that a CSV file says is in the file, whatever its links."""
    later, link = tmp_path / "later.csv", tmp_path / "link.csv"
    shutil.copy(visits, later)
    ledger.register("rows", 1)
    build(ledger, pd.read_csv(visits))
    assert ledger.state().datasets["rows"].inputs == ()
    assert ledger.register_inputs("rows", [visits]) == 1
    refused(ledger, later, 1, 1)
    head = ledger.state().head
    assert ledger.register_inputs("rows", [visits]) == 0
    assert ledger.state().head == head
    assert ledger.register_inputs("rows", [visits, later]) == 1
    build(ledger, [visits, later])
    assert len(ledger.verify().datasets["rows"].inputs) == 2
    link.hardlink_to(visits)
    build(ledger, link)


def test_a_file_that_is_added_to_a_folder_is_not_registered(ledger, tmp_path, visits):
    folder = tmp_path / "in"
    folder.mkdir()
    shutil.copy(visits, folder / "a.csv")
    ledger.register("rows", 1, inputs=[folder])
    build(ledger, folder)
    shutil.copy(visits, folder / "b.csv")
    refused(ledger, folder, 2, 2)


def test_a_tally_is_registered_by_its_parts(ledger, visits, tmp_path):
    tallies = [psd.tally(visits, tmp_path / f"{n}.tally", domain=AREA["domain"]) for n in "ab"]
    ledger.register("rows", 1, inputs=[tmp_path / "a.tally"])
    how = {"epsilon": "0.1", "method": "grid", "account": psd.ledger.Account(ledger, "rows")}
    psd.build(tallies[0], **how)
    with pytest.raises(LedgerError, match="input 1 of 1 is not one of them"):
        psd.build(tallies[1], **how)


def test_what_cannot_be_recognised_again_is_not_registered(ledger, visits):
    ledger.register("roads", 1)
    head = ledger.state().head
    for item in ("missing.csv", "-", pd.DataFrame({"lon": []})):
        for register in (
            lambda inputs: ledger.register("rows", 1, inputs=inputs),
            lambda inputs: ledger.register_inputs("roads", inputs),
        ):
            with pytest.raises(ParameterError, match="but input 2 of 2 cannot; a file must exist"):
                register([visits, item])
            assert ledger.state().head == head


def ask(ledger, data, **options):
    account = psd.ledger.Account(ledger, "rows")
    unit = {"user": "user", "max_contributions": 1, **options}
    return psd.ask(data, area=(0, 0, 2, 2), epsilon=1, account=account, **unit)


def is_refused(ledger, data):
    with pytest.raises(LedgerError, match="input 1 of 1 is not one of them"):
        ask(ledger, data)
    with pytest.raises(ParameterError, match="must have no second hard link"):
        ledger.register_inputs("rows", [data])


@pytest.mark.parametrize("ending", ["shp", "gpkg", "geojson", "fgb"])
def test_a_table_beside_a_second_hard_link_is_not_read(ending, ledger, tmp_path):
    """Ids come from the table of a Shapefile, and rows from the log of a GeoPackage."""
    points = gpd.GeoSeries.from_xy([1.0] * 9, [1.0] * 9, crs="EPSG:4326")
    for name, ids in (("data", ["ann"] * 9), ("mine", list("abcdefghi"))):
        (tmp_path / name).mkdir()
        gpd.GeoDataFrame({"user": ids}, geometry=points).to_file(tmp_path / name / f"v.{ending}")
    registered, link = tmp_path / "data" / f"v.{ending}", tmp_path / "mine" / f"v.{ending}"
    columns = psd.Columns(user="user")
    ledger.register("rows", 9, unit="user", columns=columns, inputs=[registered])
    ask(ledger, registered)
    link.unlink()
    link.hardlink_to(registered)
    for data in (link, tmp_path / "mine" / f"*.{ending}", registered):
        is_refused(ledger, data)
    link.unlink()
    ask(ledger, registered)


def test_names_of_folders_of_a_second_hard_link_are_not_read(ledger, tmp_path, monkeypatch):
    """Ids come from the names of folders, where a file has no such column."""
    for name in ("data", "mine"):
        (tmp_path / name / "user=ann").mkdir(parents=True)
    registered = tmp_path / "data" / "user=ann" / "part-0.parquet"
    pd.DataFrame({"lon": [1.0], "lat": [1.0]}).to_parquet(registered)
    columns = psd.Columns(user="user")
    ledger.register("rows", 9, unit="user", columns=columns, inputs=[registered])
    ask(ledger, registered)
    link = tmp_path / "mine" / "user=ann" / "v"
    link.hardlink_to(registered)
    monkeypatch.chdir(link.parent)
    for data in (link, "v", tmp_path / "mine", registered):
        is_refused(ledger, data)


def polygons(path):
    shapes = gpd.GeoSeries.from_wkt(["POLYGON ((0 0, 2 0, 2 2, 0 0))"], crs="EPSG:4326")
    gpd.GeoDataFrame({"ward": ["a"]}, geometry=shapes).to_file(path)
    return str(path)


@pytest.mark.parametrize("dataset", ["rows", "others"])
def test_registered_inputs_are_no_public_files(ledger, visits, tmp_path, dataset):
    """Neither regions nor a boundary, also where another dataset registers them."""
    areas = polygons(tmp_path / "areas.gpkg")
    ledger.register("rows", 1, inputs=[visits, areas] if dataset == "rows" else [visits])
    ledger.register("others", 1, inputs=[areas])
    (tmp_path / "link.gpkg").symlink_to(areas)
    for path in (areas, str(tmp_path / "link.gpkg")):
        boundary = {"boundary": BoundaryFile(path=path)}
        regions = {"regions": psd.regions.RegionFiles(paths=(path,), ids=("ward",), gaps="outside")}
        for options in (boundary, {**regions, "method": "none"}):
            account = psd.ledger.Account(ledger, "rows")
            with pytest.raises(LedgerError, match="public files must not be inputs of a dataset"):
                psd.build(visits, **{**AREA, **options}, epsilon="0.1", account=account)
    assert ledger.state().spent("rows") == 0
    copy = shutil.copy(areas, tmp_path / "copy.gpkg")
    psd.ledger.Account(ledger, "rows").refuse_records([str(copy)])


def test_inputs_of_records_are_no_public_files(visits, tmp_path):
    areas = polygons(tmp_path / "areas.gpkg")
    with pytest.raises(ParameterError, match="must not be an input of records"):
        psd.build(areas, **AREA, epsilon="0.1", boundary=BoundaryFile(path=areas))


def test_other_columns_cost_the_price_of_a_fault(ledger, visits):
    """Whether they can be read is one bit, which an epsilon of 1e-9 does not buy."""
    visits.write_text("lon,lat,note\n1,1,\n")
    ledger.register("rows", 1, inputs=[visits], columns=psd.Columns())
    account = psd.ledger.Account(ledger, "rows")
    area = {**AREA, "method": psd.decompositions.Grid(size=1)}
    told = "reads y otherwise than dataset 'rows' registers, .* takes epsilon 0.049999999 more"
    with pytest.warns(UserWarning, match=told):
        psd.build(visits, **area, epsilon="0.000000001", y="note", account=account)
    assert ledger.state().spent("rows") == 10**9 // 20
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # this one costs more than a fault
        psd.build(visits, **area, epsilon="0.1", y="note", account=account)
    assert ledger.state().spent("rows") == 10**9 // 20 + 10**8
