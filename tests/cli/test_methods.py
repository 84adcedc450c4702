"""psd methods: the registry, as people read it."""

import dataclasses

import pytest

from psd.decompositions import method_class, methods
from support.cli_runner import fails, passes, process


@pytest.mark.parametrize("name", methods())
def test_each_method_with_its_parameters(name):
    text = passes("methods")
    kind = method_class(name)
    assert f"\n{name} " in text
    assert kind.paper in text
    mine = text[text.index(f"\n{name} ") :].splitlines()
    for field in dataclasses.fields(kind):
        line = next(line for line in mine if line.split()[:1] == [field.name])
        assert field.metadata["doc"] in line
        assert field.default is None or str(field.default) in line


def test_takes_nothing():
    fails(2, "methods", "grid")


def test_as_a_process():
    ended = process("methods")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == passes("methods")
