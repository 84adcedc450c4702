"""The engine spark: records are counted where they are, on a cluster. Private side."""
