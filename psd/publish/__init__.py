"""Build releases, tallies and single counts from records. Private."""
