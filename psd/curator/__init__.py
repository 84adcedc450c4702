"""The only holder of points, and what answers its questions. Private."""
