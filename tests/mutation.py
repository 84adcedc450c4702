"""Mutation testing: each guarding module is changed in one place at a time, and tests must fail.

Run as ``python tests/mutation.py [GROUP]...``, with the extra ``mutation``; `mutation.toml` says
which modules and tests. It ends with 1 if a change survives that is not listed as equivalent, or
if one is listed that did not survive. Messages are not changed.
"""

import ast
import json
import re
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]
PLAN = tomllib.loads((TOP / "tests" / "mutation.toml").read_text(encoding="utf-8"))
# What tells that a change was noticed; a loop without an end is noticed by the clock.
NOTICED = ("killed", "timeout", "caught by type check", "suspicious", "segfault")
CLOCK = "timeout"


@dataclass(frozen=True)
class Change:
    """One change of a function: the lines that went and those that came."""

    function: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.function}\n    - {self.before}\n    + {self.after}"


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


def main(groups: list[str]) -> int:
    """Run groups; print figures and what is left to do."""
    wrong, counted = 0, [0, 0]
    listed = {
        Change(entry["function"], entry["before"], entry["after"]): entry["group"]
        for entry in PLAN.get("equivalent", [])
    }
    for group in groups or PLAN["groups"]:
        found = tried(group)
        known = {change for change, of in listed.items() if of == group}
        left, gone = [c for c in found.alive if c not in known], known - {*found.alive, *found.late}
        noticed = found.number - len(known) - len(left)
        print(f"{group}: {found.number} changes, {noticed} noticed, {len(known)} equivalent")
        for change in found.late:
            print(f"  noticed by the clock alone: {change}")
        for change in left:
            print(f"  survives: {change}")
        for change in gone:
            print(f"  listed as equivalent, and noticed or not made: {change}")
        wrong += len(left) + len(gone)
        counted = [counted[0] + found.number, counted[1] + len(known)]
        sys.stdout.flush()
    print(f"in all: {counted[0]:,} changes, {counted[1]} equivalent, {wrong} to look at")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
