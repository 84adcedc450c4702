"""The entry point: commands, exit codes, one line per error."""

import os
import pkgutil
import subprocess
import sys
import warnings
from importlib import import_module

import numpy as np
import pytest

import psd
import psd_cli.commands
import psd_cli.main
from psd import errors
from psd.api.release import Release
from psd_cli.main import CHARGING, COMMANDS, EXIT_CODES, main
from support.cli_runner import cli, fails, passes, process, three_by_three, write_points


def modules_with_a_command():
    names = [module.name for module in pkgutil.iter_modules(psd_cli.commands.__path__)]
    found = [
        name for name in names if hasattr(import_module(f"psd_cli.commands.{name}"), "command")
    ]
    return {name.replace("_", "-") for name in found}


def test_help_lists_the_commands_that_exist():
    sections = passes("--help").split("\nPublish:\n")[1].splitlines()
    lines = [line for line in sections if line.startswith("  ")]
    assert [line.split()[0] for line in lines] == list(COMMANDS)
    assert set(COMMANDS) == modules_with_a_command()


def test_alone_it_prints_help():
    assert passes() == passes("--help") == passes("-h")


def test_version():
    assert passes("--version").strip() == f"psd, version {psd.__version__}"


@pytest.mark.parametrize(
    ("args", "word"),
    [
        pytest.param(["publish"], "publish", id="unknown-command"),
        pytest.param(["--nope"], "--nope", id="unknown-option"),
        pytest.param(["info"], "RELEASE", id="missing-argument"),
        pytest.param(["info", "a", "b"], "b", id="surplus-argument"),
        pytest.param(["info", "a", "--format", "xml"], "xml", id="unknown-choice"),
        pytest.param(["info", "."], "directory", id="folder-for-a-file"),
    ],
)
def test_wrong_usage(args, word):
    assert word in fails(2, *args)


def plant(monkeypatch, error):
    """Let `psd info` meet an error."""

    def load(path, **options):
        raise error

    monkeypatch.setattr(Release, "load", staticmethod(load))


CODES = {
    errors.ParameterError: 2,
    errors.DomainError: 3,
    errors.BudgetError: 4,
    errors.ReleaseFormatError: 5,
    errors.WriteError: 6,
    errors.MissingExtraError: 7,
    errors.InputDataError: 8,
    errors.LedgerError: 9,
    errors.AuditError: 10,
    errors.RandomnessError: 70,
    errors.InternalError: 70,
}


def test_every_kind_of_error_has_its_code():
    assert CODES == EXIT_CODES
    assert set(CODES) == set(errors.PsdError.__subclasses__())


@pytest.mark.parametrize(("kind", "code"), CODES.items(), ids=lambda v: getattr(v, "__name__", ""))
def test_an_error_is_one_line_and_a_code(monkeypatch, kind, code):
    plant(monkeypatch, kind("what happened,\n  and\twhy"))
    assert fails(code, "info", "x") == "psd: error: what happened, and why\n"


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        pytest.param(RuntimeError("row 7: 127.01 was"), 70, "RuntimeError", id="unexpected"),
        pytest.param(MemoryError(), 70, "out of memory", id="memory"),
        pytest.param(KeyboardInterrupt(), 130, "interrupted", id="interrupt"),
    ],
)
def test_errors_of_other_families(monkeypatch, error, code, words):
    plant(monkeypatch, error)
    line = fails(code, "info", "x")
    assert words in line
    assert "127.01" not in line


def test_debug_shows_where_an_unexpected_error_came_from(monkeypatch):
    cause = ValueError("could not convert '127.01'")
    error = RuntimeError("row 7: 127.01 was")
    error.__cause__ = error.__context__ = cause
    plant(monkeypatch, error)
    outcome = cli("--debug", "info", "x")
    assert outcome.code == 70
    assert "Traceback" in outcome.err
    assert "test_main.py" in outcome.err
    assert "RuntimeError" in outcome.err
    assert "127.01 was" not in outcome.err
    assert "could not convert" not in outcome.err


@pytest.mark.parametrize(
    "args",
    [
        pytest.param(["query", "r.parquet", "--boxes", "boxes.csv", "--format", "csv"], id="csv"),
        pytest.param(["query", "r.parquet", "--boxes", "boxes.csv"], id="table"),
        pytest.param(["info", "r.parquet"], id="info"),
        pytest.param(["--help"], id="help"),
    ],
)
def test_quiet_when_the_reader_has_gone(tmp_path, args):
    three_by_three().save(tmp_path / "r.parquet")
    boxes = [(-3, -3, east / 1000, 3) for east in range(1, 2000)]
    write_points(tmp_path / "boxes.csv", boxes, "west,south,east,north")
    reader, writer = os.pipe()
    os.close(reader)
    command = [os.path.join(os.path.dirname(sys.executable), "psd"), *args]
    ended = subprocess.run(
        command, cwd=tmp_path, stdout=writer, stderr=subprocess.PIPE, check=False
    )
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (0, b"")


def test_python_runs_the_package():
    command = [sys.executable, "-m", "psd", "--version"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (0, passes("--version"))


def test_the_list_of_commands_imports_none_of_them():
    script = "import sys; from psd_cli.main import run; run(['--help']); print(*sys.modules)"
    command = [sys.executable, "-c", script]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    loaded = ended.stdout.splitlines()[-1].split()
    assert "psd_cli.main" in loaded
    assert not {"numpy", "psd.curator", "psd_cli.commands.plan"} & set(loaded)


@pytest.mark.parametrize("name", COMMANDS)
def test_what_an_interrupted_command_says(monkeypatch, name):
    def interrupt(ctx):
        raise KeyboardInterrupt

    command = import_module(f"psd_cli.commands.{name.replace('-', '_')}").command
    monkeypatch.setattr(command, "invoke", interrupt)
    monkeypatch.setattr(command, "parse_args", lambda ctx, args: args)
    told = fails(130, name)
    assert told.startswith("psd: error: interrupted; no file is half-written")
    assert ("what was charged" in told) == (name in CHARGING)


def test_warnings_of_libraries_are_silent(monkeypatch):
    """Whether a library warns may depend on one record, and stderr may be public."""

    def warn(args):
        with warnings.catch_warnings(record=True) as told:
            np.ones(1) / 0
        return len(told)

    monkeypatch.setattr(psd_cli.main, "run", warn)
    monkeypatch.setattr(psd_cli.main.signal, "signal", lambda *handler: None)
    with warnings.catch_warnings(), pytest.raises(SystemExit) as left:
        main([])
    assert left.value.code == 0


def test_as_a_process():
    ended = process("nope")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.count("\n") == 1
