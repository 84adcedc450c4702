"""Planted bugs of filters: whether a record is selected depends on others, or shows."""

from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pyogrio

from privacy.planted_bugs.bug import around, instead, planted, replaced
from psd._util.wall_clock import wall_clock
from psd.errors import InputDataError

SELECTION = "tests/unit/ingest/test_selection.py::"
ALONE = SELECTION + "test_each_record_is_decided_by_itself_and_none_is_refused[v = 18]"
UNDECIDED = SELECTION + "test_what_cannot_be_decided_is_left_out_with_not_too[age = 18]"
GEOJSON = SELECTION + "test_properties_of_geojson_do_not_change_with_features_beside_them"
LAYERS = "tests/unit/ingest/sources/test_vector.py::"
OTHERS = LAYERS + "test_no_feature_of_geojson_changes_what_is_read_of_others"
BESIDE = "tests/unit/ingest/sources/test_frame.py::"
BESIDE += "test_the_time_of_a_record_does_not_depend_on_those_beside_it"
CLAIMS = "tests/unit/ledger/test_account.py::"
EVERYWHERE = CLAIMS + "test_places_are_known_of_rows_of_text_and_all_others_are_everywhere"


@planted(test=ALONE, like="readers that find the type of a column by its values")
@around("psd.ingest.selection.Values.numbers")
def a_column_is_of_numbers_if_all_values_are(original, self):
    """One record with a word in a column changes how the filter compares all others."""
    values = original(self)
    return np.full_like(values, np.nan) if np.isnan(values).any() else values


@planted(test=BESIDE, like="readers that find the type of a column by its values")
@instead("psd.ingest.sources.frame._times")
def times_are_of_the_type_of_the_first_one(column, columns):
    """One record with a date moves the times of all others to their day."""
    return wall_clock(column, columns.time_zone, column=columns.time)


@planted(test=UNDECIDED, like="a cast that fails, as WHERE age::int > 18 does")
@around("psd.ingest.selection.Values.compare")
def a_record_that_cannot_be_decided_is_refused(original, self, *arguments):
    """One record that a filter cannot decide stops the build of all others."""
    true, false = original(self, *arguments)
    if not (true | false).all():
        raise InputDataError("a value cannot be compared")
    return true, false


@planted(test=GEOJSON, like="a library that types a property by all features")
@around("psd.ingest.selection.matches")
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


@planted(test=OTHERS + "[GeoCouch-False]", like="GDAL, which reads GeoCouch without being told")
@around("psd.ingest.sources.vector._options")
@contextmanager
def one_feature_of_geocouch_takes_the_points_of_others(original):
    """One feature of GeoJSON that has the members of GeoCouch leaves all others without points."""
    with original():
        pyogrio.set_gdal_config_options({"GEOJSON_FLATTEN_GEOCOUCH": "YES"})
        yield


@planted(test=OTHERS + "[CRS of JSON-FG-False]", like="GDAL, which finds a format by its content")
def one_feature_states_the_crs_of_others():
    """One feature of GeoJSON with the CRS of another format moves the points of all others."""
    return replaced("psd.ingest.sources.vector._DRIVERS", ("GeoJSON", "GeoJSONSeq", "JSONFG"))


@planted(test=OTHERS + "[id of a feature-False]", like="GDAL, where an id may be a property")
@instead("psd.ingest.sources.vector._check_properties")
def ids_of_features_are_properties_if_others_say_so(*_):
    """Whether a feature has its id as a property is found by the features beside it."""
