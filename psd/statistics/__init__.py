"""Statistics of a release beside range queries: rasters, top cells, class breaks, nested regions.

All functions are post-processing: they read a release and cost no epsilon.
"""
