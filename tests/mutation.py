"""Mutation testing: each guarding module is changed in one place at a time, and tests must fail.

Run as ``python tests/mutation.py [GROUP]...``, with the extra ``mutation``; `mutation.toml` says
which modules and tests, and which changes have no effect, by function and operator. It ends with 1
if more changes of an operator survive in a function than are listed there, or fewer. Messages are
not changed, nor are the examples that mechanisms give to tests.
"""

import ast
import difflib
import json
import keyword
import os
import re
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]
PLAN = tomllib.loads((TOP / "tests" / "mutation.toml").read_text(encoding="utf-8"))
# Outcomes of a change that tests noticed; the clock notices a loop without an end.
NOTICED = ("killed", "timeout", "caught by type check", "suspicious", "segfault")
CLOCK = "timeout"
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


def copy_project(group: str, work: Path) -> None:
    """Copy the files under version control, and write the settings of a group."""
    names = subprocess.check_output(["git", "ls-files", "-z"], cwd=TOP, text=True).split("\0")
    for name in filter(None, names):
        target = work / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (TOP / name).exists():
            target.write_bytes((TOP / name).read_bytes())
    (work / "cli").rename(work / "psd_cli")  # the name it is installed under
    plan = PLAN["groups"][group]
    for module in plan["mutate"]:
        file = work / module
        text = EXAMPLES.sub(r"\1  # pragma: no mutate block", file.read_text("utf-8"))
        file.write_text(undecorate(text), "utf-8")
    settings = f"[tool.mutmut]\nonly_mutate = {json.dumps(plan['mutate'])}\n"
    settings += f"pytest_add_cli_args_test_selection = {json.dumps(plan['tests'])}\n"
    file = work / "pyproject.toml"
    file.write_text(file.read_text("utf-8").replace("[tool.mutmut]\n", settings), "utf-8")


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


def mutmut(work: Path, *arguments: str) -> str:
    """Run a command of mutmut; return its output."""
    command = [str(Path(sys.executable).with_name("mutmut")), *arguments]
    return subprocess.run(command, cwd=work, capture_output=True, text=True, check=False).stdout


def outcomes(work: Path) -> dict[str, str]:
    """Outcome of each change, by its name."""
    lines = mutmut(work, "results", "--all", "true").splitlines()
    return dict(line.strip().split(": ", 1) for line in lines if "__mutmut_" in line)


def read_changes(work: Path, names: list[str]) -> list[Change]:
    """Read changes by the names that mutmut gives them, from the modules that it writes."""
    modules = {name.rpartition(".")[0] for name in names}
    functions = {module: read_functions(work, module) for module in modules}
    return [difference(functions[name.rpartition(".")[0]], name) for name in names]


def read_functions(work: Path, module: str) -> dict[str, list[str]]:
    """Lines of the body of each function of a module, the original and the changed ones."""
    stem = work / "mutants" / module.replace(".", "/")
    file = stem.with_suffix(".py") if stem.with_suffix(".py").exists() else stem / "__init__.py"
    text = file.read_text("utf-8")
    lines, nodes = text.split("\n"), ast.walk(ast.parse(text))
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
    return {
        node.name: [
            line.strip().replace(node.name, "") for line in lines[node.lineno - 1 : node.end_lineno]
        ]
        for node in functions
    }


def difference(functions: dict[str, list[str]], name: str) -> Change:
    """Lines in which a changed function differs from the original."""
    key = name.rpartition(".")[2]
    original, number = re.sub(r"\d+$", "orig", key), re.compile(r"__mutmut_\d+$")
    steps = list(difflib.unified_diff(functions[original], functions[key], lineterm="", n=0))[2:]
    parts = [[line[1:] for line in steps if line.startswith(sign)] for sign in "-+"]
    function = re.sub(r"\.x[_ǁ]", ".", number.sub("", name))
    return Change(function.replace("ǁ", "."), *(" ".join(part) for part in parts))


class NotTriedError(Exception):
    """The tests of a group fail without a change, or the changes cannot be made."""


@dataclass(frozen=True)
class GroupResult:
    """Outcomes of the changes of a group."""

    number: int
    alive: list[Change]  # no test noticed them
    late: list[Change]  # the clock noticed them, which may also happen on a busy machine


def run_group(group: str) -> GroupResult:
    """Make every change of a group and run its tests."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        copy_project(group, work)
        output = mutmut(work, "run", "--max-children", "1")
        by_name = outcomes(work)
        if not by_name or "not checked" in by_name.values():
            raise NotTriedError(f"{group}: the changes could not be tried\n{output[-5000:]}")
        alive = [name for name, outcome in by_name.items() if outcome not in NOTICED]
        late = [name for name, outcome in by_name.items() if outcome == CLOCK]
        return GroupResult(
            number=len(by_name),
            alive=read_changes(work, alive),
            late=read_changes(work, late),
        )


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


def try_group(group: str) -> tuple[GroupResult | NotTriedError, float]:
    """Run a group; also return its seconds."""
    started = time.monotonic()
    try:
        result: GroupResult | NotTriedError = run_group(group)
    except NotTriedError as error:
        result = error
    return result, time.monotonic() - started


def report_group(group: str, result: GroupResult) -> tuple[int, int]:
    """Print what is left to do in a group; return the equivalent changes and those to look at."""
    listed = listed_equivalents(group)
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
    groups = groups or list(PLAN["groups"])
    wrong = total = equivalents = 0
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for group, (result, seconds) in zip(groups, pool.map(try_group, groups), strict=True):
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
