"""Every claim of the page of the guarantee names the tests that show it, and these exist.

A claim is an item of a list; below it stands a list of its evidence: names of tests, or the reason
why there is none. Outside the lists only introductions stand.
"""

import ast
import re
from functools import cache

from support.pages import ROOT

PAGE = ROOT / "docs" / "privacy" / "guarantee.md"

ITEM = re.compile(r"^(?:- |\d+\. )")
EVIDENCE = re.compile(r"^ +- ")
TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)(?:\[([\w-]+)\])?`( \(nightly\))?")
NO_TEST = re.compile(r"No test: \w.{20,}\.")

# Introductions that claim nothing by themselves; the lists after them do.
INTRODUCTIONS = ("If builds were refused because of where", "What the person who builds sees:")

MOST_SENTENCES = 3


def claims(text):
    """Claims of the page, each with its evidence, and paragraphs that stand outside of lists."""
    _, _, body = text.partition("\n## ")
    found, outside, paragraph = [], [], []
    for line in f"## {body}\n".splitlines():
        if ITEM.match(line):
            paragraph = [ITEM.sub("", line)]
            found.append((paragraph, []))
        elif EVIDENCE.match(line):
            paragraph = [EVIDENCE.sub("", line)]
            found[-1][1].append(paragraph)
        elif line.startswith(" "):
            paragraph.append(line.strip())
        elif not line or line.startswith("#"):
            paragraph = []
        elif paragraph:
            paragraph.append(line)
        else:
            paragraph = [line]
            outside.append(paragraph)
    joined = [(" ".join(claim), [" ".join(one) for one in proof]) for claim, proof in found]
    return joined, [" ".join(lines) for lines in outside]


@cache
def nights_by_test(path):
    """Tests of a file by name, each with whether it runs at night only."""
    if not (ROOT / path).is_file():
        return {}
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    marks = (ast.unparse(node) for node in tree.body if isinstance(node, ast.Assign))
    whole_file = any(mark.startswith("pytestmark") and "nightly" in mark for mark in marks)
    return {
        node.name: whole_file or any("nightly" in ast.unparse(mark) for mark in node.decorator_list)
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def stands_beside(case, path):
    """Whether a case stands in a file of the folder of a test; tables of cases stand beside it."""
    texts = (file.read_text(encoding="utf-8") for file in (ROOT / path).parent.glob("*.py"))
    return any(f'"{case}"' in text for text in texts)


def faults(text):
    """What is wrong with a page, one sentence each."""
    listed, outside = claims(text)
    for paragraph in outside:
        if not paragraph.startswith(INTRODUCTIONS):
            yield f"stands outside of a list: {paragraph}"
    for claim, evidence in listed:
        if not evidence:
            yield f"names no test: {claim}"
        ends = re.findall(r"[.:](?= [A-Z`]|$)", re.sub(r"\*\*.*?\*\*", "", claim))
        if len(ends) > MOST_SENTENCES:
            yield f"has more than {MOST_SENTENCES} sentences: {claim}"
        for proof in evidence:
            yield from wrong_evidence(proof)


def wrong_evidence(proof):
    """What is wrong with a line of evidence."""
    if proof.startswith("No test"):
        if not NO_TEST.match(proof):
            yield f"gives no reason: {proof}"
        return
    match = TEST.fullmatch(proof)
    if match is None:
        yield f"is neither the name of a test nor a reason: {proof}"
        return
    path, name, case, nightly = match.groups()
    tests = nights_by_test(path)
    if name not in tests:
        yield f"is not a test: {proof}"
    elif case and not stands_beside(case, path):
        yield f"is not a case: {proof}"
    elif tests[name] != bool(nightly):
        yield f"runs {'at night' if tests[name] else 'in every run'}: {proof}"


def test_all_claims_are_seen():
    text = PAGE.read_text(encoding="utf-8")
    listed, _ = claims(text)
    assert len(listed) == len(re.findall(r"^(?:- |\d+\. )", text, re.M)) > 50
    assert sum(len(evidence) for _, evidence in listed) == len(re.findall(r"^ +- ", text, re.M))
    without = [claim for claim, evidence in listed if evidence[0].startswith("No test")]
    assert len(without) < len(listed) / 3
    assert list(faults(PAGE.read_text(encoding="utf-8"))) == []


HERE = "`tests/docs/test_guarantee.py::test_all_claims_are_seen`"
NIGHTLY = "`tests/docs/test_examples.py::test_examples_run`"


WRONG = [
    ("- A.", "names no test"),
    (f"- A.\n  - {HERE}\n- B.", "names no test: B."),
    ("- A.\n  - No test.", "gives no reason"),
    ("- A.\n  - No test: none.", "gives no reason"),
    ("- A.\n  - `tests/docs/test_guarantee.py::test_nothing`", "is not a test"),
    ("- A.\n  - `tests/docs/test_absent.py::test_nothing`", "is not a test"),
    ("- A.\n  - `tests/docs/test_guarantee.py::claims`", "neither"),
    (f"- A.\n  - see {HERE}", "neither"),
    ("- A.\n  - `tests/robustness/test_faults.py::test_fault[F14-mask]`", "is not a case"),
    (f"- A.\n  - {HERE} (nightly)", "runs in every run"),
    (f"- A.\n  - {NIGHTLY}", "runs at night"),
    (f"- A.\n  - {HERE}\n\nB is promised.", "outside of a list: B is promised."),
    (f"- A. It is.\n  They are. We are.\n  - {HERE}", "more than 3 sentences"),
]
SOUND = f"1. **A.** It is.\n   - {HERE}\n   - {NIGHTLY} (nightly)\n- B.\n  - No test: {'x' * 30}."


def test_faults_are_found():
    for items, words in WRONG:
        (fault,) = faults(f"# Page\n\nHere.\n\n## Claims\n\n{items}\n")
        assert words in fault
    assert list(faults(f"# Page\n\nHere.\n\n## Claims\n\n{SOUND}\n")) == []
