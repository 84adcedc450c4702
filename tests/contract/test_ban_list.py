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
from support import every_app  # noqa: F401 (apps are named here)

ROOTS = {"psd": Path(psd.__file__).parent, "psd_cli": Path(psd_cli.__file__).parent}

# Where true data are touched, before noise is drawn: integers alone. Coordinates before they are
# put on the lattice are in `psd.ingest.sources` and `psd.space.domain`, answers in the
# decompositions.
EXACT = """
    psd.apps.choosing.selection psd.curator.private_bounds psd.curator.curator
    psd.curator.points psd.curator.path_charges psd.curator.person_sums psd.curator.private_bounds
    psd.ingest.quadrant_codes psd.ingest.contribution_bounding
    psd.apps.spark.engine psd.ingest.row_hash psd.ingest.partial_tally
    psd.ingest.tally_builder psd.ingest.row_hash psd.ingest.user_partitions psd.ingest.tally
    psd.ingest.user_ids psd.ingest.user_partitions psd.ledger.account psd.ledger.entries
    psd.ledger.charges psd.ledger.state psd.mechanisms psd.publish.build psd.publish.counting
    psd.publish.drawing psd.publish.pipeline psd.publish.tally_parts psd.space.grids
    psd.space.growing_tree psd.apps.streams.addition
    psd.apps.streams.drawing psd.apps.streams.drawing
"""

Found = Iterator[str]


@dataclass(frozen=True)
class Rule:
    """Banned imports, names and attributes, and more, in which modules.

    It has to fire on each of the ``planted`` sources, and to leave the ``harmless`` ones alone;
    bars are between them.
    """

    where: str
    planted: str
    harmless: str
    without: str = ""
    imports: str = ""
    names: str = ""
    attributes: str = ""
    more: Callable[[ast.Module], Found] = lambda tree: iter(())
    hints: str = ""  # words without which there is no more

    def reads(self, module: str) -> bool:
        return module not in self.without.split() and any(
            f"{module}.".startswith(f"{name}.") for name in self.where.split()
        )

    def finds(self, source: str) -> Found:
        """What is banned; a source without any of the words need not be parsed."""
        words = f"{self.imports} {self.names} {self.attributes} {self.hints}".split()
        if not re.search(r"\b({})\b".format("|".join(w.rpartition(".")[2] for w in words)), source):
            return
        tree = ast.parse(source)
        yield from imported(tree, self.imports.split())
        names, attributes = self.names.split(), self.attributes.split()
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and node.id in names:
                yield node.id
            if isinstance(node, ast.Attribute) and node.attr in attributes:
                yield node.attr
        yield from self.more(tree)


def imported(tree: ast.Module, banned: list[str]) -> Found:
    """Imports of banned modules, in whatever spelling."""
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            module = node.module or ""
            names = [module, *(f"{module}.{alias.name}" for alias in node.names)]
        for name in names:
            if any(f"{name}.".startswith(f"{word}.") for word in banned):
                yield name
                break


def generators(tree: ast.Module) -> Found:
    """Makers of random numbers; to name the type of a generator draws nothing."""
    makers = {"random", "default_rng", "RandomState", "SeedSequence", "rvs"}
    made = [
        node
        for node in without_annotations(tree)
        if isinstance(node, ast.Attribute) and node.attr in makers
    ]
    modules = {id(node.value) for node in made}  # `np.random` in `np.random.default_rng`
    yield from (node.attr for node in made if id(node) not in modules)


def arrays_of_objects(tree: ast.Module) -> Found:
    """Arrays in files that may hold pickles."""
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            if not (isinstance(node.value, ast.Constant) and node.value.value is False):
                yield "allow_pickle"
        elif isinstance(node, ast.Call):
            said = "allow_pickle" in [keyword.arg for keyword in node.keywords]
            if not said and ast.unparse(node.func) in ("np.load", "np.save"):
                yield ast.unparse(node.func)


def spawned(tree: ast.Module) -> Found:
    """Functions of `os` that start a process, and shells."""
    words = {"system", "popen", "fork", "forkpty", "posix_spawn", "startfile"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "os":
            if node.attr in words or node.attr.startswith(("exec", "spawn")):
                yield ast.unparse(node)
        elif isinstance(node, ast.keyword) and node.arg == "shell":
            yield "shell"


WHOLE_MATH = {"ceil", "floor", "gcd", "lcm", "isqrt", "comb", "prod"}
FLOAT_NUMPY = """
    float16 float32 float64 longdouble floating double complex mean average std var median quantile
    percentile linspace divide true_divide sqrt exp expm1 log log1p log2 power histogram
"""
FLOAT_TEXT = re.compile(r"[<>=|]?f[248]|float\d*|double")


def floats(tree: ast.Module) -> Found:
    """Floating point: literals, true division, types, and functions that give it.

    The log-probability of an answer, which audits and tests compute, decides no answer; and no
    release draws by an approximation, see "draws by floats".
    """
    for node in without_annotations(tree, functions=("log_probability", "approximate")):
        if isinstance(node, ast.Constant):
            if isinstance(node.value, float | complex) or FLOAT_TEXT.fullmatch(str(node.value)):
                yield repr(node.value)
        elif isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Div):
            yield "/"
        elif isinstance(node, ast.Name) and node.id in {"float", "complex"}:
            yield node.id
        elif isinstance(node, ast.Attribute):
            owner = getattr(node.value, "id", "")
            of_numpy = owner in ("np", "numpy") and node.attr in FLOAT_NUMPY.split()
            if of_numpy or (owner == "math" and node.attr not in WHOLE_MATH):
                yield ast.unparse(node)


def without_annotations(tree: ast.Module, functions: tuple[str, ...] = ()) -> Iterator[ast.AST]:
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
        for name, value in ast.iter_fields(node):
            if name not in {"annotation", "returns"}:
                values = value if isinstance(value, list) else [value]
                pending += [child for child in values if isinstance(child, ast.AST)]


RULES = {
    # Any randomness but the operating system's.
    "randomness": Rule(
        where="psd psd_cli",
        imports="random numpy.random uuid",
        more=generators,
        hints="random default_rng RandomState SeedSequence rvs",
        planted="""
            import random | import numpy.random as r | from numpy import random |
            from numpy.random import default_rng | np.random.laplace() | def f(): import random |
            import uuid | stats.norm.rvs(3)
        """,
        harmless="""
            random_words(3) | import secrets | from psd.mechanisms.random_words import random_bits
        """,
    ),
    # What mechanisms could draw from, and does not pass through the one place that draws.
    "sources of the noise": Rule(
        where="psd.mechanisms",
        imports="secrets time decimal",
        attributes="urandom",
        planted="import secrets | from time import monotonic | os.urandom(8) | import decimal",
        harmless="random_words(3)",
    ),
    # What a mechanism draws by floats, for a sampler with a seed.
    "draws by floats": Rule(
        where="psd psd_cli",
        attributes="approximate",
        planted="mechanism.approximate(uniform) | draw = LaplaceMechanism.approximate",
        harmless="mechanism.sample() | def approximate(self, uniform): return self.true",
    ),
    # Formats whose reading runs code.
    "code in data": Rule(
        where="psd psd_cli",
        imports="pickle cPickle marshal shelve dill joblib cloudpickle yaml copyreg dbm xmlrpc",
        attributes="read_pickle to_pickle loads_pickle",
        more=arrays_of_objects,
        hints="allow_pickle load save",
        planted="""
            import pickle | from joblib import load | import marshal, json | import shelve |
            import dill as d | pd.read_pickle(path) | np.load(path) |
            np.load(path, allow_pickle=True) | np.save(path, a, allow_pickle=flag) | import yaml
        """,
        harmless="np.load(path, allow_pickle=False) | json.loads(text)",
    ),
    # Text that is run.
    "code from text": Rule(
        where="psd psd_cli",
        imports="code codeop runpy",
        names="eval exec compile __import__ breakpoint",
        planted="eval(text) | exec(text) | compile(t, '', 'exec') | __import__('os') | f = eval",
        harmless="re.compile('x') | importlib.import_module(name)",
    ),
    "processes and network": Rule(
        where="psd psd_cli",
        imports="""
            socket socketserver http ftplib smtplib urllib.request requests asyncio webbrowser
            subprocess multiprocessing concurrent.futures ctypes cffi pty
        """,
        more=spawned,
        hints=r"system popen fork\w* posix_spawn startfile exec\w* spawn\w* shell",
        planted="""
            import subprocess | import socket | from urllib.request import urlopen |
            from urllib import request | os.system('ls') | os.execvp('ls', []) | os.fork() |
            run(command, shell=True) | import ctypes | from concurrent import futures
        """,
        harmless="from urllib.parse import urlsplit | os.fsync(handle)",
    ),
    # Anything that shows values to somebody: the library returns and raises, and is silent.
    "talk": Rule(
        where="psd",
        imports="logging syslog traceback pprint",
        names="print input",
        attributes="stdout stderr warn print_exc",
        planted="""
            print(count) | import logging | sys.stderr.write(text) | warnings.warn(text) |
            traceback.print_exc() | show = print
        """,
        harmless="sys.stdin.buffer | blueprint(3)",
    ),
    # Files with a name in a folder of the system, which a kill leaves there with records in them.
    "named temporary files": Rule(
        where="""
            psd.ingest psd.curator psd.publish psd.ledger psd.apps.choosing psd.apps.spark
            psd.apps.streams psd.apps.suggest.training
        """,
        imports="""
            tempfile.NamedTemporaryFile tempfile.mkstemp tempfile.mkdtemp
            tempfile.TemporaryDirectory tempfile.SpooledTemporaryFile
        """,
        attributes="""
            NamedTemporaryFile mkstemp mkdtemp mktemp TemporaryDirectory SpooledTemporaryFile
        """,
        planted="""
            tempfile.NamedTemporaryFile() | from tempfile import mkstemp | t.TemporaryDirectory() |
            from tempfile import NamedTemporaryFile as F | make = tempfile.mkdtemp
        """,
        harmless="""
            tempfile.TemporaryFile() | os.memfd_create("header") | tempfile.gettempdir() |
            from tempfile import TemporaryFile
        """,
    ),
    "floats on true data": Rule(
        where=EXACT,
        without="psd.mechanisms.choice_laws",
        imports="cmath statistics decimal.getcontext scipy",
        more=floats,
        hints=r"\w+",  # in every source
        planted="""
            1 / 3 | x /= 2 | 0.5 | float(x) | x.astype(np.float64) | x.astype(float) |
            x.astype('f8') | np.zeros(3, dtype='float64') | np.mean(x) | math.log(3) |
            from scipy import stats | def f(x=1.5): pass | def sample(self): return self.true / 2
        """,
        harmless="""
            x: float | def f(x: NDArray[np.float64]) -> float: pass | isinstance(x, float) |
            x // 3 | math.isqrt(9) | def log_probability(self): return -0.5 |
            def approximate(self, uniform): return 0.5
        """,
    ),
}

# By rule: module, and what is imported or named there, and why.
ALLOWED = {
    "randomness": {
        "psd.apps.planning.plan default_rng": "populations made up from public densities",
        "psd.apps.planning.local_plan default_rng": "populations made up from public densities",
        "psd.apps.planning.region_plan default_rng": "made-up records in public regions",
        "psd.apps.local.answer_tables default_rng": "samples of public tables, for errors",
        "psd.apps.web.methodology default_rng": "squares whose errors a public page states",
        "psd.apps.web.methodology random": "squares whose errors a public page states",
        "psd.apps.suggest.models default_rng": "where public factors of regions start, by a seed",
        "psd.query.joint random": "a Sobol sequence, over which a public law is integrated",
        "psd.statistics.error_draws default_rng": "errors around a release, public by then",
        "psd.statistics.points default_rng": "places of points around estimates, public by then",
        "psd.statistics.points random": "places of points around estimates, public by then",
        "psd.apps.evaluation.workload RandomState": "rectangles of an evaluation, which is PRIVATE",
        "psd.testing.method default_rng": "data sets of tests, made up",
        "psd.testing.files default_rng": "data sets of tests, made up",
    },
    "sources of the noise": {
        "psd.mechanisms.random_words urandom": "the one place that asks the operating system",
    },
    "draws by floats": {
        "psd.publish.insecure approximate": "a sampler with a seed, whose result is no release",
    },
    "code from text": {
        "psd.__main__ runpy": "runs the command, whose name is written there",
    },
    "processes and network": {
        "psd.apps.qgis.plugin.command_line subprocess": "in QGIS, whose Python is not psd's",
        "psd.apps.spark.engine socket": "asks whether the port of Spark answers",
        "psd._util.processes concurrent.futures": "builds in processes that are started afresh",
        "psd._util.processes concurrent.futures.process": "says that one was ended from outside",
        "psd._util.processes multiprocessing": "starts these processes afresh, without a fork",
        "psd._util.processes multiprocessing.connection": "ends these processes with their parent",
        "psd.export._formats ctypes": "asks glibc to give freed memory back: no records are there",
        "psd.ingest.tally_builder concurrent.futures": "threads of this process: no draws",
    },
    "talk": {
        "psd.apps.local.device stdout": "the device is a program: it prints its report",
        "psd.apps.local.device stderr": "the device is a program: it prints its refusals",
        "psd.publish.observer logging": "names of stages alone, which depend on no data",
        "psd.export.pmtiles warn": "shapes of a public release that no tile has",
        "psd.publish.charging warn": "registered columns and those of the request, and a price",
        "psd.publish.request_warnings warn": "public parameters and names of columns",
        "psd.ledger.account warn": "where a ledger lies, and a file that was paid for before",
        "psd.space.windows warn": "public hours that a caller asks for, and a time zone",
        "psd.space.time_slices warn": "public hours that a caller asks for, and the list of slices",
        "psd.apps.spark.engine logging": "silences PySpark, which may quote rows",
        "psd.apps.spark.engine stdout": "silences PySpark, which may quote rows",
        "psd.apps.spark.engine stderr": "silences PySpark, which may quote rows",
    },
    "floats on true data": {
        "psd.space.growing_tree /": "shares of the areas of public cells and regions",
        "psd.space.growing_tree 1.0": "shares of the areas of public cells and regions",
    },
}


@pytest.fixture(scope="module")
def modules():
    """Source of every module of both packages."""
    found = {}
    for package, root in ROOTS.items():
        for path in sorted(root.rglob("*.py")):
            parts = (package, *path.relative_to(root).with_suffix("").parts)
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            found[name] = path.read_text(encoding="utf-8")
    return found


@pytest.mark.parametrize("rule", RULES)
def test_nothing_banned_is_said(modules, rule):
    """All that a rule finds is allowed there, and every exception is needed and has a reason."""
    allowed = ALLOWED.get(rule, {})
    read = {module: text for module, text in modules.items() if RULES[rule].reads(module)}
    said = {f"{module} {name}" for module, text in read.items() for name in RULES[rule].finds(text)}
    assert sorted(said - allowed.keys()) == []
    assert sorted(allowed.keys() - said) == []
    assert all(len(reason.split()) > 3 for reason in allowed.values())


def test_exceptions_are_of_rules_and_places_that_exist(modules):
    assert ALLOWED.keys() <= RULES.keys()
    apart = " ".join(rule.without for rule in RULES.values())
    assert {*EXACT.split(), *apart.split()} <= modules.keys()


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_fires_on_what_is_planted_and_leaves_the_rest_alone(rule):
    for source in RULES[rule].planted.split("|"):
        assert list(RULES[rule].finds(source.strip())), source
    for source in RULES[rule].harmless.split("|"):
        assert not list(RULES[rule].finds(source.strip())), source
