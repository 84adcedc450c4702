"""Members of `Release` that moved, and what to write now."""

from typing import Final

__all__ = ["MOVED"]

MOVED: Final = {
    "about": "release.record.about_texts",
    "boundary": "release.record.boundary",
    "bounds": "release.domain.bounds",
    "covariate": "release.record.covariate",
    "crs": "release.domain.crs",
    "estimate": "release.query(boxes, errors=False)",
    "estimates": "release.index.fit.estimates",
    "explain": "release.query(areas).explain()",
    "explore": "release.to_geopandas().explore()",
    "guarantee_text": "release.record.guarantee_text",
    "inference": "release.record.inference",
    "joint": "release.query(areas).joint()",
    "library": "release.record.library",
    "model": "release.index.fit",
    "nested": "release.query(areas).nested()",
    "parameters": "release.record.parameters",
    "post_processing": "release.record.post_processing",
    "quantiles": "release.query(quantiles=True, classes=5)",
    "query_regions": "release.query(names, level=level)",
    "query_table": "release.query(table, id=column)",
    "raster": "release.to_xarray(columns, rows)",
    "regions_tree": "release.tree",
    "releases": "release[name]",
    "source": "release.record.source",
    "top": "release.query(top=10)",
    "total_regions": "release.query(names, level=level)",
    "total_table": "release.query(table, id=column)",
    "with_about": "release.replace(about=texts)",
    "with_cache": "psd.api.fits.with_cache(release)",
    "with_near_fit": "release",
    "with_post_processing": "release.replace(post_processing=other)",
}
"""What stands for an old member, as code; answered until version 1.0.0."""
