"""Fuzz one target by atheris: `python tests/fuzz/run.py TARGET -max_total_time=600`.

The exit code is that of libFuzzer, 0 where nothing was found; what was found is a file beside,
whose bytes go to `targets.TARGETS[...].run` to see it again.
"""

import json
import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["psd", "psd_cli"]):
    from targets import TARGETS


def main():
    """Make the seeds, and fuzz."""
    name, *options = sys.argv[1:]
    target = TARGETS[name]
    corpus = Path(tempfile.mkdtemp(prefix=f"psd-fuzz-{name}-"))
    for number, seed in enumerate(target.seeds()):
        (corpus / f"seed-{number}").write_bytes(seed)
    words = corpus.with_suffix(".words")
    words.write_text(
        "".join(f"{json.dumps(word)}\n".replace("\\r\\n", "\\x0d\\x0a") for word in target.words)
    )
    limits = ["-timeout=20", "-rss_limit_mb=3000", "-max_len=20000"]
    atheris.Setup([sys.argv[0], *limits, *options, f"-dict={words}", str(corpus)], target.run)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
