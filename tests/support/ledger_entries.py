"""Bodies of entries of a ledger: a dataset, and a charge to a region of it."""

from psd.ledger.extents import BY_FIELDS

DATASET = {
    "name": "visits", "budget": 10, "unit": "record", "time_zone": None, "bound": None, "caps": {},
    "delta": None, "reading": {"x": "lon", "y": "lat"}, "inputs": [],
}  # fmt: skip
REGION = {
    "bounds": [0, 1, 2, 3], "crs": "EPSG:4326", "columns": [BY_FIELDS, "x=lon"], "lattice": [8, 4],
}  # fmt: skip
CHARGE = {
    "id": "c", "dataset": "visits", "analyst": None, "what": "build", "epsilon": 7, "bound": 1,
    "region": REGION, "files": ["ab", "cd"], "slices": None, "rho": None, "delta": None,
    "terms": {},
}  # fmt: skip
