"""Tables of Spark as inputs of the core: their names, and the area that a charge has."""

import psd
from psd.ingest.input_names import input_names
from psd.publish.charging import charge_request
from psd.publish.request import BuildRequest

TABLE = psd.apps.spark.SparkTable("city.visits")


def test_a_table_is_named_and_may_hold_records_of_any_place():
    assert input_names(TABLE) == input_names([TABLE]) == ("table of Spark city.visits",)
    domain = psd.Domain(bounds=(0, 0, 4, 4), crs="EPSG:3857")
    request = BuildRequest(domain=domain, epsilon=1, method="grid")
    assert charge_request(request, [TABLE, "a.csv"], by_fields=True).region is None
