"""Kinds of regions: one file each.

A module has a member ``kind``, a class of `psd.space.region_hierarchy.RegionGeometry`. If its
regions follow from a text, it has a function ``hierarchy`` of this text, a domain and a boundary.
"""
