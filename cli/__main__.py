"""`python -m psd_cli` is the command `psd`."""

from .main import main

if __name__ == "__main__":
    main()
