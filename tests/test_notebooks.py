"""The notebooks are those of their percent files, and run."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.py"))


@pytest.mark.parametrize("page", NOTEBOOKS, ids=lambda page: page.stem)
def test_notebooks_are_paired(page):
    cells = json.loads(page.with_suffix(".ipynb").read_text("utf-8"))["cells"]
    assert not any(cell.get("outputs") for cell in cells)
    text = page.read_text("utf-8").split("\n# %%", 1)[1]
    parts = re.split(r"^# %%", "# %%" + text, flags=re.M)[1:]
    assert len(parts) == len(cells)
    for part, cell in zip(parts, cells, strict=True):
        head, _, body = part.partition("\n")
        if "[markdown]" in head:
            body = re.sub(r"^# ?", "", body, flags=re.M)
        assert body.strip() == "".join(cell["source"]).strip()


@pytest.mark.slow
@pytest.mark.parametrize("page", NOTEBOOKS, ids=lambda page: page.stem)
def test_notebooks_run(page, tmp_path, monkeypatch):
    jupytext = pytest.importorskip("jupytext")
    nbclient = pytest.importorskip("nbclient")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    notebook = jupytext.read(page)
    nbclient.NotebookClient(
        notebook,
        timeout=600,
        kernel_name="python3",
        resources={"metadata": {"path": str(tmp_path)}},
    ).execute()
    pictures = [
        output
        for cell in notebook.cells
        for output in cell.get("outputs", ())
        if "image/png" in output.get("data", {})
    ]
    assert pictures
