"""Range queries on a release: estimates with their errors.

A query is a weight between 0 and 1 on every leaf, the fraction of the leaf that it covers. One
traversal finds the cells that it cuts; boxes, polygons and named regions (`psd.query.areas`) differ
only in how they measure the fraction.
"""
