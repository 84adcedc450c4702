"""Each module of the package has its unit tests in the same place of `tests/unit`."""

from fnmatch import fnmatch
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
PACKAGE = TESTS.parent / "psd"

# Modules whose tests are of more than one module, and where these are.
ELSEWHERE = {
    "__main__.py": "cli/test_main.py",
    "_version.py": "cli/test_main.py",
    "_util/parquet_pages.py": "unit/_util/test_untrusted_parquet.py",
    "_util/postgres.py": "unit/ingest/sources/test_postgis.py",
    "_util/thrift_compact.py": "unit/_util/test_untrusted_parquet.py",
    "_util/processes.py": "unit/evaluation/test_compare.py",
    "api/_answer_tables.py": "unit/query/test_polygons.py",
    "api/_release_*.py": "unit/api/test_release.py",
    "api/differences.py": "unit/statistics/test_differences.py",
    "api/loading.py": "unit/api/test_release.py",
    "auditing/*": "audit",
    "curator/candidate_scores.py": "contract/test_objectives.py",
    "curator/division_scores.py": "oracle/test_division_scores.py",
    "*/_constants.py": "contract/test_decompositions.py",
    "decompositions/*": "contract/test_decompositions.py",
    "estimation/alignment.py": "unit/estimation/test_lines.py",
    "estimation/coordinate_step.py": "unit/estimation/test_lines.py",
    "estimation/families.py": "unit/estimation/test_lines.py",
    "estimation/likelihoods.py": "unit/estimation/test_posterior.py",
    "estimation/measurements.py": "unit/estimation/test_local_measurements.py",
    "estimation/near_zone.py": "unit/estimation/test_near_model.py",
    "estimation/subtree_likelihoods.py": "unit/estimation/test_posterior.py",
    "estimation/unevenness.py": "unit/estimation/test_lines.py",
    "query/line*.py": "oracle/test_line_errors.py",
    "query/polygon_sides.py": "oracle/test_polygon_lines.py",
    "estimation/covariate_density.py": "property/test_covariate_laws.py",
    "estimation/published_covariance.py": "oracle/test_joint_dense.py",
    "evaluation/arguments.py": "unit/evaluation/test_evaluate.py",
    "evaluation/reporting/[acemn]*.py": "unit/evaluation/reporting/test_pages.py",
    "evaluation/true_counts.py": "unit/evaluation/test_evaluate.py",
    "export/*": "unit/export/test_formats.py",
    "ingest/cell_counter.py": "property/test_spilling.py",
    "ingest/engines/_[cpr]*.py": "unit/ingest/engines/test_expression.py",
    "ingest/engines/_spark_*.py": "unit/ingest/engines/test_spark.py",
    "ingest/memory_limit.py": "property/test_spilling.py",
    "ingest/row_hash.py": "oracle/test_marks_naive.py",
    "ingest/sources/array.py": "unit/ingest/sources/test_address.py",
    "ingest/sources/sql.py": "unit/ingest/sources/test_address.py",
    "ingest/sources/_columns.py": "unit/ingest/sources/test_text_formats.py",
    "ingest/sources/_csv_*.py": "unit/ingest/sources/test_csv.py",
    "ingest/sources/_names.py": "unit/ingest/sources/test_text_formats.py",
    "ingest/sources/_plain_text.py": "unit/ingest/sources/test_text_formats.py",
    "ingest/sources/_point_text.py": "unit/ingest/sources/test_text_formats.py",
    "ingest/sources/_points.py": "property/test_point_laws.py",
    "ingest/tally_header.py": "unit/ingest/test_tally_file.py",
    "ingest/user_partitions.py": "property/test_bounding.py",
    "integrations/qgis/*": "unit/integrations/test_qgis.py",
    "mechanisms/base.py": "contract/test_mechanisms.py",
    "planning/figure.py": "unit/planning/test_plan.py",
    "planning/s*.py": "unit/planning/test_plan.py",
    "publish/about_text.py": "cli/test_about.py",
    "publish/observer.py": "unit/publish/test_build.py",
    "publish/option_text.py": "unit/publish/test_request.py",
    "publish/pipeline.py": "unit/publish/test_build.py",
    "publish/request_*.py": "unit/publish/test_request.py",
    "planning/local_reports.py": "unit/planning/test_local_plan.py",
    "local/answer_design.py": "unit/local/test_answer_tables.py",
    "local/distributions.py": "unit/local/test_answer_tables.py",
    "local/campaign_groups.py": "unit/local/test_campaign_design.py",
    "local/campaigns.py": "unit/local/test_collection.py",
    "local/counting.py": "unit/local/test_collection.py",
    "local/lines.py": "unit/local/test_collection.py",
    "local/word_decoding.py": "unit/local/test_word_tables.py",
    "local/row_store.py": "unit/local/test_randomization.py",
    "local/parts.py": "unit/local/test_collection.py",
    "local/protocols/*": "contract/test_local_protocols.py",
    "ledger/charges.py": "unit/ledger/test_state.py",
    "ledger/registration.py": "unit/ledger/test_ledger.py",
    "publish/charging.py": "unit/ledger/test_account.py",
    "publish/count_*.py": "unit/publish/test_build.py",
    "publish/drawing.py": "unit/publish/test_build.py",
    "publish/public_inputs.py": "unit/publish/test_build.py",
    "publish/series.py": "unit/api/test_series.py",
    "query/answer_table.py": "unit/query/test_boxes.py",
    "query/compiled_shares.py": "oracle/test_compiled_walk.py",
    "query/compiled_walk.py": "oracle/test_compiled_walk.py",
    "query/index.py": "unit/api/test_release_estimate.py",
    "query/flat_tree.py": "oracle/test_query_dense.py",
    "query/region_overlaps.py": "oracle/test_joint_dense.py",
    "query/named_joint.py": "unit/api/test_region_release.py",
    "query/region_nodes.py": "unit/api/test_region_release.py",
    "query/summed_area.py": "oracle/test_query_dense.py",
    "release/counts.py": "unit/api/test_release.py",
    "release/allow_list.py": "unit/release/test_schema.py",
    "release/series*.py": "unit/api/test_series.py",
    "space/bin_grid.py": "oracle/test_division_scores.py",
    "space/public_files.py": "unit/publish/test_recipe.py",
    "space/polygon_pieces.py": "oracle/test_polygons_naive.py",
    "space/region_checks.py": "unit/space/test_regions.py",
    "space/region_frame.py": "unit/space/test_region_tree.py",
    "space/region_cover.py": "unit/space/test_polygon_hierarchy.py",
    "space/region_ids.py": "unit/space/test_polygon_hierarchy.py",
    "space/region_kinds/_[ac]*.py": "unit/space/region_kinds/test_grid_cells.py",
    "space/region_kinds/_h3_cells.py": "unit/space/region_kinds/test_h3.py",
    "space/region_parents.py": "unit/space/test_polygon_hierarchy.py",
    "space/region_raster.py": "unit/space/region_kinds/test_polygons.py",
    "space/region_table.py": "unit/space/test_region_hierarchy.py",
    "statistics/error_draws.py": "oracle/test_joint_dense.py",
    "statistics/overlay.py": "oracle/test_joint_dense.py",
    "web/size_accuracy.py": "unit/web/test_methodology.py",
    "streams/blocks.py": "unit/streams/test_totals.py",
    "streams/creation.py": "unit/streams/test_stream.py",
    "streams/drawing.py": "privacy/test_counter_loss.py",
    "streams/outputs.py": "unit/streams/test_stream.py",
    "testing/*": "contract/test_outside_packages.py",
}

# Tests of several modules of a package, which stand under the name of what they have in common.
SEVERAL = {
    "api/test_release_estimate.py": "estimates of a release: model, index and queries",
    "curator/test_curve_layer.py": "layers along a curve: curator, growing tree, charges",
    "estimation/test_lines.py": "lumps, rounding and streets, from families to errors of boxes",
    "evaluation/reporting/test_pages.py": "pages of a comparison and an evaluation",
    "export/test_other_programs.py": "exports in GDAL's command line, DuckDB and QGIS",
    "ingest/sources/test_input_crs.py": "columns in another CRS, from options to a ledger",
    "ingest/sources/test_text_formats.py": "CSV of other programs, from names to points",
    "ledger/test_two_currencies.py": "a dataset with a delta, from registration to refusal",
    "ledger/test_registered_inputs.py": "inputs of a dataset, from registration to a refused build",
    "integrations/test_qgis.py": "the plugin: words of a command line, and the real QGIS",
    "local/test_device_browser.py": "device.js in Chromium: its store, tabs, a campaign to its end",
    "local/test_device_js.py": "device.js in node, beside device.py and the bulk path",
    "local/test_seed_numbers.py": "numbers of the source documents, by enumeration",
    "web/test_map_browser.py": "the map page in Chromium: drawn areas, regions, slices, keys",
    "web/test_map_engine.py": "answers of the map page in node, beside those of the library",
    "publish/test_paid_tallies.py": "tallies that were paid for, from ledger to release",
}


def mirror(module):
    """Where the unit tests of a module are."""
    return TESTS / "unit" / module.parent / f"test_{module.stem.lstrip('_')}.py"


def test_each_module_is_tested_at_its_mirror_or_where_the_list_says():
    modules = [path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py")]
    missing = {
        module.as_posix()
        for module in modules
        if module.name != "__init__.py" and not mirror(module).exists()
    }
    listed = {name: [key for key in ELSEWHERE if fnmatch(name, key)] for name in missing}
    assert sorted(name for name, keys in listed.items() if not keys) == []
    assert ELSEWHERE.keys() - {key for keys in listed.values() for key in keys} == set()
    assert [path for path in ELSEWHERE.values() if not (TESTS / path).exists()] == []


def test_each_unit_test_is_the_mirror_of_a_module_or_of_several():
    files = {path.relative_to(TESTS / "unit") for path in (TESTS / "unit").rglob("test_*.py")}
    mirrored = {mirror(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py")}
    others = {file.as_posix() for file in files if TESTS / "unit" / file not in mirrored}
    assert others == SEVERAL.keys()
