"""`python -m psd` is the command `psd`."""

import runpy

if __name__ == "__main__":
    runpy.run_module("psd_cli", run_name="__main__")  # at run time: `psd` never imports it
