"""What .ci, .github and CITATION.cff name exists; the lock allows what pyproject.toml asks for."""

import re
import runpy
import tomllib

from packaging.requirements import Requirement

from psd.version import __version__
from support.pages import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
NIGHTLY = (ROOT / ".ci" / "nightly").read_text("utf-8")


def test_the_lock_has_a_version_that_each_requirement_allows():
    text = (ROOT / ".ci" / "lock.txt").read_text("utf-8")
    locked = dict(re.findall(r"^([\w.-]+)==(\S+)$", text, re.M))
    extras = re.findall(r"--extra (\w+)", text)
    assert {"test", "deep", "lint"} <= {*extras}
    stated = PROJECT["dependencies"] + [
        line for extra in extras for line in PROJECT["optional-dependencies"][extra]
    ]
    for requirement in map(Requirement, stated):
        assert requirement.specifier.contains(locked[requirement.name]), requirement


def test_workflows_call_what_is_there():
    for path in (ROOT / ".github" / "workflows").iterdir():
        commands = re.findall(r"run: (\.ci/\w+)(?: (\w+))?$", path.read_text("utf-8"), re.M)
        assert all((ROOT / command).is_file() for command, _ in commands)
        assert all(f"    {step}) " in NIGHTLY for _, step in commands if step)
    assert (ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8").count("run: .ci/run") == 1


def test_owned_paths_exist():
    lines = (ROOT / ".github" / "CODEOWNERS").read_text("utf-8").splitlines()
    paths = [line.split()[0] for line in lines if line.startswith("/")]
    assert {"/psd/mechanisms/", "/psd/curator/", "/psd/privacy/"} <= {*paths}
    assert [path for path in paths if not (ROOT / path[1:]).exists()] == []


def test_the_citation_states_this_version():
    text = (ROOT / "CITATION.cff").read_text("utf-8")
    stated = dict(re.findall(r"^([a-z-]+): ([^>\n].*)$", text, re.M))
    assert (stated["version"], stated["license"]) == (__version__, PROJECT["license"])


def test_subjects_of_commits():
    fault = runpy.run_path(str(ROOT / ".ci" / "check_subject.py"))["subject_fault"]
    for good in ("query: answer windows of slices", "publish, cli: name the bounds", "Revert x"):
        assert fault(good) is None
    assert fault(f"query: {'a' * 65}") is None
    assert fault(f"query: {'a' * 66}") == "the subject must have at most 72 characters, got 73"
    for bad in ("answer windows", "query: answer windows.", "Query: answer", "query:answer"):
        assert "must read `room: verb object`" in fault(bad)
