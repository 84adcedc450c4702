"""What psd does with wrong campaigns, reports and stores: the table of `bad_campaigns`."""

from pathlib import Path

import pytest

from robustness.bad_campaigns import CASES, prepare
from support.cli_runner import cli, files


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_each_case(tmp_path, monkeypatch, case):
    monkeypatch.chdir(tmp_path)
    prepare(case)
    before = files(tmp_path)
    outcome = cli("local", *case.args.split())
    assert outcome.code == case.code, outcome
    assert case.told in outcome.err
    if case.code:
        assert (outcome.out, outcome.err.count("\n")) == ("", 1)
        assert outcome.err.startswith("psd: error: ")
        assert files(tmp_path) == before
    elif case.args.startswith("collect"):
        assert outcome.out == "collected 2 reports into parts\n"
        assert outcome.err.count("\n") == bool(case.told)
        assert len(list(Path("parts").iterdir())) == 1
    else:
        assert outcome.out.startswith('{"psd-report":1,')
        assert outcome.err == ""
