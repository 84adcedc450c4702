"""Planted bugs of the release file: what is written, and what is believed of one that is read."""

import json

from privacy.planted_bugs.bug import around, instead, like, planted, replaced
from psd.errors import ReleaseFormatError
from psd.release import schema
from support.releases import changed

FILE = "tests/unit/release/test_file.py::"
BUILD = "tests/unit/publish/test_build.py::"
FOOTER = "tests/unit/_util/test_untrusted_parquet.py::"
HEADERS = FILE + "test_other_headers_are_refused"


@planted(test=BUILD + "test_a_release_of_other_noise_is_a_replay_and_is_not_saved")
@like("releases with a seed, which anybody can subtract")
@around("psd.publish.drawing.draw_release")
def replayed_noise_is_saved(original, *arguments, **options):
    """A release of scripted noise can be saved like a real one."""
    return changed(original(*arguments, **options), source="curator")


@planted(test=FILE + "test_headers_that_are_no_strict_json_are_refused")
@like("two readers of one file that see another epsilon")
@instead("psd.release.file.strict_json")
def header_read_twice(raw, *_):
    """Keys that stand twice, NaN and infinity pass as JSON."""
    try:
        return json.loads(raw)
    except ValueError:
        raise ReleaseFormatError("the header is not JSON") from None


@planted(test=HEADERS, like="an allow-list that allows everything")
@around("psd.release.file.record_fields")
def unknown_fields_skipped(original, header):
    """Unknown fields are skipped when a release is read."""
    names = {field.name for field in schema.FIELDS} | {schema.MARK}
    return original({k: v for k, v in header.items() if k in names})


@planted(test=HEADERS, like="fields whose meaning changed")
@around("psd.release.file.record_fields")
def version_of_the_future(original, header):
    """A format of a later version is read as if it were this one."""
    return original({**header, schema.MARK: schema.FORMAT})


@planted(test=FILE + "test_other_columns_and_values_are_refused", like="foreign and damaged files")
def cells_of_a_file_overlap():
    """Children of a file that do not tile their parent are taken."""
    return replaced("psd.space.box_tree.children_tile", lambda tree, start=1: True)


@planted(test=FOOTER + "test_a_key_that_is_there_twice_is_refused_whichever_value_is_read")
@like("two readers of one file that take different headers of two")
def footer_key_read_twice():
    """A key that is there twice in the footer passes; one of its values is read."""
    return replaced("psd._util.parquet_bytes._check_keys", lambda footer, keys: None)


@planted(test="tests/unit/release/test_record.py::test_given_counts_are_given_again_after_loading")
@like("exact counts at any stated epsilon that pass for a release of the curator")
@around("psd.release.file.record_fields")
def given_counts_load_as_the_curators(original, header):
    """A file of given counts is loaded as if the curator had drawn them."""
    fields = original(header)
    return fields | {"source": "curator", "method": fields["method"].replace("given", "grid")}
