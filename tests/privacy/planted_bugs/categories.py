"""Planted bugs of categories: records in two, lists from the data, labels dropped by place."""

from dataclasses import replace

import numpy as np

from privacy.planted_bugs.bug import around, like, planted

REPLAY = "tests/privacy/test_category_replay.py::"
BUILT = "tests/unit/api/test_categories.py::"


@planted(test=REPLAY + "test_counts_are_those_of_brute_force[0-0]")
@like("a record that one layer counts in several disjoint cells")
@around("psd.curator.curator.Curator.root")
def record_in_two_categories(original, self, axes=()):
    """A record of any category is counted in the first one too."""
    sound = self._tally
    if "category" in axes:
        parts = {
            name: np.concatenate([getattr(sound, name)] * 2)
            for name in ("columns", "rows", "counts")
        }
        label = np.concatenate([sound.region, np.zeros_like(sound.region)])
        when = None if sound.slice is None else np.concatenate([sound.slice] * 2)
        self._tally = replace(sound, **parts, region=label, slice=when)
    root = original(self, axes)
    self._tally = sound
    return root


@planted(test=BUILT + "test_the_categories_are_those_that_are_stated")
@like("categories and groups from the data")
@around("psd.publish.drawing.draw_cube")
def list_of_categories_from_the_data(original, counts, domain, slices, *, category, **options):
    """Labels without a record are left out of a release."""
    found = np.unique(counts.region)
    names = [category.names[number] for number in found]
    has_other = category.has_other and category.size - 1 in found
    labels = tuple(name for name in names if not (has_other and name == category.names[-1]))
    occurring = type(category)(category.column, labels, (-1,) * len(labels), has_other)
    place = np.searchsorted(found, counts.region).astype(np.int32)
    counts = replace(counts, region=place)
    return original(counts, domain, slices, category=occurring, **options)


@planted(test=REPLAY + "test_a_label_says_whether_a_record_is_dropped_and_its_place_does_not[True]")
@like("records that are refused or dropped by where they lie")
@around("psd.space.categories.CategoryAxis.assign")
def other_dropped_by_place(original, self, x, y, value=None, /):
    """Records of other labels are left out in the west."""
    cells = original(self, x, y, value)
    return np.where((cells == self.size - 1) & self.has_other & (x < 2), -1, cells)
