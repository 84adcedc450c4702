"""What scripts share that kill processes at chosen steps, and the tests that run them.

A script runs as a process of its own, without a thread, and forks one child for each piece of work.
A child counts the calls and returns in what it watches, and kills itself at the one it was given.
"""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path

TESTS = Path(__file__).parents[1]


def environment():
    """Surroundings of a process that imports the tests, and the package beside them."""
    folders = [str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")]), str(TESTS.parent)]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(folders)}


def run_script(name, folder, *words):
    """Run a script of the tests; the folders of what it killed, and of what was run again."""
    command = [sys.executable, str(TESTS / name), str(folder), *map(str, words)]
    ran = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return sorted(folder.glob("killed-*")), sorted(folder.glob("again-*"))


def end():
    os.kill(os.getpid(), signal.SIGKILL)


def forked(folder, work, watched=(), step=0):
    """Do work in a fork, in a folder, that ends at a step of some files; say how it ended."""
    process = os.fork()
    if process:
        return os.waitpid(process, 0)[1]
    os.chdir(folder)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(os.open("errors", os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
    seen = 0

    def count(frame, event, argument):
        nonlocal seen
        if frame.f_code.co_filename.endswith(watched):
            seen += 1
            if seen == step:
                end()

    sys.setprofile(count)
    code = work()
    sys.setprofile(None)
    Path("steps").write_text(str(seen))
    Path("modules").write_text("\n".join(sys.modules))
    os._exit(code)


def load_modules(folder):
    """Import what was imported by work that was done in a folder, so that no other fork has to."""
    for name in (folder / "modules").read_text().splitlines():
        with suppress(ImportError):  # a name that stands for a part of another module
            import_module(name)


def was_killed(ended):
    return os.WIFSIGNALED(ended) and os.WTERMSIG(ended) == signal.SIGKILL


def spread(number, whole):
    """So many steps, evenly spaced, of work that was done whole in a folder."""
    steps = int((whole / "steps").read_text())
    assert number <= steps, "two kills at one step"
    return [1 + i * (steps - 1) // max(number - 1, 1) for i in range(number)]
