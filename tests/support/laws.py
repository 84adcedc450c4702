"""Laws that right ways have to keep, and that wrong ways have to break."""

from hypothesis import given
from hypothesis import strategies as st


def for_examples(settings_of, *strategies):
    """Make a law of a way and of an example a check of a way, by many examples."""

    def decorate(law):
        def check(way, *options):
            @settings_of(way)
            @given(st.tuples(*strategies))
            def checked(example):
                law(way, *options, *example)

            checked()

        check.__name__ = law.__name__
        return check

    return decorate
