"""A folder of releases: its pages, files and catalogues, and which folders it may replace."""

import json
import os
import re
import shutil
from functools import cache
from html import unescape
from pathlib import Path

import geopandas as gpd
import numpy as np
import pytest

import psd
from psd.api.release import Release
from psd.apps.web import site, write_site
from psd.apps.web.sheet_words import page_language
from psd.apps.web.site import folder_name, write_folder
from psd.apps.web.site_page import Published, SiteFile, index_page
from psd.errors import MissingExtraError, ParameterError, ReleaseFormatError, WriteError
from psd.signing import new_key, sign, verify
from psd.testing.data import release_from_counts
from support.cli_runner import check_refusals, cli, contents, fails, passes
from support.cubes import cube
from support.map_engine import built, drawn, of_devices, of_wards, points
from support.releases import as_drawn
from support.web_pages import Page

pytestmark = pytest.mark.deep  # sheets of method need matplotlib

NASTY = '</title><script>alert("1")</script>&\'"'
ABOUT = {
    "title": "서울 방문",
    "publisher": "서울 통계청",
    "language": "ko",
    "reference_date": "2024",
}
DOMAIN = psd.Domain(bounds=(126.4, 37.0, 127.6, 38.0))
LOCAL = psd.Domain(bounds=(0, 0, 10, 10), crs='LOCAL_CS["site",UNIT["metre",1]]')


def small(domain=DOMAIN, **about):
    tree = psd.decompositions.grid_tree(domain, 4)
    counts = psd.Release.from_counts(tree, np.arange(16) * 10, "0.5", domain=domain)
    return as_drawn(counts).replace(about=about)


def series(**about):
    months = psd.TimeSlices.parse("month", "2024-01..2024-03")
    return psd.Release.from_slices(months, [small(**about)] * 3)


@cache
def every():
    """Releases by their names: without metadata, hostile, Korean, series, regions, values, ..."""
    rows = points()
    rows["fare"] = np.arange(len(rows)) % 50
    fares = drawn(built(rows, values={"fare": (0, 60)}))
    return {
        "plain": small(),
        "nasty": small(title=NASTY, publisher=NASTY, description=NASTY, licence="a <b>"),
        "서울": small(
            **ABOUT, licence="https://example.org/licence", contact="http://x.org/?a=1&b"
        ),
        "months": series(),
        "wards": drawn(of_wards()),
        "fares": drawn(fares),
        "devices": of_devices(),
        "given": release_from_counts([[500, 100], [0, 200]]),
        "metres": small(LOCAL),
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder of all of these, written once; tests read it alone."""
    place = tmp_path_factory.mktemp("sites of 서울 ü")
    write_site(every(), place / "site")
    return place / "site"


def page_of(folder, name="index.html"):
    text = (folder / name).read_text(encoding="utf-8")
    return text, Page(text)


# --- what is in the folder ------------------------------------------------------------------------


@pytest.mark.deep
def test_every_release_has_its_files(folder):
    names = {path.name for path in folder.iterdir()}
    pages = {"index.html", "index.ko.html"}
    assert names == {*every(), *pages, "catalog.json", "datapackage.json", "SHA256SUMS"}
    for name in every():
        other = "en" if name == "서울" else "ko"
        common = {"map.html", "sheet.html", f"sheet.{other}.html"}
        files = {path.name for path in (folder / name).iterdir()}
        entry = {"item.json"} if name in ("서울", "months") else {"collection.json"}
        table = {"cells.parquet", "cells.gpkg", "cells.pmtiles"}
        if name == "wards":
            table = {each.replace("cells", "regions-1-id") for each in table}
        if name == "metres":
            table -= {"cells.pmtiles"}  # a local CRS has no place on the map of the web
        assert files == {f"{name}.psd.parquet", *common, *table, *entry}


@pytest.mark.deep
def test_the_release_is_as_it_was(folder):
    for name, release in every().items():
        loaded = psd.load(folder / name / f"{name}.psd.parquet")
        assert loaded.digest == release.digest


@pytest.mark.deep
def test_tables_have_the_numbers_of_the_release(folder, subtests):
    for name, release in every().items():
        with subtests.test(name):
            (path,) = (folder / name).glob("*-id.parquet" if name == "wards" else "cells.parquet")
            table = gpd.read_parquet(path)
            assert table.attrs["digest"] == release.digest
            if name == "months":
                assert table["slice"].value_counts().to_dict() == dict.fromkeys(release, 16)
                assert table.attrs["epsilon"] == "1.5"
                one = table[table["slice"] == "2024-02"].reset_index(drop=True)
                expected = release["2024-02"].to_geopandas()
            else:
                one, expected = table, release.to_geopandas()
            assert one["estimate"].tolist() == expected["estimate"].tolist()
            assert one.geometry.geom_equals(expected.geometry).all()
            assert ("mean_fare" in one) == (name == "fares")


@pytest.mark.deep
def test_the_first_page_says_what_is_published(folder):
    text, page = page_of(folder)
    assert page.attributes("html") == [{"lang": "en"}]
    assert page.texts("h1") == ["Differentially private counts of locations"]
    headings = page.texts("h2")
    assert headings[:4] == ["plain", NASTY, "서울 방문", "months"]
    assert "epsilon 0.5" in page.words
    assert "given: psd did not draw these counts" in page.words
    assert "per report, and each device sends one" in page.words
    assert "fare from 0 to 60" in page.words
    assert "3, from 2024-01 to 2024-03" in page.words
    for name, release in every().items():
        assert f"SHA-256 {release.digest}." in page.words
        assert f'id="{name}"' in text
    links = [each["href"] for each in page.attributes("a")]
    assert f"{'%EC%84%9C%EC%9A%B8'}/map.html#en" in links
    assert links[0] == "index.ko.html"
    assert "https://example.org/licence" in links
    assert "http://x.org/?a=1&b" in links
    _, korean = page_of(folder, "index.ko.html")
    assert korean.attributes("html") == [{"lang": "ko"}]
    assert "plain/map.html#ko" in [each["href"] for each in korean.attributes("a")]
    assert "주어진 개수" in korean.words
    assert "fare 0부터 60까지" in korean.words
    links += [each["href"] for each in korean.attributes("a")]
    seoul = "%EC%84%9C%EC%9A%B8"
    assert {f"{seoul}/sheet.html", f"{seoul}/sheet.en.html"} < {*links}
    assert {"plain/sheet.html", "plain/sheet.ko.html"} < {*links}
    for name, language in (("sheet", "ko"), ("sheet.en", "en")):
        _, sheet = page_of(folder, f"서울/{name}.html")
        assert sheet.attributes("html") == [{"lang": language}]
    assert korean.attributes("a")[0]["href"] == "index.html"


@pytest.mark.deep
def test_all_links_lead_to_files_of_the_folder(folder):
    from urllib.parse import unquote

    for name in ("index.html", "index.ko.html"):
        text, page = page_of(folder, name)
        for link in (each["href"] for each in page.attributes("a")):
            if not link.startswith("http"):
                file, _, mark = link.partition("#")
                assert (
                    (folder / unquote(file)).is_file() if file else f'id="{unquote(mark)}"' in text
                )


@pytest.mark.deep
def test_pages_are_strict_and_texts_are_no_markup(folder):
    pages = [folder / "index.html", folder / "index.ko.html", *folder.glob("*/*.html")]
    assert len(pages) == 2 + 3 * len(every())
    for path in pages:
        text = path.read_text(encoding="utf-8")
        assert "<script>alert" not in text
        (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
        assert unescape(policy).startswith("default-src 'none'; ")
        assert "unsafe" not in policy
        if path.name != "map.html":
            assert "<script" not in text


@pytest.mark.deep
def test_sums_are_those_of_all_files(folder):
    lines = (folder / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("#")
    listed = {line[66:]: line[:64] for line in lines[1:]}
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert listed.keys() == files - {"SHA256SUMS"}
    if shutil.which("sha256sum"):
        import subprocess

        words = ["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"]
        assert subprocess.run(words, cwd=folder, check=False).returncode == 0


@pytest.mark.deep
def test_the_data_package_lists_files_with_their_sizes_and_columns(folder):
    package = json.loads((folder / "datapackage.json").read_text(encoding="utf-8"))
    names = [each["name"] for each in package["resources"]]
    assert len(set(names)) == len(names)
    assert {each["path"].split("/")[0] for each in package["resources"]} == {*every()}
    assert package["contributors"] == [
        {"title": name, "roles": ["publisher"]} for name in (NASTY, "서울 통계청")
    ]
    for each in package["resources"]:
        assert (folder / each["path"]).stat().st_size == each["bytes"]
        assert each["hash"] == f"sha256:{site._sha256(folder / each['path'])}"
        if "schema" in each:
            table = gpd.read_parquet(folder / each["path"])
            fields = [one["name"] for one in each["schema"]["fields"] if one["name"] != "bbox"]
            assert fields == list(table.columns)
    licences = {each["path"]: each.get("licenses") for each in package["resources"]}
    assert licences["plain/plain.psd.parquet"] is None
    assert licences["nasty/nasty.psd.parquet"] == [{"name": "other", "title": "a <b>"}]
    assert licences["서울/서울.psd.parquet"] == [{"path": "https://example.org/licence"}]


@pytest.mark.deep
def test_pystac_walks_the_catalogue_and_its_schemas_hold(folder):
    import jsonschema
    import pystac
    from pystac.validation.local_validator import get_local_schema_cache
    from referencing import Registry, Resource

    stored = get_local_schema_cache()
    registry = Registry().with_resources(
        (address, Resource.from_contents(schema)) for address, schema in stored.items()
    )
    kinds = {"Catalog": "/catalog.json", "Collection": "/collection.json", "Feature": "/item.json"}
    for path in [
        folder / "catalog.json",
        *folder.glob("*/item.json"),
        *folder.glob("*/coll*.json"),
    ]:
        entry = json.loads(path.read_text(encoding="utf-8"))
        ending = f"-spec/json-schema{kinds[entry['type']]}"
        (schema,) = [each for address, each in stored.items() if address.endswith(ending)]
        faults = jsonschema.Draft7Validator(schema, registry=registry).iter_errors(entry)
        assert [fault.message for fault in faults] == []
    catalogue = pystac.Catalog.from_file(str(folder / "catalog.json"))
    items, children = list(catalogue.get_items()), list(catalogue.get_children())
    assert sorted(each.id for each in items) == ["months", "서울"]
    assert {each.id for each in [*items, *children]} == {*every()}
    assert items[0].get_root() is catalogue
    for each in [*items, *children]:
        for asset in each.assets.values():
            assert Path(asset.get_absolute_href()).is_file()
        assert {"release", "map", "sheet"} < each.assets.keys()


# --- written whole, and again ---------------------------------------------------------------------


@pytest.mark.deep
def test_run_again_it_is_the_same_but_for_what_changed(tmp_path):
    first = {"a": small(title="First"), "b": series()}
    write_site(first, tmp_path / "site")
    before = files_of(tmp_path / "site")
    write_site(first, tmp_path / "site", overwrite=True)
    assert files_of(tmp_path / "site") == before
    write_site({**first, "a": small(title="Second")}, tmp_path / "site", overwrite=True)
    after = files_of(tmp_path / "site")
    assert after.keys() == before.keys()
    same = {name for name in before if after[name] == before[name]}
    assert same == {name for name in before if name.startswith("b/")}
    write_site({"c": first["a"]}, tmp_path / "site", overwrite=True)
    assert not (tmp_path / "site" / "b").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


def files_of(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.deep
def test_nothing_is_left_of_a_failure(tmp_path, monkeypatch):
    write_site({"a": small()}, tmp_path / "site")
    before = files_of(tmp_path / "site")

    def fails(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(site, "index_page", fails)
    for target in ("site", "other"):
        with pytest.raises(WriteError, match="No space left"):
            write_site({"b": small()}, tmp_path / target, overwrite=True)
    assert files_of(tmp_path / "site") == before
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


@pytest.mark.deep
def test_a_file_is_copied_with_its_signature(tmp_path):
    small().save(tmp_path / "r.psd.parquet")
    public = new_key(tmp_path / "k.pem")
    sign(tmp_path / "r.psd.parquet", tmp_path / "k.pem")
    write_site(tmp_path / "r.psd.parquet", tmp_path / "site")
    copied = tmp_path / "site" / "r" / "r.psd.parquet"
    assert copied.read_bytes() == (tmp_path / "r.psd.parquet").read_bytes()
    assert verify(copied, public) == small().digest
    assert "r.psd.parquet.sig" in page_of(tmp_path / "site")[1].words
    # The releases of a folder may make it again.
    write_site([copied], tmp_path / "site", overwrite=True)
    assert copied.read_bytes() == (tmp_path / "r.psd.parquet").read_bytes()


@pytest.mark.skipif(os.name != "posix", reason="links and pipes")
def test_what_is_no_signature_of_the_release_is_not_published(tmp_path, subtests, monkeypatch):
    monkeypatch.setattr(site, "require_matplotlib", lambda what: None)
    release, beside = tmp_path / "r.psd.parquet", tmp_path / "r.psd.parquet.sig"
    small().save(release)
    secret = tmp_path / "secret"
    secret.write_text("126.978,37.566")
    fields = {"version": 1, "digest": small().digest, "key": "0" * 64, "signature": "0" * 128}
    whole = tmp_path / "whole.sig"
    whole.write_text(json.dumps(fields))
    cases = {
        "a link to another file": (lambda: beside.symlink_to(secret), "which is a link"),
        "a link to a signature": (lambda: beside.symlink_to(whole), "which is a link"),
        "a broken link": (lambda: beside.symlink_to(tmp_path / "none"), "which is a link"),
        "a folder": (beside.mkdir, "not a file"),
        "a pipe": (lambda: os.mkfifo(beside), "not a file"),
        "another file": (lambda: shutil.copyfile(secret, beside), "of another kind"),
        "a large file": (lambda: beside.write_text(whole.read_text() + " " * 5000), "another kind"),
        "of another release": (
            lambda: beside.write_text(json.dumps(fields | {"digest": "0" * 64})),
            "it belongs to another release",
        ),
        "with other fields": (
            lambda: beside.write_text(json.dumps(fields | {"note": "126.978"})),
            "of another kind",
        ),
    }
    for case, (place, words) in cases.items():
        with subtests.test(case):
            place()
            with pytest.raises(ReleaseFormatError, match=f"^signature must be .*{words}") as error:
                write_site(release, tmp_path / "site")
            assert "126.978" not in str(error.value)
            assert not (tmp_path / "site").exists()
            beside.rmdir() if beside.is_dir() and not beside.is_symlink() else beside.unlink()


@pytest.mark.deep
def test_too_many_cells_for_pages_and_tiles_are_said(tmp_path, monkeypatch):
    from psd.apps.web import map_page

    monkeypatch.setattr(map_page, "MAX_MAP_CELLS", 10)
    monkeypatch.setattr(site, "MAX_LAYER_CELLS", 10)
    write_site({"a": small(), "b": series(), "c": drawn(of_wards())}, tmp_path / "site")
    assert Page((tmp_path / "site/a/map.html").read_text("utf-8")).data["cut"] == 1
    assert Page((tmp_path / "site/b/map.html").read_text("utf-8")).data["cut"] == 0
    assert not (tmp_path / "site/c/map.html").exists()
    suffixes = {path.suffix for path in (tmp_path / "site").glob("*/*")}
    assert suffixes == {".html", ".json", ".parquet"}
    assert page_of(tmp_path / "site")[1].words.count("too many cells for a map page") == 1


# --- without drawing ------------------------------------------------------------------------------


FILES = tuple(
    SiteFile(kind=kind, path=f"a b/{kind}.x", size=size, digest="0" * 64)
    for kind, size in (("map", 12), ("sheet", 16_600), ("release", 1_320_000))
)


def test_a_page_of_one_release_has_its_title_and_escapes_it(subtests):
    nasty = {"title": NASTY, "publisher": NASTY, "description": NASTY, "language": "fr"}
    page = index_page([Published(name="a", release=small(**nasty), files=FILES)], "en", "o.html")
    read = Page(page)
    assert read.texts("h1") == read.texts("title") == [NASTY]
    assert "alert(" not in page.replace("alert(&quot;", "")
    assert read.attributes("script") == []
    assert [each.get("lang") for each in read.attributes("p") if "lang" in each] == ["fr"]
    assert [each["href"] for each in read.attributes("a")][1] == "a%20b/map.x#en"
    for words in ("12 B", "16.6 kB", "1.32 MB"):
        assert words in read.words
    assert "unsafe" not in page


UNITS = {
    "기록 한 건": psd.PrivacyUnit(),
    "사용자 한 명, 사용자마다 최대 3건": psd.PrivacyUnit(kind="user", max_contributions=3),
    "사용자 한 명의 하루 (Asia/Seoul), 사용자의 하루마다 최대 2건; "
    "날이 T개인 사용자의 손실은 T epsilon":
        psd.PrivacyUnit(kind="user-day", max_contributions=2, time_zone="Asia/Seoul"),
}  # fmt: skip


def test_units_of_privacy_are_said_in_korean(subtests):
    tree = psd.decompositions.grid_tree(DOMAIN, 2)
    for words, unit in UNITS.items():
        with subtests.test(words):
            release = Release.from_counts(tree, [1, 2, 3, 4], 1, domain=DOMAIN, unit=unit)
            page = index_page([Published(name="a", release=release, files=FILES)], "ko", "o.html")
            assert words in Page(page).words


def test_the_language_is_that_of_the_release():
    texts = {"ko": "ko", "ko-KR": "ko", "KO": "ko", "kok": "en", "en": "en", "fr": "en"}
    for stated, language in texts.items():
        assert page_language(small(language=stated)) == language
    assert page_language(small()) == "en"


def test_names_of_folders_are_plain():
    names = {
        "try/seoul.psd.parquet": "seoul", "r.parquet": "r", "r": "r", "a/../c d.psd.parquet": "c-d",
        "서울 2024.psd.parquet": "서울-2024", "..psd.parquet": "release", "%2e?#\n\u202ex": "2e-x",
        "x" * 300: "x" * 100, "서" * 100: "서" * 66, "😀" * 100: "release",
    }  # fmt: skip
    assert {name: folder_name(name) for name in names} == names


def test_a_level_may_have_a_name_of_many_bytes(tmp_path):
    level = "서울특별시" * 18  # 270 bytes
    write_site({"wards": drawn(of_wards(level=level))}, tmp_path / "s")
    names = {path.name for path in (tmp_path / "s" / "wards").glob("regions-1-*")}
    assert len(names) == 3
    assert all(len(name.encode()) < 230 for name in names)


def test_folders_of_others_are_left_alone(tmp_path, subtests, monkeypatch):
    monkeypatch.setattr(site, "_write_release", lambda *_: pytest.fail("began to write"))
    releases = {"a": small()}
    full, sums, link = tmp_path / "full", tmp_path / "sums", tmp_path / "link"
    for path in (full, sums):
        path.mkdir()
        (path / "mine.txt").write_text("mine")
    (sums / "SHA256SUMS").write_text(f"{site._sha256(sums / 'mine.txt')}  mine.txt\n")
    link.symlink_to(full)
    (tmp_path / "file").write_text("mine")
    (tmp_path / "empty").mkdir()
    for name, words in {
        "full": "must be new, empty, or one that psd wrote",
        "sums": "must be new, empty, or one that psd wrote",
        "link": "a file or a link",
        "file": "a file or a link",
        "none/site": "does not exist; create it first",
        "x" * 300: "cannot write .*name too long",
        "a\0b": "this is not a valid file name",
    }.items():
        with subtests.test(name):
            before = files_of(tmp_path)
            with pytest.raises(WriteError, match=words):
                write_site(releases, tmp_path / name, overwrite=True)
            assert files_of(tmp_path) == before
    monkeypatch.chdir(tmp_path / "empty")
    with pytest.raises(WriteError, match="must not hold the working folder"):
        write_site(releases, ".")


def test_a_folder_of_psd_is_replaced_if_nobody_changed_it(tmp_path, subtests, monkeypatch):
    def write(each, made, signature):
        (made / each.name).mkdir()
        (made / each.name / "r.txt").write_text(each.name)
        return each

    monkeypatch.setattr(site, "_write_release", write)
    monkeypatch.setattr(site, "index_page", lambda *_: "page")
    target = tmp_path / "site"
    target.mkdir()  # an empty one may be there
    write_site({"a": small()}, target)
    with pytest.raises(WriteError, match="exists; choose another name, or pass overwrite=True"):
        write_site({"a": small()}, target)
    (target / ".git").mkdir()
    changes = {
        "CNAME": lambda: (target / "CNAME").write_text("x"),
        ".git/config": lambda: (target / ".git" / "config").write_text("x"),
        "index.html": lambda: (target / "index.html").write_text("mine"),
        "a/r.txt": lambda: ((target / "a/r.txt").unlink(), (target / "a/r.txt").symlink_to("/")),
    }
    for name, change in changes.items():
        with subtests.test(name):
            keep = tmp_path / "keep"
            shutil.copytree(target, keep, symlinks=True)
            change()
            with pytest.raises(WriteError, match=re.escape(f"alone, got {name} in")):
                write_site({"a": small()}, target, overwrite=True)
            shutil.rmtree(target)
            keep.rename(target)
    write_site({"b": small()}, target, overwrite=True)
    assert (target / "b/r.txt").read_text() == "b"
    assert not (target / "a").exists()


def test_releases_are_checked_before_anything_is_written(tmp_path, subtests, monkeypatch):
    twice = [Published(name=name, release=small()) for name in ("a", "A")]
    for releases, words in (
        ({}, "releases must be at least one, got none"),
        ({"index.html": small()}, "must have names of their own, got index.html"),
        ({"a b": small(), "a-b": small()}, "must have names of their own, got a-b"),
    ):
        with subtests.test(words), pytest.raises(ParameterError, match=words):
            write_site(releases, tmp_path / "site")
    with pytest.raises(ParameterError, match="names of their own, got A"):
        write_folder(twice, tmp_path / "site", overwrite=False)
    with pytest.raises(ReleaseFormatError, match="does not exist"):
        write_site(tmp_path / "none.psd.parquet", tmp_path / "site")
    for releases in (small(), {"a": "r.psd.parquet"}, [small()]):
        with pytest.raises(ParameterError, match="releases must be"):
            write_site(releases, tmp_path / "site")

    def missing(purpose):
        raise MissingExtraError(f"{purpose} needs matplotlib", extra="plot")

    monkeypatch.setattr(site, "require_matplotlib", missing)
    with pytest.raises(MissingExtraError, match="needs matplotlib"):
        write_site({"a": small()}, tmp_path / "site")
    assert not list(tmp_path.iterdir())


# --- the command ----------------------------------------------------------------------------------


WRONG = [
    (2, "r.psd.parquet site --site --level 1", "--level must be left out with --site"),
    (2, "r.psd.parquet site --site --unreliable drop", "--unreliable must be left out with --site"),
    (2, "r.psd.parquet r.psd.parquet x.gpkg", "RELEASE must be one file without --site, got 2"),
    (2, "site --site", "Missing argument"),
    (2, "r.psd.parquet r.psd.parquet site --site", "must have names of their own, got r twice"),
    (5, "none.psd.parquet site --site", "none.psd.parquet"),
    (6, "r.psd.parquet r.psd.parquet --site --overwrite", "must be a folder, got r.psd.parquet"),
    (6, "r.psd.parquet full --site --overwrite", "got full with other files"),
    (6, "r.psd.parquet none/site --site", "folder none does not exist"),
]


def test_the_command_refuses_in_one_sentence(release, here, subtests):
    (here / "full").mkdir()
    (here / "full" / "mine.txt").write_text("mine")
    check_refusals(subtests, WRONG, "export")


@pytest.mark.deep
def test_the_command_writes_the_folder(release, here):
    before = contents(here)
    assert passes("export r.psd.parquet site/ --site") == "wrote site/\n"
    assert "--overwrite" in fails(6, "export r.psd.parquet site/ --site")
    passes("export r.psd.parquet site --site --overwrite")
    assert contents(here) == before
    assert str(here).encode() not in b"".join(files_of(here / "site").values())
    release_from_counts([[500, 100], [0, 200]]).save(here / "g.psd.parquet")
    assert "; given: psd did not draw" in cli("export g.psd.parquet given --site").err


def test_a_cube_has_a_table_of_all_time_and_its_times_in_the_catalogue(tmp_path):
    release = cube()
    write_folder([Published(name="town", release=release)], tmp_path / "site", overwrite=False)
    folder = tmp_path / "site" / "town"
    table = gpd.read_parquet(folder / "cells.parquet")
    assert table["estimate"].tolist() == release.to_geopandas()["estimate"].tolist()
    assert "slice" not in table
    entry = json.loads((folder / "item.json").read_text())
    assert entry["properties"]["start_datetime"] == "2024-01-01T00:00:00Z"
    assert psd.load(folder / "town.psd.parquet").digest == release.digest
    assert Page((folder / "map.html").read_text("utf-8")).data["cube"]["names"] == list(release)
