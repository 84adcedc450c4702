"""Statistics of a release beside range queries: rasters, top cells, class breaks, nested regions.

All of it is post-processing: it reads a release and costs no epsilon.
"""
