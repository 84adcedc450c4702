"""Programs of others in which the command `psd` is used."""
