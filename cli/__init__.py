"""The ``psd`` command: parsing, calling the library function of the same name, and writing."""
