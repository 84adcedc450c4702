"""Builds in a kernel of Jupyter, with ipywidgets and where its import is blocked."""

import pytest
from jupyter_client.manager import start_new_kernel

pytestmark = pytest.mark.deep

BLOCK = "import sys; sys.modules['ipywidgets'] = None"
BUILD = """
import duckdb, psd
release = psd.build(PATH, domain=(0, 0, 8, 8), epsilon=1, method="grid", user="user",
    max_contributions=1)
bar = duckdb.connect().execute("SELECT current_setting('enable_progress_bar')").fetchall()
print(release.method, *bar[0])
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("notebook") / "points.csv"
    path.write_text("lon,lat,user\n1,2,an id of more than eight bytes\n")
    return path


@pytest.mark.parametrize(("before", "has_bar"), [(BLOCK, False), ("", True)])
def test_csv_is_read_in_a_kernel(path, before, has_bar):
    """DuckDB has a progress bar in a kernel with ipywidgets, and refuses to set it without."""
    manager, client = start_new_kernel(kernel_name="python3")
    shown = []
    try:
        code = before + BUILD.replace("PATH", repr(str(path)))
        reply = client.execute_interactive(code, timeout=120, output_hook=shown.append)["content"]
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    text = "".join(message["content"].get("text", "") for message in shown)
    assert (reply["status"], reply.get("evalue")) == ("ok", None)
    assert text == f"grid {has_bar}\n"
