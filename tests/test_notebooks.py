"""The notebooks are those of their percent files, and run."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.py"))
LABORATORY = DOCS / "notebooks" / "attention_laboratory.py"
SMALL = {  # of the laboratory, which trains twenty models
    "UNITS, STEPS = 64, 300": "UNITS, STEPS = 4, 1",
    "PAIRS, TESTS = 20_000, 200": "PAIRS, TESTS = 40, 2",
}


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


def test_the_laboratory_prints_what_its_page_shows(
    tmp_path, monkeypatch, capsys
):
    """Before it trains: quick."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    text, _ = LABORATORY.read_text("utf-8").split("# ## Two corpora")
    exec(compile(text, LABORATORY.name, "exec"), {})

    rows = capsys.readouterr().out.splitlines()
    page = (DOCS / "tutorials" / LABORATORY.name).with_suffix(".md")
    assert set(rows[:5]) <= set(page.read_text("utf-8").splitlines())
    assert float(rows[5].split()[-1]) < 1e-4  # of the sinusoids
    changes = [float(row.split("|")[2]) for row in rows[6:]]
    assert len(changes) == 5
    assert changes[0] < 1e-5 < 1e-2 < min(changes[1:])
    assert (tmp_path / "laboratory_sinusoids.png").is_file()


@pytest.mark.slow
@pytest.mark.parametrize("page", NOTEBOOKS, ids=lambda page: page.stem)
def test_notebooks_run(page, tmp_path, monkeypatch):
    jupytext = pytest.importorskip("jupytext")
    nbclient = pytest.importorskip("nbclient")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    text = page.read_text("utf-8")
    for before, after in SMALL.items() if page == LABORATORY else ():
        assert before in text
        text = text.replace(before, after)
    notebook = jupytext.reads(text, "py:percent")
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
