import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calculator.nesting import is_too_deep

JSON = st.recursive(
    st.none() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=12,
)


def depth(value: object) -> int:
    """Levels of lists and objects, from the definition."""
    if isinstance(value, dict):
        return 1 + max(map(depth, value.values()), default=0)
    return 1 + max(map(depth, value), default=0) if isinstance(value, list) else 0


@given(JSON, st.booleans())
@settings(max_examples=200, deadline=None, derandomize=True)
def test_the_depth_is_that_of_the_parsed_value(value: object, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    assert not is_too_deep(text, most=depth(value))
    assert depth(value) == 0 or is_too_deep(text, most=depth(value) - 1)


@pytest.mark.parametrize(
    "text",
    ["[" * 2_000_000, '{"a":' * 400_000, '"' + '\\"' * 1_000_000, '"' * 2_000_001, "[]" * 200_000],
    ids=["lists", "objects", "escaped quotes", "quotes", "flat"],
)
def test_a_hostile_text_is_judged_in_linear_time(text: str) -> None:
    began = time.process_time()
    is_too_deep(text)
    assert time.process_time() - began < 2  # quadratic time would be hours
