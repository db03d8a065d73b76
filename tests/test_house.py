"""The rules of the house that a program can check."""

import ast
import functools
import graphlib
import sys
from pathlib import Path

import pytest

from kseq.lazy_package import stub_modules

ROOT = Path(__file__).parents[1]
MODULES = sorted((ROOT / "kseq").rglob("*.py"))
RECIPES = sorted((ROOT / "recipes").glob("*.py"))

# What each room imports of kseq, lower rooms first, and which libraries. A
# room imports rooms above it in this list and no others.
ARROWS = {
    "user_error": ((), ()),
    "control_tokens": ((), ()),
    "lazy_package": ((), ()),
    "terminal": ((), ("rich",)),
    "devices": (("user_error",), ("tensorflow",)),
    "process": (("devices", "user_error"), ("keras", "tensorflow")),
    "files": (
        ("process", "terminal", "user_error"),
        ("huggingface_hub",),
    ),
    "ops": (("control_tokens",), ("keras", "tensorflow")),
    "layers": (
        ("control_tokens", "ops", "user_error"),
        ("keras", "tensorflow"),
    ),
    "decoding": (("control_tokens", "user_error"), ("keras", "tensorflow")),
    "models": (
        ("decoding", "devices", "layers", "ops", "user_error"),
        ("keras", "tensorflow"),
    ),
    "data": (
        (
            "control_tokens",
            "devices",
            "files",
            "lazy_package",
            "process",
            "terminal",
            "user_error",
        ),
        (
            "apache_beam",
            "keras",
            "numpy",
            "pyarrow",
            "scipy",
            "sentencepiece",
            "soundfile",
            "soxr",
            "tensorflow",
            "tensorflow_text",
            "zstandard",
        ),
    ),
    "pictures": (("terminal",), ("PIL", "matplotlib", "numpy")),
    "sources": (
        ("data", "files", "terminal", "user_error"),
        ("numpy", "tensorflow"),
    ),
    "runs": (
        ("data", "devices", "files", "process", "terminal", "user_error"),
        ("keras", "numpy", "tensorflow"),
    ),
    "serving": (
        (
            "control_tokens",
            "data",
            "decoding",
            "devices",
            "files",
            "layers",
            "lazy_package",
            "models",
            "pictures",
            "runs",
            "sources",
            "terminal",
            "user_error",
        ),
        (
            "ctranslate2",
            "keras",
            "numpy",
            "tensorflow",
            "tensorflow_text",
        ),
    ),
    "conversion": (
        (
            "control_tokens",
            "data",
            "decoding",
            "files",
            "models",
            "ops",
            "runs",
            "serving",
            "terminal",
            "user_error",
        ),
        ("keras", "numpy", "sentencepiece", "tensorflow"),
    ),
    "evaluation": (
        ("files", "pictures", "runs", "serving", "terminal", "user_error"),
        ("jiwer", "nltk", "numpy", "sacrebleu", "scipy"),
    ),
    "answers": (
        ("evaluation", "files", "runs", "serving", "sources", "user_error"),
        (),
    ),
    "loading": (
        (
            "answers",
            "data",
            "devices",
            "files",
            "lazy_package",
            "models",
            "process",
            "runs",
            "serving",
            "sources",
            "terminal",
            "user_error",
        ),
        ("apache_beam", "google", "keras", "tensorflow", "tensorflow_text"),
    ),
    "training": (
        (
            "answers",
            "data",
            "devices",
            "evaluation",
            "files",
            "layers",
            "loading",
            "models",
            "process",
            "runs",
            "serving",
            "terminal",
            "user_error",
        ),
        ("keras", "numpy", "tensorboard", "tensorflow"),
    ),
    "server": (
        (
            *("answers", "files", "loading", "process", "serving"),
            *("sources", "terminal", "user_error"),
        ),
        (
            "google",
            "grpc",
            "h11",
            "numpy",
            "prometheus_client",
            "starlette",
            "tensorflow",
            "tensorflow_serving",
            "uvicorn",
        ),
    ),
    "command_line": (
        (
            "data",
            "devices",
            "files",
            "process",
            "sources",
            "terminal",
            "user_error",
        ),
        (),
    ),
    "commands": (
        (
            "answers",
            "command_line",
            "conversion",
            "data",
            "decoding",
            "evaluation",
            "files",
            "loading",
            "pictures",
            "process",
            "runs",
            "server",
            "serving",
            "sources",
            "terminal",
            "user_error",
        ),
        ("huggingface_hub", "tensorflow"),
    ),
    "cli": (("command_line", "commands", "files", "process"), ()),
    "__main__": (("cli",), ()),
    "recipes": (
        (
            "command_line",
            "data",
            "decoding",
            "evaluation",
            "layers",
            "models",
            "serving",
            "training",
        ),
        ("keras",),
    ),
}
# Of the models only the exact step and its losses are TensorFlow's own; of the
# layers, which replica draws a random number, and whether XLA compiles them; of
# the ops, loops of one step at a time.
TENSORFLOW_IN = {
    "ops": {"blockwise_attention", "recurrence"},
    "layers": {"random_numbers", "xla"},
    "models": {
        "cross_entropy",
        "exact_step",
        "in_batch_losses",
        "minimum_risk",
        "optimizer_update",
        "scheduled_sampling",
        "step_function",
        "step_guard",
    },
}

# Classes of ours that others inherit from, beside the exact step. A score of a
# user's own is a subclass of the layer whose projections it has, and so are
# two of ours; the scores have one `call`, with or without projections;
# `SentenceDropout` has the arguments and the state of `Dropout`.
HEIRS = {
    "BahdanauAttention": "_Attention",
    "HierarchicalBahdanauAttention": "BahdanauAttention",
    "LocalAttention": "LuongAttention",
    "LocationAttention": "_Attention",
    "LocationAwareAttention": "BahdanauAttention",
    "LuongAttention": "_Attention",
    "PieceDropout": "Dropout",
    "SentenceDropout": "Dropout",
    "TrainFunction": "StepFunction",
}

# Files with small public classes that make sense only together.
TOGETHER = {
    "attention_scores.py",
    "constraints.py",
    "data_options.py",
    "dropout.py",
    "positional_encoding.py",
    "prompts.py",
    "recurrent_options.py",
    "similarity.py",
    "step_function.py",
    "training_options.py",
    "value_types.py",
}

UNSAFE_MODULES = {"pickle", "marshal", "shelve", "dill", "yaml"}
UNSAFE_CALLS = {"eval", "exec", "enable_unsafe_deserialization"}
UNSAFE_KEYWORDS = {
    ("safe_mode", False),
    ("allow_pickle", True),
    ("shell", True),
}


def name_of(path):
    return str(path.relative_to(ROOT))


@functools.cache
def tree_of(path):
    return ast.parse(path.read_text("utf-8"))


@functools.cache
def imported_names(path):
    """What each import of a module names, with its dots."""
    tree = ast.parse(path.read_text("utf-8"))
    return tuple(names_of_imports(ForEditors().visit(tree)))


def names_of_imports(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and node.args:
            function = getattr(node.func, "attr", None)
            if function == "import_module":
                yield beginning_of(node.args[0])


class ForEditors(ast.NodeTransformer):
    """Removes the imports that only type checkers see."""

    def visit_If(self, node):
        name = getattr(node.test, "id", None)
        return None if name == "TYPE_CHECKING" else self.generic_visit(node)


def beginning_of(node):
    """Of a string or an f-string, what is written out; else nothing."""
    if isinstance(node, ast.JoinedStr):
        node = node.values[0]
    return node.value if isinstance(node, ast.Constant) else ""


def imports_of(path):
    """(room of kseq or None, library) of all imports."""
    for name in filter(None, imported_names(path)):
        library, _, rest = name.partition(".")
        room = rest.split(".")[0] or library
        yield room if library == "kseq" else None, library


def room_of(path):
    room = name_of(path).removeprefix("kseq/").split("/")[0]
    return room.removesuffix(".py")


def test_arrows_are_those_that_are_used():
    used = {room: (set(), set()) for room in ARROWS}
    for path in MODULES + RECIPES:
        if path == ROOT / "kseq" / "__init__.py":
            continue
        rooms, libraries = used[room_of(path)]
        for room, library in imports_of(path):
            if room is None:
                libraries.add(library)
            elif room not in ("kseq", room_of(path)):  # kseq: the version
                rooms.add(room)
    for room, (rooms, libraries) in used.items():
        libraries -= set(sys.stdlib_module_names)
        allowed_rooms, allowed_libraries = map(set, ARROWS[room])
        assert rooms == allowed_rooms, room
        assert libraries == allowed_libraries, room


def test_no_arrow_goes_up():
    order = list(ARROWS)
    assert not [
        f"{room} imports {other}"
        for room, (others, _) in ARROWS.items()
        for other in others
        if order.index(other) >= order.index(room)
    ]


def test_no_modules_import_each_other():
    dotted = {
        name_of(path)[: -len(".py")]
        .replace("/", ".")
        .removesuffix(".__init__"): path
        for path in MODULES
    }
    graph = {}
    for module, path in dotted.items():
        names = [module_named(name, dotted) for name in imported_names(path)]
        graph[module] = {*names} & {*dotted} - {module}
    list(graphlib.TopologicalSorter(graph).static_order())


def module_named(name, dotted):
    """The module of what is imported, also from a package that is lazy."""
    package, _, last = name.rpartition(".")
    if name in dotted or package not in dotted:
        return name
    path = dotted[package]
    if path.with_suffix(".pyi").exists():
        module = stub_modules(path).get(last)
        return f"{package}.{module}" if module else package
    return package


def test_a_kind_of_data_depends_on_files_and_text_alone():
    data = ROOT / "kseq" / "data"
    lower = {"files": set(), "text": {"files"}}
    for path in sorted(data.glob("*/*.py")):
        room = path.parent.name
        others = {
            name.split(".")[2]
            for name in filter(None, imported_names(path))
            if name.startswith("kseq.data.")
        }
        allowed = lower.get(room, {"files", "text"}) | {room}
        assert others <= allowed, name_of(path)


@pytest.mark.parametrize("room", TENSORFLOW_IN)
def test_models_and_layers_hardly_use_tensorflow(room):
    assert {
        path.stem
        for path in MODULES
        if room_of(path) == room
        and (None, "tensorflow") in set(imports_of(path))
    } == TENSORFLOW_IN[room]


def unsafe_parts(path):
    for node in ast.walk(tree_of(path)):
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "id", getattr(node.func, "attr", None))
        keywords = {
            keyword.arg: getattr(keyword.value, "value", None)
            for keyword in node.keywords
        }
        if name in UNSAFE_CALLS or keywords.items() & UNSAFE_KEYWORDS:
            yield f"{name}({keywords})"
        if name in ("extract", "extractall") and "filter" not in keywords:
            yield name
    yield from {library for _, library in imports_of(path)} & UNSAFE_MODULES


def test_nothing_unsafe_is_used():
    assert not [
        f"{name_of(path)}: {part}"
        for path in MODULES + RECIPES
        for part in unsafe_parts(path)
    ]


def names_in(path):
    """Of what is imported, and of attributes."""
    for node in ast.walk(tree_of(path)):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=module, names=names):
                yield from (module, *(alias.name for alias in names))
            case ast.Attribute(attr=name):
                yield name


def test_nothing_is_downloaded_but_by_keras_applications():
    """Whoever downloads something checks it against a sha256."""
    downloads = {
        *("urllib.request", "http.client", "requests", "httpx", "aiohttp"),
        *("ftplib", "urlopen", "urlretrieve", "get_file", "applications"),
    }
    assert [
        (path.stem, name)
        for path in MODULES + RECIPES
        for name in sorted(downloads & {*names_in(path)})
    ] == [("picture_network", "applications")]


def test_no_assert_is_outside_tests():
    assert not [
        f"{name_of(path)}:{node.lineno}"
        for path in MODULES + RECIPES
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Assert)
    ]


def public_classes(path):
    """Except errors and tuples, which are beside what they belong to."""
    for node in tree_of(path).body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            bases = {getattr(base, "id", None) for base in node.bases}
            if not node.name.endswith("Error") and "NamedTuple" not in bases:
                yield node.name


def test_a_file_is_its_one_class():
    others = {}
    for path in MODULES:
        classes = list(public_classes(path))
        expected = path.stem.replace("_", "")
        if classes and [name.lower() for name in classes] != [expected]:
            others[path.name] = classes
    assert others.keys() == TOGETHER, others


# Rooms with types on every public function; of layers and models, whose
# methods take tensors, only what configures them has types. The arguments
# named here have none: tensors, and what Beam would take for elements.
TYPED = {
    "decoding": {
        *("ids", "inputs", "labels", "lengths", "log_probs", "logits"),
        *("likely_lengths", "max_lengths", "num_rows", "position", "prefix"),
        "sample_weight",
    },
    "loading": {"pcoll"},
    "serving": set(),
}


@pytest.mark.parametrize("room", TYPED)
def test_public_functions_have_types(room):
    assert not [
        f"{path.stem}: {function.name}"
        for path in MODULES
        if room_of(path) == room
        for function in public_functions(path)
        if not is_typed(function, TYPED[room])
    ]


def public_functions(path):
    """Functions, methods and properties; of decoding, those of `__all__`."""
    names = exported("decoding") if room_of(path) == "decoding" else None
    for node in tree_of(path).body:
        name = getattr(node, "name", "_")
        if name.startswith("_") or (names and name not in names):
            continue
        for part in node.body if isinstance(node, ast.ClassDef) else [node]:
            if isinstance(part, ast.FunctionDef) and (
                part.name in ("__init__", "__call__")
                or not part.name.startswith("_")
            ):
                yield part


def is_typed(function, untyped):
    given = function.args
    arguments = [*given.posonlyargs, *given.args, *given.kwonlyargs]
    arguments += filter(None, (given.vararg, given.kwarg))
    has_result = function.returns or function.name in ("__init__", "expand")
    return has_result and all(
        argument.annotation or argument.arg in {"self", "cls", *untyped}
        for argument in arguments
    )


@pytest.mark.parametrize("room", ["layers", "models"])
def test_arguments_of_public_classes_have_types(room):
    assert not [
        f"{path.stem}: {argument.arg}"
        for path in MODULES
        if room_of(path) == room
        for node in tree_of(path).body
        if isinstance(node, ast.ClassDef) and node.name in exported(room)
        for method in node.body
        if getattr(method, "name", None) == "__init__"
        for argument in method.args.args[1:] + method.args.kwonlyargs
        if argument.annotation is None
    ]


def exported(room):
    """The names in `__all__` of a room."""
    for node in tree_of(ROOT / "kseq" / room / "__init__.py").body:
        if isinstance(node, ast.Assign) and node.targets[0].id == "__all__":
            return ast.literal_eval(node.value)
    raise AssertionError(f"{room} has no __all__")


def test_classes_inherit_from_keras_once():
    classes = {
        node.name: [getattr(base, "id", None) for base in node.bases]
        for path in MODULES
        if room_of(path) in ("layers", "models")
        for node in tree_of(path).body
        if isinstance(node, ast.ClassDef)
    }
    heirs = {
        name: base
        for name, bases in classes.items()
        for base in bases
        if base in classes and base not in (name, "ExactModel")
    }
    assert heirs == HEIRS


# What comes into a model and what it answers with. Those that ask for it ask
# an object of `kseq.sources` or of `kseq.answers`.
KINDS = {
    *("text", "prompt", "turns", "features", "image", "frames", "audio"),
    *("vectors", "labels", "tags", "answers", "documents", "dialogues"),
}
KNOW_NO_KINDS = ("commands", "loading", "server", "training")


def compared_kinds(path):
    """Kinds that are compared, or two of which are listed or are keys."""
    for node in ast.walk(tree_of(path)):
        match node:
            case ast.Compare():
                yield from KINDS & {*strings_in(node)}
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                found = KINDS & {value_of(part) for part in parts}
            case ast.Set(elts=parts) | ast.Dict(keys=parts):
                found = KINDS & {value_of(part) for part in parts if part}
            case ast.Match():
                yield from KINDS & {*strings_in(node)}
        if isinstance(node, ast.Tuple | ast.List | ast.Set | ast.Dict):
            yield from found if len(found) > 1 else ()


def strings_in(node):
    return filter(None, map(value_of, ast.walk(node)))


def value_of(node):
    value = getattr(node, "value", None)
    return value if isinstance(value, str) else None


def test_only_sources_and_answers_know_kinds():
    assert not [
        f"{name_of(path)}: {kind}"
        for path in MODULES
        if room_of(path) in KNOW_NO_KINDS
        or name_of(path) == "kseq/runs/model_card.py"
        for kind in compared_kinds(path)
    ]


def test_few_files_are_in_no_room():
    loose = {path.stem for path in MODULES if path.parent.name == "kseq"}
    assert len(loose - {"__init__", "__main__", "cli"}) <= 6


def test_there_are_no_drawers():
    drawers = {"util", "utils", "helpers", "common", "misc", "base"}
    assert not [path for path in MODULES if drawers & {path.stem, *path.parts}]


def test_recipes_say_what_they_do():
    for path in RECIPES:
        first, *_ = ast.get_docstring(tree_of(path)).splitlines()
        assert first.endswith(".")
