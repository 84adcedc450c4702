"""The fit of a large release is kept in a folder of the user, and read only if it is intact."""

from __future__ import annotations

import os
import pickle
import stat

import numpy as np
import pytest

import psd
from psd.api.fits import with_cache
from psd.estimation import fit as module_of_fit
from psd.estimation import fit_cache as module
from psd.estimation.fit_cache import VARIABLE, FitCache, fit_cache, recall
from psd.release.post_processing import PostProcessing

BOXES = [(0.5, 0.25, 5.75, 6.5), (1, 1, 2, 2), (0, 0, 8, 8)]
VALUES = np.array([[0.1, -0.0, np.inf], [np.nan, 1e-320, 3.0]])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Folder of the cache, which does not exist yet; small releases are kept too."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr(module, "LEAST_NODES", 1)
    return tmp_path / "cache"


@pytest.fixture
def kept(folder):
    """Cache with one array in it."""
    cache = FitCache(folder=folder, key="a" * 64)
    recall(cache, ["counts"], VALUES.shape, lambda: [VALUES])
    return cache


def release(estimate="posterior", density="smooth"):
    domain = psd.Domain(bounds=(0, 0, 8, 8), crs="EPSG:3857", lattice=(16, 16))
    counts = np.random.default_rng(3).poisson(4, 64)
    made = psd.Release.from_counts(
        psd.decompositions.grid_tree(domain, 8), counts, 1, domain=domain
    )
    return made.replace(post_processing=PostProcessing(estimate=estimate, density=density))


def recalled(cache, name="counts", shape=VALUES.shape):
    """Array of the cache; None if it has to be computed."""
    missing = []
    [values] = recall(cache, [name], shape, lambda: missing.append(1) or [np.zeros(shape)])
    return None if missing else values


@pytest.mark.deep
@pytest.mark.parametrize("estimate", ["posterior", "signed", "least-squares"])
@pytest.mark.parametrize("density", ["smooth", "uniform"])
def test_answers_are_the_same_to_the_bit(folder, estimate, density):
    plain = release(estimate, density)
    expected = plain.query(BOXES).table
    for _ in range(2):  # computed and kept, then read
        assert with_cache(plain).query(BOXES).table.equals(expected)
        found = (each.query(BOXES, errors=False)["estimate"] for each in (with_cache(plain), plain))
        assert np.array_equal(*found)
    assert list(folder.glob("*.psdfit"))


@pytest.mark.deep
def test_the_second_fit_is_read(folder, monkeypatch):
    first = with_cache(release()).query(BOXES).table
    monkeypatch.setattr(module_of_fit, "infer_counts", None)
    monkeypatch.setattr(module_of_fit, "smooth_density", None)
    assert with_cache(release()).query(BOXES).table.equals(first)


def test_arrays_come_back_to_the_bit_in_files_of_the_user_alone(kept, folder):
    assert recalled(kept).tobytes() == VALUES.tobytes()
    (path,) = folder.iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_any_other_content_is_noticed(kept, folder, subtests):
    (path,) = folder.iterdir()
    content = path.read_bytes()
    changed = {
        f"byte {place}": bytes(b ^ (i == place % len(content)) for i, b in enumerate(content))
        for place in (0, 12, 41, 60, -1)
    }
    changed |= {"cut": content[:-8], "longer": content + bytes(8), "empty": b""}
    for name, other in (changed | {"pickle": pickle.dumps(VALUES)}).items():
        with subtests.test(name):
            path.write_bytes(other)
            assert recalled(kept) is None


def test_an_array_of_another_name_shape_or_key_is_not_taken(kept, folder):
    (path,) = folder.iterdir()
    path.rename(folder / path.name.replace("counts", "lines"))
    assert recalled(kept, "lines") is None
    other = FitCache(folder=folder, key="b" * 64)
    recall(kept, ["counts"], VALUES.shape, lambda: [VALUES])
    path.rename(folder / path.name.replace("a" * 64, "b" * 64))
    assert recalled(other) is None
    recall(kept, ["counts"], VALUES.shape, lambda: [VALUES])
    assert recalled(kept, shape=VALUES.shape[::-1]) is None


@pytest.mark.parametrize("target", ["file", "folder"])
def test_what_others_can_write_is_not_read(kept, folder, target):
    (path,) = folder.iterdir()
    changed = path if target == "file" else folder
    changed.chmod(changed.stat().st_mode | 0o020)
    assert recalled(kept) is None


def test_links_and_pipes_are_not_followed(kept, folder, tmp_path):
    (path,) = folder.iterdir()
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert kept.read("counts", VALUES.shape) is None
    path.unlink()
    os.mkfifo(path)
    assert kept.read("counts", VALUES.shape) is None


@pytest.mark.deep
def test_a_folder_that_cannot_be_written_is_no_error(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "file"))
    monkeypatch.setattr(module, "LEAST_NODES", 1)
    plain = release()
    assert with_cache(plain).query(BOXES).table.equals(plain.query(BOXES).table)


def test_the_oldest_files_are_deleted(folder, monkeypatch):
    monkeypatch.setattr(module, "MAX_BYTES", 250)
    for number, key in enumerate("abc"):
        cache = FitCache(folder=folder, key=key * 64)
        recall(cache, ["counts"], VALUES.shape, lambda: [VALUES])
        for path in folder.glob(f"{key}*"):
            os.utime(path, ns=(number, number))
    assert sorted(path.name[0] for path in folder.iterdir()) == ["b", "c"]


def test_the_key_is_of_content_and_choices_and_code(folder, monkeypatch):
    plain = release()
    keys = [
        fit_cache(plain.record, plain.digest).key,
        fit_cache(plain.record, "0" * 64).key,
        fit_cache(release(density="uniform").record, plain.digest).key,
        fit_cache(release(estimate="signed").record, plain.digest).key,
    ]
    monkeypatch.setattr(module, "__version__", "99")
    keys.append(fit_cache(plain.record, plain.digest).key)
    monkeypatch.setattr(module, "_code_digest", lambda: "other")
    keys.append(fit_cache(plain.record, plain.digest).key)
    assert len(set(keys)) == len(keys)


def test_it_can_be_switched_off_and_small_releases_are_not_kept(monkeypatch, tmp_path):
    plain = release()
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    assert fit_cache(plain.record, plain.digest) is None
    monkeypatch.setattr(module, "LEAST_NODES", 1)
    for value in ("off", "OFF", ""):
        monkeypatch.setenv(VARIABLE, value)
        assert fit_cache(plain.record, plain.digest) is None


def test_the_folder_is_that_of_the_system(monkeypatch, tmp_path):
    monkeypatch.delenv(VARIABLE)
    monkeypatch.setattr(module.sys, "platform", "linux")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert module._folder() == tmp_path / ".cache" / "psd"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
    assert module._folder() == tmp_path / "x" / "psd"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert module._folder() == tmp_path / ".cache" / "psd"
