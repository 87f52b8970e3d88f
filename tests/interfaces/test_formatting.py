"""Times and counts as people read them."""

import pytest

from pgtrickle.interfaces.cli import formatting


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "–"), (-1, "0.0 s"), (0.42, "0.4 s"), (12, "12 s"), (119, "119 s"), (180, "3 min"),
     (7200, "2 h"), (172800, "2 d")],
)  # fmt: skip
def test_an_age_has_one_unit(seconds, text):
    assert formatting.age(seconds) == text


@pytest.mark.parametrize(
    ("value", "text"), [(None, "–"), (0.84, "0.8 ms"), (142.4, "142 ms"), (12400, "12.4 s")]
)
def test_milliseconds_have_as_many_digits_as_matter(value, text):
    assert formatting.milliseconds(value) == text


def test_thousands_are_set_apart():
    assert (formatting.count(1234567), formatting.count(None)) == ("1,234,567", "–")
