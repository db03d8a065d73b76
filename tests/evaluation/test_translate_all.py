import numpy as np
import tensorflow as tf

from kseq.evaluation.translate_all import real_parts, strings, translate_all


def shout(text):
    return {"text": tf.strings.upper(text)}


def test_answers_keep_the_order_of_the_sources():
    sources = [letter * (7 * i % 10) for i, letter in enumerate("abcdefghij")]
    outputs = translate_all(shout, sources, batch_size=3)
    assert outputs == [source.upper() for source in sources]


def test_nothing_to_translate():
    assert translate_all(shout, []) == []


def test_strings_replace_what_is_no_utf8():
    pairs = tf.data.Dataset.from_tensors((b"\xff", "é"))
    assert strings(pairs) == (["\ufffd"], ["é"])


def test_real_parts_have_no_padding():
    weights = np.arange(12.0).reshape(2, 2, 3)
    first, second = real_parts(
        {
            "source_tokens": tf.constant([["a", "b", ""], ["a", "b", "c"]]),
            "target_tokens": tf.constant([["x", "y"], ["x", ""]]),
            "attention": tf.constant(weights),
        }
    )
    assert first[:2] == (["a", "b"], ["x", "y"])
    np.testing.assert_array_equal(first[2], weights[0, :, :2])
    assert second[:2] == (["a", "b", "c"], ["x"])
    np.testing.assert_array_equal(second[2], weights[1, :1])
