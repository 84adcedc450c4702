"""What the noise is made of: no other randomness and no float, by reading the source."""

import ast
from pathlib import Path

import pytest

import psd.mechanisms.random_words

FOLDER = Path(psd.mechanisms.random_words.__file__).parent
BANNED_MODULES = {"random", "secrets", "uuid", "time", "cmath", "scipy"}
BANNED_NAMES = {
    *("random", "default_rng", "RandomState", "Generator"),
    *("float", "float16", "float32", "float64", "longdouble", "complex", "Decimal"),
    *("exp", "expm1", "log", "log1p", "log2", "sqrt", "true_divide", "divide", "linspace"),
}


class _Draws(ast.NodeTransformer):
    """Leaves out the log-probability of an answer, which audits compute and no draw uses."""

    def visit_FunctionDef(self, node):
        return None if node.name == "log_probability" else self.generic_visit(node)


def offences(source):
    """Lines and words of the source that could bring in floats or another randomness."""
    for node in ast.walk(_Draws().visit(ast.parse(source))):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Import):
            yield from (
                (line, a.name) for a in node.names if a.name.split(".")[0] in BANNED_MODULES
            )
        elif isinstance(node, ast.ImportFrom):
            names = {*(node.module or "").split("."), *(a.name for a in node.names)}
            yield from ((line, name) for name in names & (BANNED_MODULES | BANNED_NAMES))
        elif isinstance(node, ast.Constant) and isinstance(node.value, float | complex):
            yield line, repr(node.value)
        elif isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Div):
            yield line, "/"
        elif isinstance(node, ast.Name | ast.Attribute):
            name = node.id if isinstance(node, ast.Name) else node.attr
            if name in BANNED_NAMES:
                yield line, name


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.name)
def test_no_float_and_no_other_randomness(path):
    assert list(offences(path.read_text())) == []


@pytest.mark.parametrize(
    "source",
    [
        "import random",
        "import numpy.random as r; import random.x",
        "from numpy import random",
        "from numpy.random import default_rng",
        "np.random.laplace()",
        "1 / 3",
        "x /= 2",
        "0.5",
        "float(x)",
        "x.astype(np.float64)",
        "math.exp(-1)",
        "def sample(self): return self.true / 2",
    ],
)
def test_the_reading_sees_an_offence(source):
    assert list(offences(source))


def test_one_place_asks_the_operating_system():
    users = [path.name for path in FOLDER.glob("*.py") if "os.urandom(" in path.read_text()]
    assert users == ["random_words.py"]
