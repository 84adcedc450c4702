"""How much: epsilon, its shares, and the unit of privacy. Values, no data."""
