"""The entry point: commands, exit codes, one line per error."""

import pkgutil
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
from support.cli_runner import check_refusals, cli, fails, passes


def modules_with_a_command():
    names = [module.name for module in pkgutil.iter_modules(psd_cli.commands.__path__)]
    modules = {name.replace("_", "-"): import_module(f"psd_cli.commands.{name}") for name in names}
    return {name for name, module in modules.items() if hasattr(module, "command")}


def test_help_lists_the_commands_that_exist():
    assert passes() == passes("--help") == passes("-h")
    sections = passes("--help").split("\nPublish:\n")[1].splitlines()
    lines = [line for line in sections if line.startswith("  ")]
    assert [line.split()[0] for line in lines] == list(COMMANDS)
    assert set(COMMANDS) == modules_with_a_command()
    assert passes("--version").strip() == f"psd, version {psd.__version__}"


WRONG = [
    (2, "publish", "publish"),
    (2, "--nope", "--nope"),
    (2, "info", "RELEASE"),
    (2, "info a b", "b"),
    (2, "info a --format xml", "xml"),
    (2, "info .", "directory"),
    (2, "methods grid", "grid"),
]


def test_wrong_usage(subtests, here):
    check_refusals(subtests, WRONG)


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


def test_every_kind_of_error_has_its_code_and_is_one_line(monkeypatch, subtests):
    assert CODES == EXIT_CODES
    assert set(CODES) == set(errors.PsdError.__subclasses__())
    for kind, code in CODES.items():
        with subtests.test(kind.__name__):
            plant(monkeypatch, kind("what happened,\n  and\twhy"))
            assert fails(code, "info x") == "psd: error: what happened, and why\n"


def test_errors_of_other_families(monkeypatch, subtests):
    for error, code, words in (
        (RuntimeError("row 7: 127.01 was"), 70, "RuntimeError"),
        (MemoryError(), 70, "out of memory"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ):
        with subtests.test(words):
            plant(monkeypatch, error)
            line = fails(code, "info x")
            assert words in line
            assert "127.01" not in line


def test_debug_shows_where_an_unexpected_error_came_from(monkeypatch):
    cause = ValueError("could not convert '127.01'")
    error = RuntimeError("row 7: 127.01 was")
    error.__cause__ = error.__context__ = cause
    plant(monkeypatch, error)
    outcome = cli("--debug info x")
    assert outcome.code == 70
    for shown in ("Traceback", "test_main.py", "RuntimeError"):
        assert shown in outcome.err
    for hidden in ("127.01 was", "could not convert"):
        assert hidden not in outcome.err


def test_what_an_interrupted_command_says(monkeypatch, subtests):
    def interrupt(ctx):
        raise KeyboardInterrupt

    for name in COMMANDS:
        with subtests.test(name), monkeypatch.context() as patch:
            command = import_module(f"psd_cli.commands.{name.replace('-', '_')}").command
            patch.setattr(command, "invoke", interrupt)
            patch.setattr(command, "parse_args", lambda ctx, args: args)
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
