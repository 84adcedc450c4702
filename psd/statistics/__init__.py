"""Statistics of a release beside range queries: rasters, top cells, class breaks, nested regions.

All of it is post-processing: a release is read, and nothing is paid.
"""
