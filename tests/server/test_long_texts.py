import numpy as np
import pytest
import tensorflow as tf
from tensorflow.compat.v1.saved_model import signature_def_utils
from tensorflow.saved_model import CLASSIFY_METHOD_NAME

from kseq.server.long_texts import LONGEST, cut_examples, cut_texts
from kseq.server.servable import Servable
from kseq.serving.safe_graph import trust

LONG = "é" * LONGEST  # two bytes each


def objects(*values):
    array = np.empty(len(values), object)
    array[:] = values
    return array


def test_short_texts_stay():
    inputs = {"text": objects(b"", b"a" * LONGEST), "seed": np.arange(2)}
    found, rows = cut_texts(inputs)
    assert rows == []
    assert found["text"] is inputs["text"]


@pytest.mark.parametrize("name", ["text", "turns", "target", "prompt"])
def test_a_long_text_is_cut_at_a_character(name):
    text = f"b{LONG}c".encode()
    found, rows = cut_texts({name: objects(b"a", text)})
    assert rows == [1]
    short, cut = found[name]
    assert short == b"a"
    assert LONGEST - 1 <= len(cut) <= LONGEST
    assert set(cut.decode()) <= {*"bcé"}
    # A language model goes on with the end of its prompt.
    ends_kept = (cut.startswith(b"b"), cut.endswith(b"c"))
    assert ends_kept == ((False, True) if name == "prompt" else (True, False))


def test_one_turn_of_a_dialogue():
    turns = np.array([[b"a", b"b"], [b"c", LONG.encode()]], object)
    found, rows = cut_texts({"turns": turns})
    assert rows == [1]
    assert found["turns"][:, 0].tolist() == [b"a", b"c"]
    assert len(turns[1, 1]) > LONGEST  # that of the request is as it was


@pytest.mark.parametrize("name", ["image", "audio"])
def test_bytes_are_no_text(name):
    inputs = {name: objects(bytes(2 * LONGEST))}
    assert cut_texts(inputs) == (inputs, [])


@pytest.mark.parametrize(
    ("name", "kept"),
    [("image", 2 * LONGEST), ("audio", 2 * LONGEST), ("text", LONGEST)],
)
def test_of_examples_only_texts_are_cut(name, kept):
    content = b"a" * 2 * LONGEST
    example = tf.train.Example(
        features={"feature": {name: {"bytes_list": {"value": [content]}}}}
    )
    [found] = cut_examples(objects(example.SerializeToString()))
    feature = tf.train.Example.FromString(found).features.feature[name]
    assert feature.bytes_list.value == [content[:kept]]


def test_bytes_that_are_no_characters():
    found, rows = cut_texts({"text": objects(b"\x80" * 2 * LONGEST)})
    assert rows == [0]
    assert len(found["text"][0]) <= LONGEST


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A SavedModel that answers with the lengths of its texts."""
    path = tmp_path_factory.mktemp("lengths") / "1"

    def measure(text):
        return {
            "length": tf.strings.length(text),
            "truncated": tf.zeros(tf.shape(text), tf.bool),
        }

    def classify(inputs):
        parsed = tf.io.parse_example(
            inputs, {"text": tf.io.FixedLenFeature((), tf.string, "")}
        )
        length = tf.strings.length(parsed["text"])[:, None]
        return {
            "classes": tf.strings.as_string(length),
            "scores": tf.cast(length, tf.float32),
        }

    def signature(function, name):
        spec = tf.TensorSpec((None,), tf.string, name)
        return tf.function(function, input_signature=[spec])

    module = tf.Module()
    module.functions = {
        "serving_default": signature(measure, "text"),
        "classify": signature(classify, "inputs"),
    }
    tf.saved_model.save(module, str(path), signatures=module.functions)
    updater = signature_def_utils.MethodNameUpdater(str(path))
    updater.replace_method_name("classify", CLASSIFY_METHOD_NAME)
    updater.save()
    trust((path / "saved_model.pb").read_bytes())
    return path


@pytest.mark.parametrize("is_of_kseq", [True, False])
def test_an_export_of_kseq_says_that_a_text_is_cut(path, is_of_kseq):
    servable = Servable("m", path)
    description = path / "assets.extra" / "kseq.json"
    if is_of_kseq:  # which is copied after all other files, and deleted then
        description.parent.mkdir(exist_ok=True)
        description.write_text("{}")
        assert servable.pads_rows("serving_default")
        description.unlink()
    long, size = b"a" * 2 * LONGEST, 2 * LONGEST
    kept = LONGEST if is_of_kseq else size
    found = servable.run("serving_default", {"text": objects(b"a", long)})
    assert found["length"].tolist() == [1, kept]
    assert found["truncated"].tolist() == [False, is_of_kseq]
    examples = [
        tf.train.Example(
            features={"feature": {"text": {"bytes_list": {"value": [text]}}}}
        ).SerializeToString()
        for text in (b"a", long)
    ]
    found = servable.run("classify", {"inputs": objects(*examples)})
    assert found["scores"].tolist() == [[1], [kept]]
