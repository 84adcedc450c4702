"""Each app can be removed with its folders: what is left works, and says what is missing.

Run as ``python tests/removal.py [APP]...``, with the extras `test` and `deep`; it needs no network
and installs nothing. Each app of `psd._apps.USES` is taken out of a copy of this repository, with
the apps that use it; `all` takes out every app and runs the whole fast tier. It ends with 1 if a
check fails.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TOP))

from psd._apps import COMMANDS, MEMBERS, USES  # noqa: E402

# Whoever installed this repository with `pip install -e` has a finder that gives the folders that
# were taken out.
NO_EDITABLE = """
import sys
finders = sys.meta_path
finders[:] = [each for each in finders if "editable" not in getattr(each, "__module__", "")]
"""

# What the names of `psd` and its commands answer, in one process.
NAMES = """
import contextlib, io, sys
from importlib.util import find_spec
import psd
from psd.errors import MissingExtraError
from psd._apps import COMMANDS as OF_APPS
from psd_cli.main import COMMANDS, run

apps, names, commands = (set(filter(None, words.split(","))) for words in sys.argv[1:])
assert not any(find_spec("psd.apps") and find_spec(f"psd.apps.{app}") for app in apps)

def outcome(*words):
    said = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
        return run([*words]), said.getvalue()

for name in psd.__all__:
    try:
        getattr(psd, name)
        assert name not in names, f"psd.{name} is there"
    except MissingExtraError as error:
        assert name in names, f"psd.{name}: {error}"
assert outcome("--help") == (0, "")
for name in {*COMMANDS, *OF_APPS}:
    code, said = outcome(*name.split(), "--help")
    below = {each for each in OF_APPS if each.startswith(f"{name} ")}
    missing = name in commands or below and below <= commands
    right = code == 7 and said.count("\\n") == 1 if missing else (code, said) == (0, "")
    assert right, f"psd {name} --help: {code} {said}"
"""


def copy_without(apps, folder):
    """Copy the files of the repository, those that git does not know yet included, but for apps."""
    shown = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    files = subprocess.run(shown, cwd=TOP, check=True, capture_output=True, text=True).stdout
    names = "|".join(apps)
    gone = re.compile(rf"(psd|tests)/apps/({names})/|cli/apps/({names})\.py")
    for name in files.split("\0"):
        if name and not gone.match(name) and (TOP / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(TOP / name, folder / name)
    # What is installed is a list.
    settings = folder / "pyproject.toml"
    listed = rf'"psd\.apps\.({names})(\.[\w.]+)?"'
    text = re.sub(rf"{listed}, ", "", settings.read_text(encoding="utf-8"))
    settings.write_text(re.sub(rf"(?m)^{listed} = .*\n", "", text), encoding="utf-8")


def readme_commands():
    """The first build and query of the README, without what installs the package."""
    text = (TOP / "README.md").read_text(encoding="utf-8")
    block = re.search(r"<!-- first -->\n```sh\n.* && (psd build .*)\n```", text)
    return f'set -euo pipefail; psd() {{ "{sys.executable}" -m psd "$@"; }}; {block[1]}'


def checks(apps, every):
    """Name and command line of each check."""
    python, tests = sys.executable, [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    named = [name for name, module in MEMBERS.items() if module.split(".")[2] in apps]
    commands = [name for name, app in COMMANDS.items() if app in apps]
    yield "names", [python, "-c", NAMES, *map(",".join, (apps, named, commands))]
    yield "collection", [*tests, "-n", "0", "--co", "-m", "not nightly and not spark"]
    yield "README", ["bash", "-c", readme_commands()]
    if every:
        yield "fast tier", [*tests, "-n", "auto", "--dist", "worksteal"]


def failed_checks(apps, *, every=False):
    """Checks that fail without apps, with the end of what they printed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "psd")
        links = Path(name, "path")
        links.mkdir()
        copy_without(apps, folder)
        (links / "psd_cli").symlink_to(folder / "cli")
        (links / "sitecustomize.py").write_text(NO_EDITABLE)
        path = os.pathsep.join(map(str, (folder, links)))
        surroundings = os.environ | {"PYTHONPATH": path, "PSD_CACHE": "off"}
        for check, line in checks(apps, every):
            ended = subprocess.run(
                line,
                cwd=folder,
                env=surroundings,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            if ended.returncode:
                yield f"{check}:\n{ended.stdout[-4000:]}"


def users_of(app):
    """An app and those that use it."""
    return sorted(name for name, used in USES.items() if app in (name, *used))


def tried_without(name):
    """Take out an app, or all; return the apps, the checks that fail and the seconds."""
    begun = time.monotonic()
    apps = list(USES) if name == "all" else users_of(name)
    found = list(failed_checks(apps, every=name == "all"))
    return apps, found, time.monotonic() - begun


def main(*chosen):
    """Take out apps side by side, since each check but the fast tier has one process."""
    failed = []
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for apps, found, seconds in pool.map(tried_without, chosen or ("all", *USES)):
            print(f"without {' '.join(apps)}: {'FAILED' if found else 'works'}, {seconds:.0f} s")
            print("".join(f"{each}\n" for each in found), end="", flush=True)
            failed += found
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
