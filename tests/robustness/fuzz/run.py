"""Fuzz one target by atheris: `python tests/robustness/fuzz/run.py TARGET SECONDS`.

The exit code is that of libFuzzer, 0 where nothing was found; what was found is a file beside,
whose bytes go to `targets.TARGETS[...].run` to see it again.
"""

import json
import os
import sys
import tempfile
import time
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["psd", "psd_cli"]):
    from targets import TARGETS

LIMITS = ["-timeout=60", "-rss_limit_mb=3000", "-max_len=20000"]


def prepared(target, folder):
    """Seeds as files, and the words as a dictionary; arguments that name them."""
    for number, seed in enumerate(target.seeds()):
        (folder / f"seed-{number}").write_bytes(seed)
    words = folder.with_suffix(".words")
    lines = (json.dumps(word).replace("\\r\\n", "\\x0d\\x0a") for word in target.words)
    words.write_text("\n".join(lines) + "\n")
    return [f"-dict={words}", str(folder)]


def main():
    """Fuzz until the time is over."""
    name, seconds = sys.argv[1:]
    target, end, runs = TARGETS[name], time.monotonic() + float(seconds), 0

    def run(content):
        nonlocal runs
        if time.monotonic() > end:
            # libFuzzer would leave with Python's lock in hand, for which threads of Arrow wait.
            print(f"{name}: {runs:,} runs, nothing found", flush=True)
            os._exit(0)
        runs += 1
        target.run(content)

    corpus = Path(tempfile.mkdtemp(prefix=f"psd-fuzz-{name}-"))
    atheris.Setup([sys.argv[0], *LIMITS, *prepared(target, corpus)], run)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
