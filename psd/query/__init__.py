"""Range queries on a release: estimates with their errors.

A query is the fraction of each leaf that it covers. One traversal finds the cells that it cuts;
boxes, polygons and named regions (`psd.query.areas`) differ only in how they measure the fraction.
"""
