"""psd methods: the registry, as people read it."""

import dataclasses

from psd.decompositions import method_class, methods
from support.cli_runner import passes


def test_each_method_with_its_parameters(subtests):
    text = passes("methods")
    for name in methods():
        with subtests.test(name):
            kind = method_class(name)
            assert f"\n{name} " in text
            assert kind.paper in text
            mine = text[text.index(f"\n{name} ") :].splitlines()
            for field in dataclasses.fields(kind):
                line = next(line for line in mine if line.split()[:1] == [field.name])
                assert field.metadata["doc"] in line
                assert field.default is None or str(field.default) in line
