"""Mutation testing: each guarding module is changed in one place at a time, and tests must fail.

Run as ``python tests/mutation.py [GROUP]...``, with the extra ``mutation``; `mutation.toml` says
which modules and tests, and which changes have no effect, by function and operator. It ends with 1
if more changes of an operator survive in a function than are listed there, or fewer. Messages are
not changed.
"""

import ast
import difflib
import json
import keyword
import re
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]
PLAN = tomllib.loads((TOP / "tests" / "mutation.toml").read_text(encoding="utf-8"))
# What tells that a change was noticed; a loop without an end is noticed by the clock.
NOTICED = ("killed", "timeout", "caught by type check", "suspicious", "segfault")
CLOCK = "timeout"


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
        """What became what, without the names: a name, a number or a text is one like another.

        Examples
        --------
        >>> Change("f", "if size > limit + 1:", "if size >= limit + 1:").operator
        '> -> >='
        >>> Change("f", "part(whole, axis=0)", "part(whole, axis=None)").operator
        'number -> None'
        """
        before, after = TOKEN.findall(self.before), TOKEN.findall(self.after)
        steps = difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
        return "; ".join(
            f"{spelled(before[a:b])} -> {spelled(after[c:d])}"
            for tag, a, b, c, d in steps
            if tag != "equal"
        )

    def __str__(self) -> str:
        return f"{self.function}: {self.operator}\n    - {self.before}\n    + {self.after}"


def spelled(tokens: list[str]) -> str:
    """Tokens by their kinds."""
    return " ".join(map(kind, tokens)) or "nothing"


def kind(token: str) -> str:
    """A token, or the kind of token that it is where any other of its kind would do."""
    if keyword.iskeyword(token):
        return token
    if token[-1] in "\"'":
        return "text"
    if token[0].isdigit():
        return "number"
    return "name" if token[0].isalpha() or token[0] == "_" else token


def copied(group: str, work: Path) -> None:
    """The files under version control, and the settings of a group."""
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
        file.write_text(bare(file.read_text("utf-8")), "utf-8")
    settings = f"[tool.mutmut]\nonly_mutate = {json.dumps(plan['mutate'])}\n"
    settings += f"pytest_add_cli_args_test_selection = {json.dumps(plan['tests'])}\n"
    file = work / "pyproject.toml"
    file.write_text(file.read_text("utf-8").replace("[tool.mutmut]\n", settings), "utf-8")


# What makes something else of a function, and what keeps its results.
_WRAPPERS, _CACHES = ("property", "cached_property", "contextmanager"), ("cache", "lru_cache")

# A cache for each change, whose name is in the environment: what was kept before it hides it.
_KEEP = """(lambda made, kept: lambda *given: kept[key]
    if (key := (__import__("os").environ.get("MUTANT_UNDER_TEST"), given)) in kept
    else kept.setdefault(key, made(*given)))({name}, {{}})"""


def bare(text: str) -> str:
    """The same module without decorators of functions, since mutmut leaves decorated ones out."""
    lines = text.split("\n")
    found = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    for node in sorted(found, key=lambda node: -node.lineno):
        for decorator in node.decorator_list:
            kind = ast.unparse(decorator).split("(")[0]
            if kind in ("staticmethod", "classmethod"):
                continue
            if kind not in _WRAPPERS + _CACHES:
                raise SystemExit(f"{node.name} is decorated by {kind}, so it would not be changed")
            wrapped = (_KEEP if kind in _CACHES else kind + "({name})").format(name=node.name)
            again = f"{' ' * node.col_offset}{node.name} = {wrapped}"
            lines.insert(node.end_lineno or node.lineno, again)
            del lines[decorator.lineno - 1]
    return "\n".join(lines)


def mutmut(work: Path, *arguments: str) -> str:
    """What a command of mutmut prints."""
    command = [str(Path(sys.executable).with_name("mutmut")), *arguments]
    return subprocess.run(command, cwd=work, capture_output=True, text=True, check=False).stdout


def results(work: Path) -> dict[str, str]:
    """Outcome of each change, by its name."""
    lines = mutmut(work, "results", "--all", "true").splitlines()
    return dict(line.strip().split(": ", 1) for line in lines if "__mutmut_" in line)


def change_of(work: Path, name: str) -> Change:
    """What a change does, in words that outlast its number."""
    lines = [line for line in mutmut(work, "show", name).splitlines() if line[:3] not in _HEADS]
    parts = [[line[1:].strip() for line in lines if line.startswith(sign)] for sign in "-+"]
    function = re.sub(r"\.x[_ǁ]", ".", re.sub(r"__mutmut_\d+$", "", name))
    return Change(function.replace("ǁ", "."), *(" ".join(part) for part in parts))


_HEADS = ("---", "+++")


@dataclass(frozen=True)
class Tried:
    """What became of the changes of a group."""

    number: int
    alive: list[Change]  # no test noticed
    late: list[Change]  # the clock noticed, which a busy machine makes go off too


def tried(group: str) -> Tried:
    """Make every change of a group and run its tests."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        copied(group, work)
        said = mutmut(work, "run", "--max-children", "1")
        found = results(work)
        if not found or "not checked" in found.values():
            raise SystemExit(f"{group}: the changes could not be tried\n{said[-5000:]}")
        alive = [name for name, outcome in found.items() if outcome not in NOTICED]
        late = [name for name, outcome in found.items() if outcome == CLOCK]
        return Tried(
            number=len(found),
            alive=[change_of(work, name) for name in alive],
            late=[change_of(work, name) for name in late],
        )


def listed(group: str) -> Counter[tuple[str, str]]:
    """How many changes of an operator have no effect in a function, for the modules of a group."""
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


def main(groups: list[str]) -> int:
    """Run groups; print figures and what is left to do."""
    wrong, counted = 0, [0, 0]
    for group in groups or PLAN["groups"]:
        found, known = tried(group), listed(group)
        alive = Counter((change.function, change.operator) for change in found.alive)
        late = Counter((change.function, change.operator) for change in found.late)
        left, gone = alive - known, known - (alive + late)
        equivalent = known.total() - gone.total()
        noticed = found.number - equivalent - left.total()
        print(f"{group}: {found.number} changes, {noticed} noticed, {equivalent} equivalent")
        for change in found.late:
            print(f"  noticed by the clock alone: {change}")
        for key, number in left.items():
            print(f"  {number} more than listed survive: {': '.join(key)}")
            for change in found.alive:
                if (change.function, change.operator) == key:
                    print(f"    - {change.before}\n    + {change.after}")
        for key, number in gone.items():
            print(f"  {number} fewer than listed survive: {': '.join(key)}")
        wrong += left.total() + gone.total()
        counted = [counted[0] + found.number, counted[1] + equivalent]
        sys.stdout.flush()
    print(f"in all: {counted[0]:,} changes, {counted[1]} equivalent, {wrong} to look at")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
