"""Planted bugs of the release file: what is written, and what is believed of one that is read."""

from __future__ import annotations

import json

import psd._util.untrusted_parquet
import psd.publish.pipeline
import psd.release.file
import psd.space.box_tree
from privacy.planted_bugs.bug import planted, replaced
from psd.errors import ReleaseFormatError
from psd.release import schema
from support.releases import changed

FILE = "tests/unit/release/test_file.py::"
HEADERS = FILE + "test_other_headers_are_refused"


@planted(
    test="tests/unit/publish/test_build.py::test_a_release_of_other_noise_is_a_replay_and_is_not_saved",
    like="releases with a seed, which anybody can subtract",
)
def replayed_noise_is_saved():
    """A release of scripted noise can be saved like a real one."""
    original = psd.publish.pipeline.draw_release

    def release_of(*arguments, **options):
        return changed(original(*arguments, **options), source="curator")

    return replaced(psd.publish.pipeline, "draw_release", release_of)


@planted(
    test=FILE + "test_headers_that_are_no_strict_json_are_refused",
    like="two readers of one file that see another epsilon",
)
def header_read_twice():
    """Keys that stand twice, NaN and infinity pass as JSON."""

    def any_json(raw, *_):
        try:
            return json.loads(raw)
        except ValueError:
            raise ReleaseFormatError("the header is not JSON") from None

    return replaced(psd.release.file, "strict_json", any_json)


def header_as(change):
    original = psd.release.file.record_fields
    return replaced(psd.release.file, "record_fields", lambda header: original(change(header)))


@planted(test=HEADERS, like="an allow-list that allows everything")
def unknown_fields_skipped():
    """Unknown fields are skipped when a release is read."""
    names = {field.name for field in schema.FIELDS} | {"format"}
    return header_as(lambda header: {k: v for k, v in header.items() if k in names})


@planted(test=HEADERS, like="fields whose meaning changed")
def version_of_the_future():
    """A format of a later version is read as if it were this one."""
    return header_as(
        lambda header: {**header, "format": min(header["format"], schema.WRITTEN_FORMAT)}
    )


@planted(test=FILE + "test_other_columns_and_values_are_refused", like="foreign and damaged files")
def cells_of_a_file_overlap():
    """Children of a file that do not tile their parent are taken."""
    return replaced(psd.space.box_tree, "children_tile", lambda tree, start=1: True)


@planted(
    test="tests/unit/_util/test_untrusted_parquet.py::"
    "test_a_key_that_is_there_twice_is_refused_whichever_value_is_read",
    like="two readers of one file that take different headers of two",
)
def footer_key_read_twice():
    """A key that is there twice in the footer passes; one of its values is read."""
    return replaced(psd._util.untrusted_parquet, "_check_keys", lambda footer, keys: None)


@planted(
    test="tests/unit/release/test_record.py::test_given_counts_are_given_again_after_loading",
    like="exact counts at any stated epsilon that pass for a release of the curator",
)
def given_counts_load_as_the_curators():
    """A file of given counts is loaded as if the curator had drawn them."""
    original = psd.release.file.record_fields

    def fields_of(header):
        fields = original(header)
        return fields | {"source": "curator", "method": fields["method"].replace("given", "grid")}

    return replaced(psd.release.file, "record_fields", fields_of)
