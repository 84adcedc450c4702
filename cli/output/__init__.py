"""Tables and texts that several commands print."""
