"""The entry point: commands, exit codes, one line per error, and help of every command."""

import dataclasses
import pkgutil
import re
import shlex
import subprocess
import time
import warnings
from contextlib import redirect_stderr
from functools import partial
from importlib import import_module
from pathlib import Path

import click
import numpy as np
import pytest
from click.shell_completion import get_completion_class

import psd
import psd_cli.apps
import psd_cli.commands
import psd_cli.main
from psd import _apps, errors
from psd.api.release import Release
from psd.decompositions import method_class, methods
from psd.publish.drawing import draw_counts
from psd.publish.observer import Observer
from psd.publish.pipeline import run_build
from psd.publish.request_values import request_from_toml
from psd_cli.commands import find_command
from psd_cli.main import CHARGING, COMMANDS, EXIT_CODES, main
from psd_cli.main import cli as group
from psd_cli.moved import COMMANDS as MOVED
from psd_cli.options.command import LIMITS, rename_arguments
from psd_cli.output.terminal import show_stage
from support.cli_runner import (
    BOUNDS,
    Terminal,
    check_refusals,
    cli,
    every_command,
    fails,
    parse,
    passes,
    process,
    write_points,
)

SHOWN = {name: COMMANDS[name] for name in group.list_commands(None)}


def modules_with_a_command():
    modules = {module.name for module in pkgutil.iter_modules(psd_cli.commands.__path__)}
    core = {name for name in modules if not name.startswith("_")}
    apps = {module.name for module in pkgutil.iter_modules(psd_cli.apps.__path__)}
    of_apps = {name for app in apps for name in import_module(f"psd_cli.apps.{app}").COMMANDS}
    assert of_apps == {name for name, app in _apps.COMMANDS.items() if app in apps}
    return {name for name in core | of_apps if " " not in name and _apps.has_command(name)}


def test_help_and_wrong_usage(subtests, here):
    assert passes() == passes("--help") == passes("-h")
    sections = passes("--help").split("\nPublish:\n")[1].splitlines()
    lines = [line for line in sections if line.startswith("  ")]
    assert [line.split()[0] for line in lines] == list(SHOWN)
    assert set(SHOWN) == modules_with_a_command()
    assert passes("--version").strip() == f"psd, version {psd.__version__}"
    check_refusals(subtests, WRONG)


WRONG = [
    (2, "publish", "command 'publish' does not exist; use one of"),
    (2, "bulid x.csv", "command 'bulid' does not exist; did you mean 'build'?"),
    (2, "ledger statsu", "ledger command 'statsu' does not exist; did you mean 'status'?"),
    (2, "ledger info", "ledger command 'info' does not exist; use one of account, create, history"),
    (2, "-q info x -v", "at most one of --quiet and --verbose must be given"),
    (2, "--nope", "--nope"),
    (2, "info", "RELEASE"),
    (2, "info a b", "b"),
    (2, "info a --format xml", "xml"),
    (2, "info .", "directory"),
    (2, "methods grid", "grid"),
]


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


def test_errors_are_one_line_and_a_code(monkeypatch, subtests):
    assert CODES == EXIT_CODES
    assert set(CODES) == set(errors.PsdError.__subclasses__())
    for kind, code in CODES.items():
        with subtests.test(kind.__name__):
            plant(monkeypatch, kind("what happened,\n  and\twhy"))
            assert fails(code, "info x") == "psd: error: what happened, and why\n"
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

    for name in SHOWN:
        with subtests.test(name), monkeypatch.context() as patch:
            command = find_command(name)
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


def examples(text):
    """Command lines of a help text, continued lines joined."""
    lines = text.replace("\\\n", " ").splitlines()
    return [shlex.split(line) for line in lines if line.strip().startswith("psd ")]


def test_help_of_every_command(subtests):
    for name, command in every_command():
        with subtests.test(name):
            text = passes(name, "--help")
            assert text == passes(name, "-h")
            if "--help-all" in text:
                assert len(text.splitlines()) <= 100
                text = passes(name, "--help-all")
            for parameter in command.params:
                is_option = isinstance(parameter, click.Option)
                if is_option and parameter.hidden:
                    continue
                names = parameter.opts if is_option else [parameter.human_readable_name]
                assert all(spelling in text for spelling in names)
                if is_option:
                    assert (parameter.help or "").strip().endswith("."), parameter.opts
            # Defaults are texts that may be typed.
            assert not re.search(r"\[default: \(|\[default: [^]]*, ", " ".join(text.split()))
    for sentence in SHOWN.values():
        assert sentence in passes("--help")
        assert sentence.endswith(".")


def test_examples_are_command_lines_that_parse(subtests):
    for name, _ in every_command():
        with subtests.test(name):
            found = examples(passes(name, "--help"))
            assert found
            for prog, *words in found:
                assert (prog, words[: name.count(" ") + 1]) == ("psd", name.split())
                parse(words)
    found = [line for line in examples(passes("--help")) if "COMMAND" not in line]
    assert [line[1] for line in found] == ["build", "query"]
    for _, *words in found:
        parse(words)


MOVED_PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "moved.md"


def test_old_words_are_answered_by_new_ones_that_exist(subtests):
    there, page = dict(every_command()), MOVED_PAGE.read_text(encoding="utf-8")
    assert psd.__version__ < "1" or not MOVED
    for old, new in MOVED.items():
        with subtests.test(old):
            assert old not in there
            assert f"| `psd {old}` | `psd {new}` |\n" in page
            told = f"psd: error: psd {old} is now psd {new}; it goes with version 1.0.0\n"
            words = [old.replace("RELEASE", "r.psd.parquet"), "--key", "k"]
            assert fails(2, *words) == told
            names = " ".join(re.findall(r"(?<!\S)[a-z]+", new))
            # Only a command of an app may not be there.
            assert names in there or names in _apps.COMMANDS
            params = there[names].params if names in there else ()
            options = {name for param in params for name in param.opts}
            assert {*re.findall(r"--[a-z-]+", new)} <= options
    assert "psd sign file" in fails(2, "sign --key k r.psd.parquet")


TALK = "build p.csv -o {} --epsilon 1 --method grid"


def test_quiet_and_verbose_before_and_after_a_command(here, subtests):
    write_points(here / "p.csv", [(1, 1)])
    passes(TALK.format("r"), *BOUNDS)
    for n, line in enumerate((f"-q {TALK}", f"{TALK} -q", f"{TALK} --quiet")):
        with subtests.test(line):
            assert passes(line.format(f"q{n}"), *BOUNDS) == ""
            assert (here / f"q{n}").exists()
    assert "exists" in fails(6, f"-q {TALK.format('r')}", *BOUNDS)
    assert passes("-q query r --box 0 0 1 1 --format csv")  # an answer is no line of success
    for n, line in enumerate((f"-v {TALK}", f"{TALK} -v")):
        with subtests.test(line):
            told = cli(line.format(f"v{n}"), *BOUNDS)
            assert told.out.startswith(f"wrote v{n}")
            stages = re.findall(r"(.+): \d+\.\d s\n", told.err)
            assert stages == ["reading", "counting with noise", "writing"]
            assert told.err.count("\n") == len(stages)


def test_quiet_shows_no_progress_on_a_terminal(here):
    write_points(here / "p.csv", [(1, 1)])
    assert cli(TALK.format("r"), *BOUNDS, stderr=(shown := Terminal())).code == 0
    assert "writing" in shown.getvalue()
    assert re.search(r"\b\d+ s\b", shown.getvalue())
    assert cli(f"-q {TALK.format('s')}", *BOUNDS, stderr=(silent := Terminal())).code == 0
    assert silent.getvalue() == ""


def test_progress_counts_slices_and_seconds_and_nothing_of_the_input(here):
    (here / "p.csv").write_text("lon,lat,t\n" + "1,1,2026-01-01\n" * 5)
    drawn = []
    request = request_from_toml(
        'epsilon = 1\nmethod = "grid"\nbounds = [0, 0, 4, 4]\ntime = "t"\ntime_zone = "UTC"\n'
        'slices = "2026-01-01..2026-01-03"\n'
    )
    observer = Observer(slices_done=lambda done, every: drawn.append((done, every)))
    draw = partial(draw_counts, on_slice=observer.slices_done)
    run_build(request, "p.csv", draw, observer=observer)
    assert drawn == [(1, 3), (2, 3), (3, 3)]
    with redirect_stderr(shown := Terminal()), show_stage("release 2 of 3: ") as stage:
        stage("reading")
        time.sleep(0.3)  # the screen is drawn ten times a second
        stage.slices(12, 52)
        time.sleep(0.3)
    for words in ("release 2 of 3: reading", "release 2 of 3: 12 of 52 slices drawn"):
        assert re.search(rf"{words} \d+ s", shown.getvalue())
    assert "%" not in shown.getvalue()


def test_names_with_signs_are_told_apart(here):
    told = fails(2, "build p.csv -o r --epsilon 1 --decimal ;", *BOUNDS)
    assert "--decimal must be one of '.', ',', got ';'" in told
    told = fails(2, "build p.csv -o r --epsilon 1 --bounds 126,4 37 127,6 38")
    assert "got '126,4'; write a decimal point" in told


def test_versions_and_completion_need_no_release(here, subtests):
    shown = dict(line.split(maxsplit=1) for line in passes("info --versions").splitlines())
    assert shown["psd"].strip() == psd.__version__
    assert {"Python", "numpy", "click", "platform"} <= {*shown}
    assert not {"pytest", "ruff"} & {*shown}
    assert "/" not in "".join(shown.values())
    for shell in ("zsh", "fish"):
        with subtests.test(shell):
            assert f"_PSD_COMPLETE={shell}_complete" in passes(f"info --completion {shell}")
    assert "is not one of" in fails(2, "info --completion csh")


@pytest.mark.app("auditing")
def test_commands_of_a_group_are_completed():
    kind = get_completion_class("zsh")
    words = kind(group, {}, "psd", "_PSD_COMPLETE").get_completions(["check"], "e")
    assert [word.value for word in words] == ["evaluate"] * _apps.has_app("evaluation")


@pytest.mark.deep
def test_the_completion_of_bash_is_a_script_of_bash(here):
    (here / "c.bash").write_text(process("info --completion bash").stdout)
    subprocess.run(["bash", "-n", "c.bash"], check=True)
    assert "_PSD_COMPLETE=bash_complete" in (here / "c.bash").read_text()


def test_each_method_with_its_parameters(subtests):
    text = passes("methods")
    for name in methods():
        with subtests.test(name):
            kind = method_class(name)
            assert f"\n{name} " in text
            assert kind.paper in text
            mine = text[text.index(f"\n{name} ") :].splitlines()
            for field in dataclasses.fields(kind):
                line = next(line for line in mine if line.split()[:1] == [field.name])
                assert field.metadata["doc"] in line
                assert field.default is None or str(field.default) in line


NAMES = ("overwrite", "user", "max_contributions", "epsilon", "bounds")
OPTIONS = {name: f"--{name.replace('_', '-')}" for name in NAMES}
OPTIONS |= {name: f"--{name}" for name in ("x", "y", "time", "layer")}
RENAMED = {
    "a exists; pass overwrite=True": "a exists; pass --overwrite",
    "pass layer=NAME, one of a, b": "pass --layer NAME, one of a, b",
    'no column "a"; see x=, y=, user=, time=': ('no column "a"; see --x, --y, --user, --time'),
    "epsilon must be above 0": "--epsilon must be above 0",
    "bounds: west 5 is not below east 4": "--bounds: west 5 is not below east 4",
    "the epsilon is too small": "the epsilon is too small",
    "give user= and max_contributions=": "give --user and --max-contributions",
    # Names of files and settings that look like arguments stay.
    "d/user=7/part.parquet cannot be read": "d/user=7/part.parquet cannot be read",
    "d=1/x.csv has no column": "d=1/x.csv has no column",
    "set height=8": "set height=8",
    "a:crs=EPSG:4326": "a:crs=EPSG:4326",
    "leave it out with layer=2": "leave it out with --layer 2",
    # What a shell does not pass on stays in quotes.
    'state layer=";"': 'state --layer ";"',
    'state layer="tab"': "state --layer tab",
}


def test_arguments_become_options_and_limits_are_shares(subtests):
    for message, shown in RENAMED.items():
        with subtests.test(message):
            assert rename_arguments(message, OPTIONS) == shown
    for text in ("0.3", ".3", "30%"):
        assert LIMITS(text) == pytest.approx(0.3)
    for text in ("12 %, 30%", "0.12,30%"):
        assert LIMITS(text) == pytest.approx((0.12, 0.3))
    for text in ("%", "30%%", "0.1,0.2,0.3", "a third"):
        with pytest.raises(click.BadParameter):
            LIMITS(text)
