"""Strict JSON: every text that two readers could read differently is refused."""

import pytest

from psd._util.json_toml import MAX_HEADER, strict_json
from psd.errors import ReleaseFormatError

TEXTS = [
    (b"{}", {}),
    (b' {"a": [1, 2.5, null, true]}\n', {"a": [1, 2.5, None, True]}),
    ('{"name": "Zürich"}'.encode(), {"name": "Zürich"}),
    (b'{"a": {"x": 1}, "b": {"x": 2}}', {"a": {"x": 1}, "b": {"x": 2}}),
]
OTHERS = [
    b"", b'{"a": 1', b'{"a": 1} {}', b'{"a": 1, "a": 1}', b'[{"b": {"a": 1, "\\u0061": 2}}]',
    b'{"a": NaN}', b"[Infinity]", b"[-Infinity]", b"\xff\xfe\x00", b"[" * 100_000,
]  # fmt: skip


def test_json_with_one_reading_is_parsed_and_other_text_refused(subtests):
    assert [strict_json(raw) for raw, _ in TEXTS] == [value for _, value in TEXTS]
    assert strict_json(b'"ab"', limit=4) == "ab"
    with pytest.raises(ReleaseFormatError, match="too long"):
        strict_json(b'"ab"', limit=3)
    with pytest.raises(ReleaseFormatError, match="too long"):
        strict_json(b" " * MAX_HEADER + b"1")
    for raw in OTHERS:
        with subtests.test(raw[:50]):
            with pytest.raises(ReleaseFormatError, match="not strict JSON") as refusal:
                strict_json(raw)
            assert refusal.value.__cause__ is None
