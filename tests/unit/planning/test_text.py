"""Words of a plan."""

from psd.planning.text import plan_sentences
from support.plans import quick


def test_words_name_the_least_size_from_which_on_all_is_good():
    found = quick(200_000, epsilons=["0.001", "5"], sizes=[0.1, 0.01, 0.0001])
    bad, good = plan_sentences(found)
    assert bad.startswith("at epsilon 0.001, quadtree: queries centred on people have a mean")
    assert "even at the largest size; at 10 km2 it is up to" in bad
    assert good.startswith("at epsilon 5, quadtree: queries centred on people have a mean")
    people = found.table[(found.table["epsilon"] == "5") & (found.table["centres"] == "on data")]
    fine = people.loc[people["mean_error"] <= 0.1, "size_km2"]
    assert f"cover {fine.min():.3g} km2" in good
