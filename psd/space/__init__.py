"""Where and when: domain, lattice, trees of cells, polygons and rasters. Public."""
