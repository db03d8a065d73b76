import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from kseq.files.model_path import model_path
from kseq.loading import load_export
from kseq.serving import ClassifierPredictor, GeneratorPredictor
from kseq.serving.safe_graph import trust
from kseq.user_error import UserError
from tests.slow import slow

NAMES = ("serving_default", "n_best", "explain")
GENERATED = {"text": tf.string, "score": tf.float32, "truncated": tf.bool}
CLASSIFIED = {
    "label": tf.string,
    "probability": tf.float32,
    "labels": tf.string,
    "probabilities": tf.float32,
    "truncated": tf.bool,
}


def test_same_answers_as_the_generator(generator, loaded_export, text):
    assert isinstance(loaded_export, GeneratorPredictor)
    names = {*generator.signatures, *generator.stream_signatures}
    assert loaded_export.signatures.keys() == names
    given = {"prefix": {"prefix": text[::-1]}, "score": {"target": text[::-1]}}

    for name, signature in generator.signatures.items():
        expected = signature(text=text, **given.get(name, {}))
        answer = loaded_export.signatures[name](
            text=text, **given.get(name, {})
        )
        assert answer.keys() == expected.keys()
        for key, value in expected.items():
            if value.dtype == tf.float32:
                np.testing.assert_allclose(answer[key], value, atol=1e-4)
            else:
                np.testing.assert_array_equal(answer[key], value)


def test_newest_of_the_versions(exports, tmp_path):
    exported = exports["lstm"]
    for version in ("9", "10"):
        (tmp_path / version).symlink_to(exported)
    (tmp_path / "11").mkdir()  # nothing in it
    (tmp_path / ".12.partial").symlink_to(exported)

    assert model_path(tmp_path) == tmp_path / "10"


def test_nothing_to_load(tmp_path):
    for path in (tmp_path, tmp_path / "missing"):
        with pytest.raises(UserError, match=f"{path} is neither"):
            load_export(path)


def test_a_run_is_no_export(tmp_path):
    for name in ("config.json", "environment.json"):
        (tmp_path / name).write_text("{}")
    with pytest.raises(UserError, match=f"{tmp_path} is not an export"):
        load_export(tmp_path)


def test_not_a_saved_model(tmp_path):
    (tmp_path / "saved_model.pb").write_bytes(b"nonsense")
    with pytest.raises(UserError, match="cannot be read"):
        load_export(tmp_path)


def save(path, function, names=NAMES, argument="text", weights=()):
    module = tf.Module()
    module.weights = [tf.Variable(weight) for weight in weights]
    module.function = tf.function(
        function,
        input_signature=[tf.TensorSpec((None,), tf.string, argument)],
        autograph=False,
    )
    tf.saved_model.save(
        module, path, signatures=dict.fromkeys(names, module.function)
    )
    return path


def trusted(path):
    """It has operations that an export of kseq has not."""
    trust((path / "saved_model.pb").read_bytes())
    return path


def zeros(outputs):
    """Gives a row of outputs of some types for each text."""
    return lambda text: {
        name: tf.zeros_like(text, dtype) for name, dtype in outputs.items()
    }


@pytest.mark.parametrize(
    ("outputs", "argument", "names"),
    [
        ({"text": tf.string}, "text", NAMES),
        ({"label": tf.string}, "text", NAMES),
        ({"dense": tf.float32}, "text", NAMES),
        (GENERATED, "line", NAMES),
        (GENERATED, "text", ["n_best"]),
    ],
)
def test_another_model(tmp_path, outputs, argument, names):
    path = trusted(save(tmp_path, zeros(outputs), names, argument))
    with pytest.raises(UserError, match="must have a signature serving_defau"):
        load_export(path)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_weights_that_are_no_numbers_are_refused(tmp_path, value):
    weights = [3, [1.0, 2.0], [1.0, value]]
    path = save(tmp_path, zeros(GENERATED), NAMES, weights=weights[:2])
    load_export(trusted(path))
    path = save(tmp_path, zeros(GENERATED), NAMES, weights=weights)
    with pytest.raises(UserError, match="has weights that are NaN or infinite"):
        load_export(trusted(path))


def test_a_missing_signature_is_named(tmp_path):
    """An export may have fewer: version 0.1 wrote no `score`, no `prefix`."""
    names = ["serving_default"]
    path = trusted(save(tmp_path / "1", zeros(GENERATED), names))
    translator = load_export(path)
    assert isinstance(translator, GeneratorPredictor)
    assert translator(["a", "b"]) == ["", ""]
    for name, method in {
        "n_best": lambda: translator.n_best(["a"], 2),
        "prefix": lambda: translator(["a"], prefixes=["b"]),
        "score": lambda: translator.scores(["a"], ["b"]),
        "explain": lambda: translator.attention(["a"]),
    }.items():
        message = f"no signature {name}; it has serving_default"
        with pytest.raises(UserError, match=message):
            method()

    path = trusted(save(tmp_path / "2", zeros(CLASSIFIED), names))
    classifier = load_export(path)
    assert isinstance(classifier, ClassifierPredictor)
    with pytest.raises(UserError, match="no signature explain; it has"):
        classifier.explain(["a"])


def written(text):
    with tf.control_dependencies([tf.io.write_file(text[0], text[0])]):
        return tf.identity(text)


@pytest.mark.parametrize(
    ("op", "function"),
    [
        ("ReadFile", lambda text: tf.io.read_file(text[0])),
        ("MatchingFiles", tf.io.matching_files),
        ("EagerPyFunc", lambda text: tf.py_function(len, [text], tf.int32)),
        (
            "TextLineDataset",
            lambda text: tf.data.TextLineDataset(text).reduce("", tf.add),
        ),
        ("WriteFile", written),
    ],
)
def test_python_and_files_are_refused(tmp_path, op, function):
    path = save(tmp_path, lambda text: {"text": function(text)})
    with pytest.raises(UserError, match=f"no export of kseq has: .*{op}"):
        load_export(path)


def _truncate(path):
    os.truncate(path, path.stat().st_size // 2)


INDEX = "variables/variables.index"
VALUES = "variables/variables.data-00000-of-00001"


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("saved_model.pb", Path.unlink),
        ("saved_model.pb", _truncate),
        (INDEX, _truncate),
        (VALUES, Path.unlink),
        slow(INDEX, Path.unlink),
        slow(VALUES, _truncate),
    ],
)
def test_a_broken_export_is_one_message(exports, tmp_path, name, damage):
    copy = shutil.copytree(exports["lstm"], tmp_path / "1")
    damage(copy / name)
    with pytest.raises(UserError) as caught:
        load_export(copy)
    [line] = str(caught.value).splitlines()
    assert str(copy) in line
