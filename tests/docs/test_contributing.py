"""What CONTRIBUTING, the long runs and the mutations name exists, and nothing is left out."""

import re
import tomllib

from psd._apps import USES
from support.pages import ROOT

PAGE = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
NIGHTLY = (ROOT / ".ci" / "nightly").read_text("utf-8")
PICTURE = PAGE.partition("```text\n")[2].partition("```")[0]


def drawn():
    """Paths of the picture."""
    folder, found = "", []
    for line in PICTURE.splitlines():
        if top := re.match(r"^ {10}([a-z][\w/]+/) ", line):
            folder = top[1]
            found.append(folder)
        elif inside := re.search(r"[├└]── ([\w/.]+)", line):
            found.append(folder + inside[1])
    return found


def test_the_picture_has_each_package_and_nothing_else():
    paths = drawn()
    assert len(paths) == len({*paths})
    assert [path for path in paths if not (ROOT / path).exists()] == []
    packages = {f"psd/{path.name}/" for path in (ROOT / "psd").iterdir() if path.is_dir()}
    packages |= {f"psd/apps/{app}/" for app in USES}
    assert packages - {"psd/__pycache__/"} <= {*paths}
    tests = re.search(r"^ +tests/  .*\n.*", PICTURE, re.M)[0]
    folders = {f"{path.name}/" for path in (ROOT / "tests").glob("[!.]*") if path.is_dir()}
    assert set(re.findall(r"\w+/", tests)) - {"tests/"} == folders - {"apps/", "__pycache__/"}


def steps():
    """Folders of the tests that each long run has, and those that it leaves out."""
    found = re.findall(r"^    (\w+)\) long_tests (.*) ;;$", NIGHTLY, re.M)
    return {
        name: (set(re.findall(r"(?<!=)\b(tests/\S+)", line)), re.findall(r"--ignore=(\S+)", line))
        for name, line in found
    }


def test_each_long_test_is_run_by_one_step():
    marked = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "tests").rglob("*.py")
        if re.search(r"\bmark\.nightly\b", path.read_text("utf-8"))
    } - {"tests/docs/test_contributing.py"}
    assert len(marked) > 9
    run = {name: set() for name in steps()}
    for name, (folders, ignored) in steps().items():
        for path in marked:
            if path.startswith(tuple(folders)) and not path.startswith(tuple(ignored or "-")):
                run[name].add(path)
    assert all(run.values())
    assert sorted(path for found in run.values() for path in found) == sorted(marked)


def test_steps_of_changes_and_groups_of_mutations_exist():
    rows = re.findall(r"^\| (`[^|]+) \| (?:also )?`([a-z_=, ]+)` \|$", PAGE, re.M)
    assert len(rows) > 8
    known = set(re.findall(r"^    (\w+)\)", NIGHTLY, re.M)) | {*re.findall(r"\bbench_\w+", NIGHTLY)}
    known |= {path.stem for path in (ROOT / "lab").glob("*.py")}
    groups = plan()["groups"]
    for _, words in rows:
        for step in words.split():
            name, _, chosen = step.partition("=")
            assert name in known
            assert {*filter(None, chosen.split(","))} <= groups.keys()


def plan():
    """Groups of mutations and their files."""
    return tomllib.loads((ROOT / "tests" / "mutation.toml").read_text("utf-8"))


def test_files_and_functions_of_mutations_exist():
    files = set()
    for group in plan()["groups"].values():
        files |= {name.partition("::")[0] for name in (*group["mutate"], *group["tests"])}
    assert [name for name in files if not (ROOT / name).is_file()] == []
    modules = {name.removesuffix(".py").replace("/", ".") for name in files}
    for change in plan()["equivalent"]:
        function = change["function"]
        assert any(function.startswith(f"{module}.") for module in modules), function
