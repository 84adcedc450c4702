"""What the sources do not say: a list of banned words, rule by rule, read off the syntax trees.

Each rule fires on what was planted for it, and each exception is one name in one module, with its
reason; an exception that nothing needs any more fails as well.
"""

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import psd
import psd_cli

ROOTS = {"psd": Path(psd.__file__).parent, "psd_cli": Path(psd_cli.__file__).parent}

# Where true data are touched, before noise is drawn: integers alone. Coordinates before they are
# put on the lattice are in `psd.ingest.sources` and `psd.space.domain`, answers in the
# decompositions.
EXACT = (
    "psd.choosing.selection",
    "psd.curator.contribution_choice",
    "psd.curator.curator",
    "psd.curator.halved_nodes",
    "psd.curator.path_charges",
    "psd.curator.person_sums",
    "psd.curator.points",
    "psd.curator.private_bounds",
    "psd.curator.privtree_split",
    "psd.ingest.cell_counter",
    "psd.ingest.code_ranks",
    "psd.ingest.contribution_bounding",
    "psd.ingest.engines._counts",
    "psd.ingest.engines.spark",
    "psd.ingest.hash_key",
    "psd.ingest.partial_tally",
    "psd.ingest.record_filter",
    "psd.ingest.row_hash",
    "psd.ingest.short_ids",
    "psd.ingest.quadrant_codes",
    "psd.ingest.tally",
    "psd.ingest.tally_builder",
    "psd.ingest.user_ids",
    "psd.ingest.user_partitions",
    "psd.ingest.user_rows",
    "psd.ledger.account",
    "psd.ledger.entries",
    "psd.ledger.charges",
    "psd.ledger.state",
    "psd.mechanisms",
    "psd.publish.build",
    "psd.publish.count_rows",
    "psd.publish.count_inputs",
    "psd.publish.drawing",
    "psd.publish.pipeline",
    "psd.publish.series",
    "psd.publish.tally_parts",
    "psd.space.bin_grid",
    "psd.space.grids",
    "psd.space.growing_tree",
    "psd.space.hilbert",
    "psd.space.quadrant_order",
    "psd.streams.addition",
    "psd.streams.counting",
    "psd.streams.drawing",
)

Found = Iterator[str]


@dataclass(frozen=True)
class Rule:
    """What is banned, where, and sources that it has to fire on and to leave alone."""

    finds: Callable[[ast.Module], Found]
    where: tuple[str, ...]
    planted: tuple[str, ...]
    harmless: tuple[str, ...] = ()

    def reads(self, module: str) -> bool:
        return any(module == name or module.startswith(name + ".") for name in self.where)


def imported(tree: ast.Module, banned: set[str]) -> Found:
    """Imports of banned modules, in whatever spelling."""
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            module = node.module or ""
            names = [module, *(f"{module}.{alias.name}" for alias in node.names)]
        for name in names:
            if any(name == word or name.startswith(word + ".") for word in banned):
                yield name
                break


def called(tree: ast.Module, names: set[str], methods: set[str]) -> Found:
    """Calls of banned builtins, and of methods of any object."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in names:
            yield node.id
        if isinstance(node, ast.Attribute) and node.attr in methods:
            yield node.attr


def randomness(tree: ast.Module) -> Found:
    """Any randomness but the operating system's; to name the type of a generator draws nothing."""
    yield from imported(tree, {"random", "numpy.random", "uuid"})
    makers = {"random", "default_rng", "RandomState", "SeedSequence", "rvs"}
    made = [
        node
        for node in without_annotations(tree)
        if isinstance(node, ast.Attribute) and node.attr in makers
    ]
    modules = {id(node.value) for node in made}  # `np.random` in `np.random.default_rng`
    yield from (node.attr for node in made if id(node) not in modules)


def other_sources(tree: ast.Module) -> Found:
    """What mechanisms could draw from, and does not pass through the one place that draws."""
    yield from imported(tree, {"secrets", "time", "decimal"})
    yield from called(tree, set(), {"urandom"})


def code_in_data(tree: ast.Module) -> Found:
    """Formats whose reading runs code."""
    modules = {"pickle", "cPickle", "marshal", "shelve", "dill", "joblib", "cloudpickle", "yaml"}
    yield from imported(tree, {*modules, "copyreg", "dbm", "xmlrpc"})
    yield from called(tree, set(), {"read_pickle", "to_pickle", "loads_pickle"})
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            if not (isinstance(node.value, ast.Constant) and node.value.value is False):
                yield "allow_pickle"
        elif isinstance(node, ast.Call):
            said = "allow_pickle" in [keyword.arg for keyword in node.keywords]
            if not said and ast.unparse(node.func) in ("np.load", "np.save"):
                yield ast.unparse(node.func)


def code_from_text(tree: ast.Module) -> Found:
    """Text that is run."""
    yield from imported(tree, {"code", "codeop", "runpy"})
    yield from called(tree, {"eval", "exec", "compile", "__import__", "breakpoint"}, set())


def processes(tree: ast.Module) -> Found:
    """Other processes, the network, foreign code."""
    network = {"socket", "socketserver", "http", "ftplib", "smtplib", "urllib.request", "requests"}
    local = {"subprocess", "multiprocessing", "concurrent.futures", "ctypes", "cffi", "pty"}
    yield from imported(tree, {*network, *local, "asyncio", "webbrowser"})
    spawned = {"system", "popen", "fork", "forkpty", "posix_spawn", "startfile"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "os":
            if node.attr in spawned or node.attr.startswith(("exec", "spawn")):
                yield ast.unparse(node)
        elif isinstance(node, ast.keyword) and node.arg == "shell":
            yield "shell"


def talk(tree: ast.Module) -> Found:
    """Anything that shows values to somebody: the library returns and raises, and is silent."""
    yield from imported(tree, {"logging", "syslog", "traceback", "pprint"})
    yield from called(tree, {"print", "input"}, {"stdout", "stderr", "warn", "print_exc"})


FLOAT_TYPES = {"float16", "float32", "float64", "longdouble", "floating", "double", "complex"}
WHOLE_MATH = {"ceil", "floor", "gcd", "lcm", "isqrt", "comb", "prod"}
FLOAT_NUMPY = {
    "mean", "average", "std", "var", "median", "quantile", "percentile", "linspace", "divide",
    "true_divide", "sqrt", "exp", "expm1", "log", "log1p", "log2", "power", "histogram",
}  # fmt: skip
FLOAT_TEXT = re.compile(r"[<>=|]?f[248]|float\d*|double")


def floats(tree: ast.Module) -> Found:
    """Floating point: literals, true division, types, and functions that give it.

    The log-probability of an answer, which audits and tests compute, decides no answer.
    """
    for node in without_annotations(tree, functions={"log_probability"}):
        if isinstance(node, ast.Constant):
            if isinstance(node.value, float | complex) or FLOAT_TEXT.fullmatch(str(node.value)):
                yield repr(node.value)
        elif isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Div):
            yield "/"
        elif isinstance(node, ast.Name) and node.id in {"float", "complex"}:
            yield node.id
        elif isinstance(node, ast.Attribute):
            owner = getattr(node.value, "id", "")
            of_numpy = owner in ("np", "numpy") and node.attr in FLOAT_TYPES | FLOAT_NUMPY
            if of_numpy or (owner == "math" and node.attr not in WHOLE_MATH):
                yield ast.unparse(node)
    yield from imported(tree, {"cmath", "statistics", "decimal.getcontext", "scipy"})


def without_annotations(
    tree: ast.Module, functions: frozenset[str] | set[str] = frozenset()
) -> Iterator[ast.AST]:
    """All nodes but those of types, which compute nothing, and of what asks for a value's type.

    Functions of given names are left out as well.
    """
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        yield node
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("isinstance", "cast"):
            continue
        if isinstance(node, ast.FunctionDef) and node.name in functions:
            continue
        typed = {"annotation", "returns"}
        for name, value in ast.iter_fields(node):
            if name not in typed:
                values = value if isinstance(value, list) else [value]
                pending += [child for child in values if isinstance(child, ast.AST)]


RULES = {
    "randomness": Rule(
        randomness,
        ("psd", "psd_cli"),
        (
            "import random",
            "import numpy.random as r",
            "from numpy import random",
            "from numpy.random import default_rng",
            "np.random.laplace()",
            "def f():\n    import random",
            "uuid.uuid4()\nimport uuid",
            "stats.norm.rvs(3)",
        ),
        (
            "random_words(3)",
            "import secrets",
            "from psd.mechanisms.random_words import random_bits",
        ),
    ),
    "sources of the noise": Rule(
        other_sources,
        ("psd.mechanisms",),
        ("import secrets", "from time import monotonic", "os.urandom(8)", "import decimal"),
        ("random_words(3)",),
    ),
    "code in data": Rule(
        code_in_data,
        ("psd", "psd_cli"),
        (
            "import pickle",
            "from joblib import load",
            "import marshal, json",
            "import shelve",
            "import dill as d",
            "pd.read_pickle(path)",
            "np.load(path)",
            "np.load(path, allow_pickle=True)",
            "np.save(path, a, allow_pickle=flag)",
            "import yaml",
        ),
        ("np.load(path, allow_pickle=False)", "json.loads(text)"),
    ),
    "code from text": Rule(
        code_from_text,
        ("psd", "psd_cli"),
        ("eval(text)", "exec(text)", "compile(t, '', 'exec')", "__import__('os')", "f = eval"),
        ("re.compile('x')", "importlib.import_module(name)"),
    ),
    "processes and network": Rule(
        processes,
        ("psd", "psd_cli"),
        (
            "import subprocess",
            "import socket",
            "from urllib.request import urlopen",
            "from urllib import request",
            "os.system('ls')",
            "os.execvp('ls', [])",
            "os.fork()",
            "run(command, shell=True)",
            "import ctypes",
            "from concurrent import futures",
        ),
        ("from urllib.parse import urlsplit", "os.fsync(handle)"),
    ),
    "talk": Rule(
        talk,
        ("psd",),
        (
            "print(count)",
            "import logging",
            "sys.stderr.write(text)",
            "warnings.warn(text)",
            "traceback.print_exc()\nimport traceback",
            "show = print",
        ),
        ("sys.stdin.buffer", "blueprint(3)"),
    ),
    "floats on true data": Rule(
        floats,
        EXACT,
        (
            "1 / 3",
            "x /= 2",
            "0.5",
            "float(x)",
            "x.astype(np.float64)",
            "x.astype(float)",
            "x.astype('f8')",
            "np.zeros(3, dtype='float64')",
            "np.mean(x)",
            "math.log(3)",
            "from scipy import stats",
            "def f(x=1.5): pass",
            "def sample(self): return self.true / 2",
        ),
        (
            "x: float",
            "def f(x: NDArray[np.float64]) -> float: pass",
            "isinstance(x, float)",
            "x // 3",
            "math.isqrt(9)",
            "def log_probability(self): return -0.5",
        ),
    ),
}

# Rule, module, and what is imported or named there: why.
ALLOWED = {
    ("randomness", "psd.planning.plan", "default_rng"): (
        "populations of a plan, made up from public densities"
    ),
    ("randomness", "psd.planning.local_plan", "default_rng"): (
        "populations of a plan, made up from public densities"
    ),
    ("randomness", "psd.planning.region_plan", "default_rng"): (
        "positions of made-up records in public regions"
    ),
    ("processes and network", "psd.integrations.qgis.command_line", "subprocess"): (
        "in QGIS, whose own Python is another one than that of psd"
    ),
    ("randomness", "psd.local.distributions", "default_rng"): (
        "samples of public tables of reports, for the errors of a distribution"
    ),
    ("randomness", "psd.web.size_accuracy", "default_rng"): (
        "squares whose errors a public page states"
    ),
    ("randomness", "psd.web.size_accuracy", "random"): "squares whose errors a public page states",
    ("floats on true data", "psd.space.growing_tree", "/"): (
        "shares of the areas of public cells and regions"
    ),
    ("floats on true data", "psd.space.growing_tree", "1.0"): (
        "shares of the areas of public cells and regions"
    ),
    ("randomness", "psd.suggest.factors", "default_rng"): (
        "where public factors of regions start, by a seed"
    ),
    ("randomness", "psd.query.simultaneous", "random"): (
        "points of a Sobol sequence, over which a public law is integrated"
    ),
    ("randomness", "psd.statistics.error_draws", "default_rng"): (
        "draws of errors around a release, which is public by then"
    ),
    ("randomness", "psd.evaluation.workload", "RandomState"): (
        "rectangles of an evaluation, which is PRIVATE and releases nothing"
    ),
    ("randomness", "psd.testing.method", "default_rng"): "data sets of tests, made up",
    ("randomness", "psd.testing.source", "default_rng"): "data sets of tests, made up",
    ("sources of the noise", "psd.mechanisms.random_words", "urandom"): (
        "the one place that asks the operating system"
    ),
    ("code from text", "psd.__main__", "runpy"): "runs the command, whose name is written there",
    ("processes and network", "psd.ingest.engines._spark_session", "socket"): (
        "asks whether the port of a Spark server answers"
    ),
    ("processes and network", "psd._util.processes", "concurrent.futures"): (
        "builds of one command in processes of this machine, started afresh and not forked"
    ),
    ("processes and network", "psd._util.processes", "concurrent.futures.process"): (
        "says that a process was ended from outside"
    ),
    ("processes and network", "psd._util.processes", "multiprocessing"): (
        "starts these processes afresh"
    ),
    ("processes and network", "psd._util.processes", "multiprocessing.connection"): (
        "ends these processes with their parent"
    ),
    ("processes and network", "psd._util.threads", "concurrent.futures"): (
        "threads of this process, which draw nothing"
    ),
    ("processes and network", "psd.ingest.tally_builder", "concurrent.futures"): (
        "threads of this process, which draw nothing"
    ),
    ("talk", "psd.local.device", "stdout"): "the device is a program: it prints its report",
    ("talk", "psd.local.device", "stderr"): "the device is a program: it prints its refusals",
    ("talk", "psd._util.stage_log", "logging"): "names of stages alone, which depend on no data",
    ("talk", "psd.ledger.account", "warn"): (
        "where the ledger lies, and whether a file was paid for under another name: no value of it"
    ),
    ("talk", "psd.ingest.engines._spark_session", "logging"): (
        "silences what PySpark logs, which may quote rows"
    ),
    ("talk", "psd.ingest.engines._spark_session", "stdout"): (
        "holds back what PySpark prints, which may quote rows"
    ),
    ("talk", "psd.ingest.engines._spark_session", "stderr"): (
        "holds back what PySpark prints, which may quote rows"
    ),
}


def modules() -> dict[str, str]:
    """Source of every module of both packages."""
    found = {}
    for package, root in ROOTS.items():
        for path in sorted(root.rglob("*.py")):
            parts = (package, *path.relative_to(root).with_suffix("").parts)
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            found[name] = path.read_text(encoding="utf-8")
    return found


MODULES = modules()


def offences(rule: str) -> set[tuple[str, str, str]]:
    """Rule, module and name of all that a rule finds."""
    return {
        (rule, module, name)
        for module, source in MODULES.items()
        if RULES[rule].reads(module)
        for name in RULES[rule].finds(ast.parse(source))
    }


@pytest.mark.parametrize("rule", RULES)
def test_nothing_banned_is_said(rule):
    assert sorted(offences(rule) - ALLOWED.keys()) == []


@pytest.mark.parametrize("rule", RULES)
def test_every_exception_is_needed_and_has_a_reason(rule):
    mine = {exception for exception in ALLOWED if exception[0] == rule}
    assert sorted(mine - offences(rule)) == []
    assert all(len(ALLOWED[exception].split()) > 3 for exception in mine)


def test_exceptions_are_of_rules_that_exist():
    assert {rule for rule, _, _ in ALLOWED} <= RULES.keys()


@pytest.mark.parametrize(
    ("rule", "source"), [(name, text) for name, rule in RULES.items() for text in rule.planted]
)
def test_a_rule_fires_on_what_is_planted(rule, source):
    assert list(RULES[rule].finds(ast.parse(source)))


@pytest.mark.parametrize(
    ("rule", "source"), [(name, text) for name, rule in RULES.items() for text in rule.harmless]
)
def test_a_rule_leaves_the_rest_alone(rule, source):
    assert not list(RULES[rule].finds(ast.parse(source)))


def test_every_place_that_is_to_be_exact_exists():
    assert all(any(RULES["floats on true data"].reads(m) for m in MODULES) for _ in EXACT)
    assert set(EXACT) <= MODULES.keys()
