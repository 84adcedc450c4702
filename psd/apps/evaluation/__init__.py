"""True errors, for the holder of the data. Private."""
