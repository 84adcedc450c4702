"""`python -m psd_cli` is the command `psd`."""

from .main import main

main()
