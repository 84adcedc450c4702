"""Read records and count them per cell. Private side."""
