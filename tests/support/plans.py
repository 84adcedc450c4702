"""Plans that are made in a moment: one method, one density and one run."""

from psd.apps.planning.plan import plan
from psd.apps.planning.population import square_domain


def quick(count=2_000, **arguments):
    """A plan of a square of 100 km2, at epsilon 1 unless it is said."""
    options = {"domain": square_domain(100.0), "methods": ["quadtree"], "density": ["uniform"]}
    return plan(count, **{**options, "epsilon": ["1"], "runs": 1, **arguments})
