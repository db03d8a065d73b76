"""The documentation: its code runs, its commands and links exist."""

import ast
import contextlib
import dataclasses
import functools
import importlib
import io
import re
import shlex
import subprocess
import sys
import types
from pathlib import Path

import grpc
import keras
import pytest
from anyio.from_thread import start_blocking_portal

import kseq
from kseq import (
    cli,
    data,
    decoding,
    layers,
    loading,
    models,
    runs,
    server,
    serving,
)
from kseq.command_line.option_types import option
from kseq.data import dates, dispatch_reports
from kseq.data.tags.journeys import journeys
from kseq.runs.run_directory import batch_fields
from tests.commands.saved_run import saved_run
from tests.recipes import RECIPES, load_recipe
from tests.server.grpc_client import serve_grpc

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
API = sorted((DOCS / "api").glob("*.md"))
TEXTS = [*PAGES, *(ROOT / name for name in ("README.md", "CONTRIBUTING.md"))]
SEARCH = DOCS / "tutorials" / "search.md"
WITH_CODE = [
    page
    for page in PAGES
    if "```python" in page.read_text("utf-8") and page != SEARCH
]
LOAD = kseq.load

ROOMS = (
    *(
        "conversion",
        "data",
        "decoding",
        "evaluation",
        "layers",
        "models",
        "pictures",
    ),
    *("loading", "runs", "serving", "training"),
)

# What troubleshooting.md quotes of the shell, argparse and TensorFlow.
OF_OTHERS = {
    "<(zcat a.gz)",
    "expected at least one argument",
    "Op type not registered 'Sentencepiece...'",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the runs and exports that pages speak of, untrained."""
    folder = tmp_path_factory.mktemp("docs")
    keras.utils.set_random_seed(1)
    sources, targets = dates("train", size=200)
    tokenizer = data.Tokenizer.train([*sources, *targets], 600)
    both = data.TextPreprocessor(tokenizer), tokenizer
    recurrent = models.LSTMSeq2Seq(
        *(600, 600),
        embedding_dim=4,
        units=4,
        attention=layers.LuongAttention("dot"),
    )
    beam = decoding.BeamSearch(beam_size=3)
    translator = serving.Generator(recurrent, *both, beam, max_length=12)
    saved_run(translator, folder / "runs/dates")
    serving.export(translator, folder / "saved_models/dates")
    blocks = models.Transformer(
        *(600, 600),
        num_encoder_layers=1,
        num_decoder_layers=1,
        model_dim=8,
        ffn_dim=8,
        num_heads=2,
    )
    greedy = decoding.GreedySearch()
    saved_run(
        serving.Generator(blocks, *both, greedy, max_length=12),
        folder / "runs/transformer",
    )

    reports = dispatch_reports("train", size=40)
    reader = models.HierarchicalAttention(
        *(400, 4), embedding_dim=4, units=4, attention_units=4
    )
    classifier = serving.Classifier(
        reader,
        data.DocumentPreprocessor.train(reports, 400),
        sorted(set(reports.labels)),
    )
    serving.export(classifier, folder / "saved_models/reports")

    texts = journeys("train", size=200).texts
    tagger = serving.Tagger(
        models.LSTMTagger(400, 2, embedding_dim=4, units=4, num_layers=1),
        data.WordPreprocessor(data.Tokenizer.train(texts, 400)),
        ("B-to", "O"),
    )
    serving.export(tagger, folder / "saved_models/journeys")
    return folder


@pytest.fixture(scope="module")
def open_once():
    """`kseq.load`, which does not open what another page has opened."""
    opened = {}

    def load(path, **options):
        key = str(path)
        if options or key not in opened:
            opened[key] = LOAD(path, **options)
        return opened[key]

    return load


@pytest.fixture(scope="module")
def served(folder):
    """A gRPC client of the folder's export."""
    store = server.ModelStore({"dates": folder / "saved_models/dates"})
    store.poll()
    with start_blocking_portal() as portal, serve_grpc(portal, store) as client:
        yield client
    store.close()


def code_of(page):
    if page.stem == "beam":
        pytest.importorskip("apache_beam", reason="needs the extra beam")
    return re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.S)


@pytest.mark.slow  # searches and exports take long to be traced
@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: page.stem)
def test_code_runs(page, folder, open_once, served, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setattr(loading, "load", open_once)
    monkeypatch.setattr(grpc, "insecure_channel", lambda _: served.channel)
    names = {}
    for block in code_of(page):
        exec(compile(block, page.name, "exec"), names)


class FakeStudy:
    """Two trials, with the first choice and the lower bound of everything."""

    def optimize(self, objective, n_trials):
        self.wanted, self.scores = n_trials, []
        for self.number in range(2):
            self.scores.append(objective(self))
        self.best_params = {}

    def suggest_categorical(self, name, choices):
        return choices[0]

    def suggest_float(self, name, low, high):
        return low


@pytest.mark.slow  # trains
def test_options_are_searched(tmp_path, monkeypatch):
    """The page, with fewer steps."""
    study = FakeStudy()
    optuna = types.SimpleNamespace(create_study=lambda direction: study)
    monkeypatch.setitem(sys.modules, "optuna", optuna)
    monkeypatch.chdir(tmp_path)
    assert cli.main(["recipes", "copy", "translate_lstm"]) == 0
    recipe = Path("translate_lstm.py")
    text = recipe.read_text("utf-8")
    few = text.replace("steps=450", "steps=4")
    assert few != text
    recipe.write_text(few)
    [code] = code_of(SEARCH)
    exec(compile(code, "search", "exec"), {})
    assert study.wanted == 20
    assert study.scores == [0, 0]
    assert {path.name for path in Path("runs").iterdir()} == {
        "search_0",
        "search_1",
    }


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: page.stem)
def test_code_without_runs(page):
    """What a page does before it trains, or opens a run: quick."""
    needs_more = re.compile(
        r"kseq\.load|load_run|saved_models|\.fit\(|localhost"
    )
    names = {}
    for block in code_of(page):
        code = compile(block, page.name, "exec")
        if needs_more.search(block):
            break
        exec(code, names)


def command_lines():
    """Every line of a page that begins with kseq or a recipe, its words."""
    for page in TEXTS:
        text = re.sub(r"\\\n +", "", page.read_text("utf-8"))
        for line in re.findall(r"^ {4}((?:kseq|python) .*)$", text, re.M):
            yield page.name, shlex.split(line, comments=True)


def options_of(command):
    """The long options of a command, as its help lists them."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        assert help_code(command) == 0, command
    return set(re.findall(r"--[a-z-]+", printed.getvalue()))


def help_code(command):
    try:
        return cli.main([command, "--help"])
    except SystemExit as stop:
        return stop.code


@functools.cache
def options_of_recipe(name):
    names = {
        field.name for field in dataclasses.fields(load_recipe(name).Config)
    }
    del sys.modules[name]
    return {option(name) for name in names} | {"--help"}


def test_commands_and_options_exist():
    known = functools.cache(options_of)
    recipes = {path.stem for path in RECIPES}
    for page, (program, command, *words) in command_lines():
        options = {word.split("=")[0] for word in words if word[:2] == "--"}
        if program == "python":
            path = ROOT / command
            assert command[:1] == "-" or path.is_file(), (page, command)
            if path.parent.name == "recipes":
                assert options <= options_of_recipe(path.stem), page
        elif command in ("train", "plan"):
            if words[0] in known(command):  # with its value, before the name
                options.remove(words[0])
                words = words[2:]
            name = Path(words[0]).stem
            assert name in recipes | {"NAME", "mine"}, (page, name)
            if name in recipes:
                assert options <= options_of_recipe(name), (page, words)
        else:
            assert options <= known(command), (page, command, words)


def api_names(page):
    """The dotted names whose docstrings a page of the API shows."""
    return re.findall(r"^::: (\S+)$", page.read_text("utf-8"), re.M)


def test_links_lead_somewhere():
    for page in TEXTS:
        text = page.read_text("utf-8")
        for link in re.findall(r"\]\(([^)\s]+)\)", text):
            path, _, anchor = link.partition("#")
            if "://" in path:
                continue
            target = (page.parent / path) if path else page
            assert target.exists(), (page.name, link)
            if anchor.startswith("kseq."):
                shown = api_names(target)
                assert any(f"{anchor}.".startswith(f"{n}.") for n in shown)
            elif anchor:
                headings = re.findall(
                    r"^#+ (.*)$", target.read_text("utf-8"), re.M
                )
                slugs = [re.sub(r"[^\w -]", "", h).lower() for h in headings]
                assert anchor in [s.replace(" ", "-") for s in slugs], link


def messages_of_kseq():
    """The strings of kseq's sources; what is filled in is a NUL."""
    texts = []
    for path in (ROOT / "kseq").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = (getattr(part, "value", "") for part in node.values)
                texts.append(
                    "".join(p if isinstance(p, str) else "\0" for p in parts)
                )
            elif isinstance(node, ast.Constant):
                texts.append(str(node.value))
    return "\n".join(texts)


def test_messages_of_troubleshooting_are_those_of_kseq():
    known = messages_of_kseq()
    page = (DOCS / "troubleshooting.md").read_text("utf-8")
    first = "\n".join(re.findall(r"^\| (.+?) \|", page, re.M))
    messages = set(re.findall(r"`([^`]+)`", first)) - OF_OTHERS
    parts = {
        part.strip()
        for message in messages
        for part in re.split(r"\.\.\.| N\b", message)
    }
    assert not {part for part in parts if part not in known}


def test_the_files_of_a_run_are_those_of_its_directory():
    page = (DOCS / "reliability.md").read_text("utf-8")
    table = page.split("## The files of a run")[1].split("\n## ")[0]

    def names(text):
        first = re.findall(r"^ *\| (`.*?) \|", text, re.M)
        return set(re.findall(r"`(.*?)`", " ".join(first)))

    assert names(table) == names(runs.RunDirectory.__doc__)


def test_every_page_is_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text("utf-8").split("\nnav:")[1]
    listed = re.findall(r"[\w/]+\.md", navigation)
    assert sorted(listed) == [str(page.relative_to(DOCS)) for page in PAGES]


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_the_page_of_a_recipe_lists_its_options(path):
    page = (DOCS / "recipes" / f"{path.stem}.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| `--([a-z-]+)` \| ?`?(.*?)`? ?\|", page, re.M))
    config = load_recipe(path.stem).Config()
    del sys.modules[path.stem]
    fields = {
        option(name).removeprefix("--"): value
        for name, value in dataclasses.asdict(config).items()
    }
    assert rows.keys() == fields.keys()
    for name, value in fields.items():
        if isinstance(value, int | float | str) and value is not False:
            assert rows[name] == str(value), name


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_the_page_of_a_recipe_says_what_may_change(path):
    page = (DOCS / "recipes" / f"{path.stem}.md").read_text("utf-8")
    [listed] = re.findall(
        r"^(`--steps`[^.]*) may\s+change\s+when\s+a\s+run\s+resumes\.",
        page,
        re.M,
    )
    config = load_recipe(path.stem).Config()
    del sys.modules[path.stem]
    names = {field.name for field in dataclasses.fields(config)}
    may_change = {
        *("steps", "patience", "save_every", "track", "calibrate"),
        *("accumulation_steps", "jit_compile", *batch_fields(config)),
    }
    listed = listed.replace("(except with `--schedule cosine`)", "")
    assert sorted(re.findall(r"`(.*?)`", listed)) == sorted(
        option(name) for name in may_change & names
    )


@pytest.mark.parametrize("room", ROOMS)
def test_the_api_lists_every_public_name(room):
    package = importlib.import_module(f"kseq.{room}")
    page = (DOCS / "api" / f"{room}.md").read_text("utf-8")
    listed = re.findall(rf"^::: kseq\.{room}\.(?:\w+\.)*(\w+)$", page, re.M)
    assert sorted(listed) == sorted(package.__all__)


def names_in(path):
    """What a file defines or imports, as mkdocstrings finds it: unexecuted."""
    stub = path.with_suffix(".pyi")
    source = stub if stub.exists() else path
    names = set()
    for node in ast.parse(source.read_text("utf-8")).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.ImportFrom):
            names |= {alias.asname or alias.name for alias in node.names}
    return names


def is_found(name):
    """Whether a dotted name is a module, or in the one that it names."""
    path = ROOT.joinpath(*name.split("."))
    if path.is_dir() or path.with_suffix(".py").is_file():
        return True
    package, module = path.parent, path.parent.with_suffix(".py")
    file = module if module.is_file() else package / "__init__.py"
    return file.is_file() and path.name in names_in(file)


def test_the_names_of_the_api_exist():
    """`make docs` fails without them; packages of extras are not imported."""
    names = [name for page in API for name in api_names(page)]
    assert names
    assert not [name for name in names if not is_found(name)]


@pytest.mark.slow
def test_the_site_is_built_without_warnings(tmp_path):
    pytest.importorskip("mkdocs")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict"]
    done = subprocess.run(
        [*command, "--site-dir", tmp_path], cwd=ROOT, capture_output=True
    )
    assert done.returncode == 0, done.stderr.decode()
    loads = re.compile(r'<(?:script|link|img|iframe)[^>]*(?:src|href)="https?:')
    for page in tmp_path.rglob("*.html"):
        assert not loads.search(page.read_text("utf-8")), page
