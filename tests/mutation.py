"""Mutation testing: each guarding module is changed in one place at a time, and tests must fail.

Run as ``python tests/mutation.py [K/N] [GROUP]...``, with the extra ``mutation``; `mutation.toml`
says which modules and tests, and which changes have no effect, by function and operator. ``K/N``
changes every N-th function alone, from the K-th of each group: shares 0 to N - 1 change all. It
ends with 1 if more changes of an operator survive in a function than are listed there, or fewer.
Messages are not changed, nor are the examples that mechanisms give to tests.
"""

import ast
import difflib
import gc
import json
import keyword
import mmap
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import astuple, dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from coverage import Coverage
from mutmut.mutation.file_mutation import mutate_file_contents
from mutmut.mutation.trampoline import set_mutant_under_test

TOP = Path(__file__).resolve().parents[1]
PLAN = tomllib.loads((TOP / "tests" / "mutation.toml").read_text(encoding="utf-8"))
# Outcomes of a change that tests noticed; the clock notices a loop without an end.
KILLED, CLOCK = "killed", "timeout"
# Functions that make examples for tests, which are not changed.
EXAMPLES = re.compile(r"^( *def neighbours\(.*:)$", re.MULTILINE)

TOKEN = re.compile(
    r"""[rbfu]{0,2}(?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|\d[\w.]*|[^\W\d]\w*"""
    r"""|//=?|\*\*=?|<<|>>|[<>=!+\-*/%&|^]=|->|:=|\S"""
)


@dataclass(frozen=True)
class Change:
    """One change of a function: the lines that went and those that came."""

    function: str
    before: str
    after: str

    @property
    def operator(self) -> str:
        """Tokens before and after; of names, numbers and texts the kind alone.

        Examples
        --------
        >>> Change("f", "if size > limit + 1:", "if size >= limit + 1:").operator
        '> -> >='
        >>> Change("f", "part(total, axis=0)", "part(total, axis=None)").operator
        'number -> None'
        """
        before, after = TOKEN.findall(self.before), TOKEN.findall(self.after)
        steps = difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
        return "; ".join(
            f"{kinds_text(before[a:b])} -> {kinds_text(after[c:d])}"
            for tag, a, b, c, d in steps
            if tag != "equal"
        )

    def __str__(self) -> str:
        return f"{self.function}: {self.operator}\n    - {self.before}\n    + {self.after}"


def kinds_text(tokens: list[str]) -> str:
    """Kinds of tokens in one text."""
    return " ".join(map(token_kind, tokens)) or "nothing"


def token_kind(token: str) -> str:
    """Kind of a name, a number or a text; any other token itself."""
    if keyword.iskeyword(token):
        return token
    if token[-1] in "\"'":
        return "text"
    if token[0].isdigit():
        return "number"
    return "name" if token[0].isalpha() or token[0] == "_" else token


def copy_project(work: Path) -> None:
    """Copy the files under version control."""
    names = subprocess.check_output(["git", "ls-files", "-z"], cwd=TOP, text=True).split("\0")
    for name in filter(None, names):
        target = work / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (TOP / name).exists():
            target.write_bytes((TOP / name).read_bytes())
    (work / "cli").rename(work / "psd_cli")  # the name it is installed under


# Decorators that make another object of a function, and those that keep its results.
_WRAPPERS, _CACHES = ("property", "cached_property", "contextmanager"), ("cache", "lru_cache")

# A cache for each change, by its name in the environment: results of another change would hide it.
_CACHE = """(lambda function, results: lambda *arguments: results[key]
    if (key := (__import__("os").environ.get("MUTANT_UNDER_TEST"), arguments)) in results
    else results.setdefault(key, function(*arguments)))({name}, {{}})"""


def undecorate(text: str) -> str:
    """Replace decorators of functions by assignments; mutmut leaves decorated functions out."""
    lines = text.split("\n")
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    for node in sorted(functions, key=lambda node: -node.lineno):
        for decorator in node.decorator_list:
            name = ast.unparse(decorator).split("(")[0]
            if name in ("staticmethod", "classmethod"):
                continue
            if name not in _WRAPPERS + _CACHES:
                raise SystemExit(f"{node.name} is decorated by {name}, so it would not be changed")
            wrapped = (_CACHE if name in _CACHES else name + "({name})").format(name=node.name)
            assignment = f"{' ' * node.col_offset}{node.name} = {wrapped}"
            lines.insert(node.end_lineno or node.lineno, assignment)
            del lines[decorator.lineno - 1]
    return "\n".join(lines)


@dataclass(frozen=True)
class Place:
    """A change, and the lines of its module that hold its function and what it changes there."""

    change: Change
    module: str
    function: range
    changed: range


def make_changes(modules: list[str]) -> dict[str, Place]:
    """Write all changes of modules into them, to be chosen by name; return where each stands."""
    places = {}
    for module in modules:
        file = Path(module)
        text = EXAMPLES.sub(r"\1  # pragma: no mutate block", file.read_text("utf-8"))
        made = mutate_file_contents(module, undecorate(text))
        file.write_text(made.code, "utf-8")
        functions = read_functions(made.code)
        prefix = module.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        for name in made.mutant_names:
            first, original = functions[re.sub(r"\d+$", "orig", name)]
            changed = functions[name][1]
            matcher = difflib.SequenceMatcher(None, original, changed, autojunk=False)
            steps = [step for step in matcher.get_opcodes() if step[0] != "equal"]
            places[f"{prefix}.{name}"] = Place(
                change=difference(f"{prefix}.{name}", original, changed),
                module=module,
                function=range(first, first + len(original)),
                changed=range(first + steps[0][1], first + max(steps[-1][2], steps[0][1] + 1)),
            )
    return places


def read_functions(text: str) -> dict[str, tuple[int, list[str]]]:
    """First line and lines, without the name, of each function, the originals and the changed."""
    lines, functions = text.split("\n"), {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            body = lines[node.lineno - 1 : node.end_lineno]
            functions[node.name] = (
                node.lineno,
                [line.strip().replace(node.name, "") for line in body],
            )
    return functions


def difference(name: str, original: list[str], changed: list[str]) -> Change:
    """Lines in which a changed function differs from the original."""
    steps = list(difflib.unified_diff(original, changed, lineterm="", n=0))[2:]
    parts = [[line[1:] for line in steps if line.startswith(sign)] for sign in "-+"]
    function = re.sub(r"\.x[_ǁ]", ".", re.sub(r"__mutmut_\d+$", "", name))
    return Change(function.replace("ǁ", "."), *(" ".join(part) for part in parts))


class Trials:
    """A plugin of pytest that runs all tests once, then for each change those of its function.

    A change is tried in a process that is forked where the tests were collected and run, and ends
    at the first test that fails: no interpreter is started, nothing is imported or collected again.
    """

    def __init__(self, places: dict[str, Place]) -> None:
        self.places = places
        self.outcomes: dict[str, str] = {}
        self.seconds: list[float] = []  # of each test, of its processor

    @pytest.hookimpl(trylast=True)
    def pytest_sessionstart(self) -> None:
        """Let Hypothesis look for no smaller example: that a test fails is enough."""
        from hypothesis import Phase, settings  # pytest has to see the first import of it

        phases = [Phase.explicit, Phase.reuse, Phase.generate, Phase.target]
        settings.register_profile("changes", settings(), phases=phases)
        settings.load_profile("changes")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Run all tests, then try each change."""
        if session.testsfailed:
            return None  # of the collection: pytest says so
        reached = self.run_unchanged(session)
        gc.freeze()
        killers: dict[str, list[int]] = defaultdict(list)
        for name, place in self.places.items():
            lines = reached[place.module]
            tests = {test for line in place.function for test in lines.get(line, ())}
            near = {test for line in place.changed for test in lines.get(line, ())}
            # First those that noticed another change of the function, the last of them first; then
            # the quickest that run the changed lines; then the others in order, as fixtures last.
            known = killers[place.change.function]
            order = [test for test in reversed(known) if test in tests]
            order += sorted(near.difference(order), key=self.seconds.__getitem__)[:10]
            order += sorted(tests.difference(order))
            self.outcomes[name], last = self.try_change(session, name, order)
            if self.outcomes[name] == KILLED:
                known[:] = [test for test in known if test != last] + [last]
        return True

    def run_unchanged(self, session: pytest.Session) -> dict[str, dict[int, list[int]]]:
        """Run the tests without a change; return which of them run each line of each module."""
        files = {place.module: os.path.abspath(place.module) for place in self.places.values()}
        coverage = Coverage(data_file=None, include=list(files.values()))
        set_mutant_under_test("")
        coverage.start()
        for number, (item, following) in enumerate(pairwise([*session.items, None])):
            coverage.switch_context(str(number))
            begun = sum(os.times()[:4])
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            self.seconds.append(sum(os.times()[:4]) - begun)
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
        coverage.stop()
        data = coverage.get_data()
        return {
            module: {
                line: [int(number) for number in numbers if number]
                for line, numbers in data.contexts_by_lineno(file).items()
            }
            for module, file in files.items()
        }

    def try_change(self, session: pytest.Session, name: str, order: list[int]) -> tuple[str, int]:
        """Run tests of a change in a process of its own; return the outcome and the last test."""
        if not order:
            return "no tests", -1
        folder = Path(tempfile.mkdtemp())
        shared = mmap.mmap(-1, 8)  # which of them is run
        child = os.fork()
        if child == 0:
            code = 3
            try:
                os.setpgid(0, 0)
                set_mutant_under_test(name)
                # Folders of tests are removed after each change.
                session.config._tmp_path_factory._basetemp = folder
                items = [session.items[test] for test in order]
                for number, (item, following) in enumerate(pairwise([*items, None])):
                    shared[:] = number.to_bytes(8, "big")
                    item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                    if session.shouldfail:
                        break
                code = 1 if session.shouldfail else 0
            finally:
                os._exit(code)
        late = not self.ends_in_time(child, shared, order)
        if late:
            os.kill(child, signal.SIGKILL)
        code = os.waitpid(child, 0)[1]
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # what a test has left running
        shutil.rmtree(folder, ignore_errors=True)
        last = order[int.from_bytes(shared[:], "big")]
        return CLOCK if late else KILLED if code else "survived", last

    def ends_in_time(self, child: int, shared: mmap.mmap, order: list[int]) -> bool:
        """Wait for a process that runs tests, as long as tests without a loop may take.

        That is a multiple of their processor time without a change, of all together and of each,
        so that a busy machine changes no outcome; and a minute in which the process uses none.
        """
        ended = os.pidfd_open(child)
        limit = 3 * (1 + sum(self.seconds[test] for test in order))
        running, limit_of_one, used, begun = -1, limit, 0.0, time.monotonic()
        try:
            while not select.select([ended], [], [], 0.2)[0]:
                if (now := processor_seconds(child)) > used:
                    used, begun = now, time.monotonic()
                if (number := int.from_bytes(shared[:], "big")) != running:
                    running = number
                    limit_of_one = used + 10 * (1 + self.seconds[order[number]])
                if used > min(limit, limit_of_one) or time.monotonic() > begun + 60:
                    return False
        finally:
            os.close(ended)
        return True


def processor_seconds(process: int) -> float:
    """Processor time of a process and of its children that have ended."""
    fields = Path(f"/proc/{process}/stat").read_text("utf-8").rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


class NotTriedError(Exception):
    """The tests of a group fail without a change, or the changes cannot be made."""


@dataclass(frozen=True)
class GroupResult:
    """Outcomes of the changes of a group."""

    number: int
    alive: list[Change]  # no test noticed them
    late: list[Change]  # the clock noticed them
    left_out: set[str]  # functions of other shares


def run_group(group: str, share: str) -> GroupResult:
    """Make every change of a group and run its tests, in a copy of the project."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder, "psd")
        copy_project(work)
        ran = subprocess.run(
            [sys.executable, "tests/mutation.py", HERE, group, share],
            cwd=work,
            env=os.environ | {"TMPDIR": folder},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        results = work / RESULTS
        if not results.exists():
            raise NotTriedError(f"{group}: the changes could not be tried\n{ran.stdout[-5000:]}")
        left_out, rows = json.loads(results.read_text("utf-8"))
        tried = [(how, Change(*change)) for _, how, *change in rows]
        return GroupResult(
            number=len(tried),
            alive=[change for outcome, change in tried if outcome not in (KILLED, CLOCK)],
            late=[change for outcome, change in tried if outcome == CLOCK],
            left_out=set(left_out),
        )


# The word that asks for the changes of a group in this folder, and the file of their outcomes.
HERE, RESULTS = "--here", "outcomes.json"


def try_here(group: str, share: str) -> int:
    """Make the changes of a group in this folder, which is a copy; run its tests for a share."""
    plan = PLAN["groups"][group]
    sys.path.insert(0, os.getcwd())
    places = make_changes(plan["mutate"])
    # Whole functions, since survivors are listed by function.
    functions = list(dict.fromkeys(place.change.function for place in places.values()))
    first, step = map(int, share.split("/"))
    chosen = set(functions[first % step :: step])
    trials = Trials({name: at for name, at in places.items() if at.change.function in chosen})
    # Both tiers, and no further test after one that fails.
    options = [
        "-x",
        "-q",
        "--tb=native",
        "-p",
        "no:cacheprovider",
        "-m",
        "not nightly and not spark",
        # Its threads are gone after a fork: tests of it wait for ever, and would notice any change.
        "-k",
        "not polars",
    ]
    # A small group may have no function of a share.
    code = pytest.main([*options, *plan["tests"]], plugins=[trials]) if chosen else 0
    if code == 0:
        rows = [
            (name, outcome, *astuple(trials.places[name].change))
            for name, outcome in trials.outcomes.items()
        ]
        left_out = [function for function in functions if function not in chosen]
        Path(RESULTS).write_text(json.dumps([left_out, rows]), "utf-8")
    return int(code)


def listed_equivalents(group: str) -> Counter[tuple[str, str]]:
    """Number of listed changes by function and operator, for the modules of a group."""
    modules = [
        name.removesuffix(".py").replace("/", ".") for name in PLAN["groups"][group]["mutate"]
    ]
    modules = [name.removesuffix(".__init__") for name in modules]
    return Counter(
        {
            (entry["function"], entry["operator"]): entry.get("times", 1)
            for entry in PLAN.get("equivalent", [])
            if any(entry["function"].startswith(f"{name}.") for name in modules)
        }
    )


def try_group(group: str, share: str) -> tuple[GroupResult | NotTriedError, float]:
    """Run a share of a group; also return its seconds."""
    started = time.monotonic()
    try:
        result: GroupResult | NotTriedError = run_group(group, share)
    except NotTriedError as error:
        result = error
    return result, time.monotonic() - started


def report_group(group: str, result: GroupResult) -> tuple[int, int]:
    """Print what is left to do in a group; return the equivalent changes and those to look at."""
    listed = Counter(
        {
            key: times
            for key, times in listed_equivalents(group).items()
            if key[0] not in result.left_out
        }
    )
    alive = Counter((change.function, change.operator) for change in result.alive)
    late = Counter((change.function, change.operator) for change in result.late)
    left, gone = alive - listed, listed - (alive + late)
    equivalent = listed.total() - gone.total()
    noticed = result.number - equivalent - left.total()
    print(f"{group}: {result.number} changes, {noticed} noticed, {equivalent} equivalent")
    for change in result.late:
        print(f"  noticed by the clock alone: {change}")
    for key, number in left.items():
        print(f"  {number} more than listed survive: {', '.join(key)}")
        for change in result.alive:
            if (change.function, change.operator) == key:
                print(f"    - {change.before}\n    + {change.after}")
    for key, number in gone.items():
        print(f"  {number} fewer than listed survive: {', '.join(key)}")
    return equivalent, left.total() + gone.total()


def main(groups: list[str]) -> int:
    """Run groups side by side; print figures and what is left to do."""
    if groups[:1] == [HERE]:
        return try_here(*groups[1:])
    share = groups.pop(0) if groups and "/" in groups[0] else "0/1"
    groups = groups or list(PLAN["groups"])
    wrong = total = equivalents = 0
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        outcomes = pool.map(try_group, groups, [share] * len(groups))
        for group, (result, seconds) in zip(groups, outcomes, strict=True):
            if isinstance(result, NotTriedError):
                print(result, flush=True)
                wrong += 1
                continue
            equivalent, to_look_at = report_group(group, result)
            print(f"  in {seconds:.0f} s", flush=True)
            wrong += to_look_at
            total, equivalents = total + result.number, equivalents + equivalent
    print(f"in all: {total:,} changes, {equivalents} equivalent, {wrong} to look at")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
