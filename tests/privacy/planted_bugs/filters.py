"""Planted bugs of filters: whether a record is selected depends on others, or shows."""

from dataclasses import replace

import numpy as np

from privacy.planted_bugs.bug import around, planted
from psd.errors import InputDataError

SELECTION = "tests/unit/ingest/test_selection.py::"
ALONE = SELECTION + "test_each_record_is_decided_by_itself_and_none_is_refused[v = 18]"
UNDECIDED = SELECTION + "test_what_cannot_be_decided_is_left_out_with_not_too[age = 18]"
GEOJSON = SELECTION + "test_properties_of_geojson_do_not_change_with_features_beside_them"
CLAIMS = "tests/unit/ledger/test_account.py::"
EVERYWHERE = CLAIMS + "test_places_are_known_of_rows_of_text_and_all_others_are_everywhere"


@planted(test=ALONE, like="readers that find the type of a column by its values")
@around("psd.ingest.selection._Values.numbers")
def a_column_is_of_numbers_if_all_values_are(original, self):
    """One record with a word in a column changes how the filter compares all others."""
    values = original(self)
    return np.full_like(values, np.nan) if np.isnan(values).any() else values


@planted(test=UNDECIDED, like="a cast that fails, as WHERE age::int > 18 does")
@around("psd.ingest.selection._Values.compare")
def a_record_that_cannot_be_decided_is_refused(original, self, *arguments):
    """One record that a filter cannot decide stops the build of all others."""
    true, false = original(self, *arguments)
    if not (true | false).all():
        raise InputDataError("a value cannot be compared")
    return true, false


@planted(test=GEOJSON, like="a library that types a property by all features")
@around("psd.ingest.sources._arrow.matches")
def properties_compare_by_the_type_that_gdal_found(original, columns, fields, *, is_json):
    """A feature with text in a property changes which numbers of others the filter selects."""
    return original(columns, fields, is_json=False)


@planted(test=EVERYWHERE, like="filters that no record fulfils together, taken for disjoint parts")
@around("psd.publish.charging.charge_request")
def a_build_with_a_filter_is_charged_where_it_lies(original, request, *data, **options):
    """A build of some records is charged for a place and a time, as if they were read as others."""
    if request.columns is not None:
        request = replace(request, columns=replace(request.columns, where=None))
    return original(request, *data, **options)
