"""Seeded builds give the counts, draws and answers that `lab/net.py` recorded."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2] / "lab"))

import net

pytestmark = pytest.mark.deep

KNOWN = net.recorded()


@pytest.mark.parametrize("name", net.BUILDS)
def test_a_seeded_build_gives_what_is_recorded(name):
    """Counts and draws to the bit; floats after the draw to the last bits of other processors."""
    found = list(net.differences(name, KNOWN))
    assert [row for row in found if row.largest > net.limit(row)] == []


def test_a_changed_number_is_noticed():
    name = "regions"
    changed = {key: dict(row) for key, row in KNOWN.items() if key[0] == name}
    changed[name, "boxes"]["numbers"] = [x * (1 + 1e-11) for x in changed[name, "boxes"]["numbers"]]
    changed[name, "boxes"]["digest"] = "another"
    changed[name, "draws"]["digest"] = changed[name, "counts"]["digest"] = "another"
    found = list(net.differences(name, changed))
    assert [row.part for row in found] == ["counts", "draws", "boxes"]
    assert all(row.largest > net.limit(row) for row in found)
