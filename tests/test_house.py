"""The rules of the house that a program can check."""

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
MODULES = sorted((ROOT / "kseq").rglob("*.py"))
RECIPES = sorted((ROOT / "recipes").glob("*.py"))

# What each room may import of kseq, and which libraries.
ARROWS = {
    "ops": ((), ("keras",)),
    "layers": (("ops",), ("keras",)),
    "models": (("layers", "ops"), ("keras",)),
    "data": (
        (),
        ("tensorflow", "tensorflow_text", "sentencepiece", "babel", "numpy"),
    ),
    "decoding": ((), ("tensorflow",)),
    "devices": ((), ("tensorflow",)),
    "runs": (("devices",), ("tensorflow", "keras", "numpy")),
    "pictures": ((), ("numpy", "matplotlib")),
    "serving": (
        ("models", "runs", "decoding"),
        ("tensorflow", "tensorflow_text", "keras", "google"),
    ),
    "evaluation": (
        ("serving",),
        ("tensorflow", "numpy", "sacrebleu"),
    ),
    "training": (
        ("devices", "runs", "pictures", "serving", "evaluation"),
        ("tensorflow", "keras", "numpy", "tyro"),
    ),
    "recipes": (
        (
            "layers",
            "models",
            "data",
            "devices",
            "runs",
            "training",
            "evaluation",
            "serving",
        ),
        ("keras",),
    ),
}
EVERYWHERE = ("kseq", "control_tokens", "user_error", "whole_files")
EXCEPTIONS = {
    ("kseq/data/word_vectors.py", "scipy"),
    ("kseq/data/word_vectors.py", "sklearn"),
    ("kseq/models/exact_step.py", "tensorflow"),  # the step on many devices
    ("kseq/models/step_function.py", "tensorflow"),
    ("kseq/models/cross_entropy.py", "tensorflow"),  # fewer passes
}

# Files with small public classes that make sense only together.
TOGETHER = {"positional_encoding.py", "step_function.py"}

UNSAFE_MODULES = {"pickle", "marshal", "shelve", "dill", "yaml"}
UNSAFE_CALLS = {"eval", "exec", "enable_unsafe_deserialization"}
UNSAFE_KEYWORDS = {
    ("safe_mode", False),
    ("allow_pickle", True),
    ("shell", True),
}


def name_of(path):
    return str(path.relative_to(ROOT))


def tree_of(path):
    return ast.parse(path.read_text("utf-8"))


def imports_of(path):
    """(room of kseq or None, library) of all imports."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            library, _, rest = name.partition(".")
            room = rest.split(".")[0] or library
            yield room if library == "kseq" else None, library


def wrong_imports(path):
    room = name_of(path).removeprefix("kseq/").split("/")[0]
    room = room.removesuffix(".py")
    if room not in ARROWS:
        return
    rooms, libraries = ARROWS[room]
    for part, library in imports_of(path):
        is_fine = (
            library in (*libraries, *sys.stdlib_module_names)
            if part is None
            else part in (room, *rooms, *EVERYWHERE)
        )
        if not is_fine and (name_of(path), part or library) not in EXCEPTIONS:
            yield part or library


def test_imports_go_one_way():
    wrong = [
        f"{name_of(path)} imports {name}"
        for path in MODULES + RECIPES
        for name in wrong_imports(path)
    ]
    assert not wrong


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
    """F2."""
    assert not [
        f"{name_of(path)}: {part}"
        for path in MODULES + RECIPES
        for part in unsafe_parts(path)
    ]


def test_no_assert_stands_outside_tests():
    assert not [
        f"{name_of(path)}:{node.lineno}"
        for path in MODULES + RECIPES
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Assert)
    ]


def public_classes(path):
    """But for errors and tuples, which stand beside what they belong to."""
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


def test_there_are_no_drawers():
    drawers = {"util", "utils", "helpers", "common", "misc", "base"}
    assert not [path for path in MODULES if drawers & {path.stem, *path.parts}]


def test_files_are_short():
    limits = {**dict.fromkeys(MODULES, 300), **dict.fromkeys(RECIPES, 140)}
    lengths = {
        path: len(path.read_text("utf-8").splitlines()) for path in limits
    }
    assert not [
        f"{name_of(path)}: {lengths[path]}"
        for path, limit in limits.items()
        if lengths[path] > limit
    ]


def test_recipes_say_what_they_do():
    for path in RECIPES:
        first, *_ = ast.get_docstring(tree_of(path)).splitlines()
        assert first.endswith(".")
