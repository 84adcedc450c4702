"""One file per command; each has the name of the command."""
