"""Words of a plan."""

from psd.planning.plan import plan, square
from psd.planning.text import words

QUICK = {"domain": square(100.0), "methods": ["quadtree"], "densities": ["uniform"], "runs": 1}


def quick(count=2_000, **arguments):
    return plan(count, **({"epsilons": ["1"]} | QUICK | arguments))


def test_words_name_the_least_size_from_which_on_all_is_good():
    found = quick(200_000, epsilons=["0.001", "5"], sizes=[0.1, 0.01, 0.0001], methods=["quadtree"])
    bad, good = words(found)
    assert bad.startswith("at epsilon 0.001, quadtree: where people are, no size asked about")
    assert "at 10 km2 it is up to" in bad
    assert good.startswith("at epsilon 5, quadtree: where people are, queries of ")
    people = found.table[(found.table["epsilon"] == "5") & (found.table["centres"] == "on data")]
    fine = people.loc[people["mean_error"] <= 0.1, "size_km2"]
    assert f"of {fine.min():.3g} km2" in good
