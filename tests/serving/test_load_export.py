import numpy as np
import pytest
import tensorflow as tf

from kseq.serving import load_export

NAMES = ("serving_default", "n_best", "explain")


def test_same_answers_as_the_translator(translator, exported, text):
    loaded = load_export(exported)

    for name in ("translate", "n_best", "explain"):
        expected = getattr(translator, name)(text)
        answer = getattr(loaded, name)(text)
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

    assert load_export(tmp_path).path == tmp_path / "10"


def test_nothing_to_load(tmp_path):
    for path in (tmp_path, tmp_path / "missing"):
        with pytest.raises(ValueError, match=f"Received: path='{path}'"):
            load_export(path)


def test_not_a_saved_model(tmp_path):
    (tmp_path / "saved_model.pb").write_bytes(b"nonsense")
    with pytest.raises(ValueError, match="cannot be read"):
        load_export(tmp_path)


def save(path, function, names=NAMES):
    module = tf.Module()
    module.function = tf.function(
        function, input_signature=[tf.TensorSpec((None,), tf.string, "text")]
    )
    tf.saved_model.save(
        module, path, signatures=dict.fromkeys(names, module.function)
    )
    return path


def test_another_model(tmp_path):
    path = save(tmp_path, lambda text: {"text": text}, ["serving_default"])
    with pytest.raises(ValueError, match=r"without \['explain', 'n_best'\]"):
        load_export(path)


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
    with pytest.raises(ValueError, match=f"'{op}'"):
        load_export(path)
