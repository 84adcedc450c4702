"""Kinds of regions: one file each.

A module has a member ``kind``, a class of `psd.regions.hierarchy.RegionGeometry`. If its
regions follow from a text, it has a function ``hierarchy`` of this text, a domain and a boundary.
"""
