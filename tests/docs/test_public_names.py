"""Pages name what is public, and nothing else."""

import inspect
import re
from operator import attrgetter

import psd
from psd._apps import USES
from support.pages import DOCS, MADE, ROOT

MODULES = {name for name in psd.__all__ if name.islower() and not callable(getattr(psd, name))}
PUBLIC = {"psd", *(f"psd.{name}" for name in MODULES), *(f"psd.apps.{name}" for name in USES)}
PAGES = sorted(
    [ROOT / "README.md"]
    + [page for page in (ROOT / "docs").rglob("*.md") if "contributing" not in page.parts]
)


def test_pages_import_public_modules_and_name_what_exists(subtests):
    for page in PAGES:
        blocks = re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.M | re.S)
        code = "\n".join(blocks)
        with subtests.test(str(page.relative_to(ROOT))):
            assert set(re.findall(r"^\s*(?:from|import) +(psd[\w.]*)", code, re.M)) <= PUBLIC
            for name in re.findall(r"^\s*from psd import (.*)$", code, re.M):
                assert {part.strip() for part in name.split(",")} <= set(psd.__all__)
            for dotted in set(re.findall(r"\bpsd\.[A-Za-z_.]*[A-Za-z_]", code)) - {"psd.parquet"}:
                assert attrgetter(dotted.partition(".")[2])(psd) is not None


def test_every_public_name_and_member_is_documented_and_has_an_example(subtests):
    names = re.findall(r"^   psd\.([\w.]+)$", MADE[DOCS / "reference" / "api.md"](), re.M)
    assert len(names) > 100
    for name in names:
        value = attrgetter(name)(psd)
        with subtests.test(name):
            is_error = inspect.isclass(value) and issubclass(value, BaseException)
            assert is_error or ">>> " in inspect.getdoc(value)
            for member, of_class in vars(value).items() if inspect.isclass(value) else ():
                is_documented = inspect.isroutine(of_class) or isinstance(of_class, property)
                if is_documented and not member.startswith("_"):
                    assert inspect.getdoc(getattr(value, member)), member
