import pytest
import tensorflow as tf

from kseq.user_error import reason_of, reasons_of


def to_number(text):
    return tf.strings.to_number(text)


def in_a_loop(text):
    return tf.map_fn(
        to_number, tf.stack([text]), fn_output_signature=tf.float32
    )


@pytest.mark.parametrize(
    "call",
    [to_number, tf.function(to_number), tf.function(in_a_loop)],
    ids=["operation", "graph", "loop"],
)
def test_names_of_operations_are_left_out(call):
    with pytest.raises(tf.errors.InvalidArgumentError) as raised:
        call(tf.constant("{{node A}} a [Op:A]"))
    assert reasons_of(raised.value) == [
        "StringToNumberOp could not correctly convert string: "
        "{{node A}} a [Op:A]"
    ]


@pytest.mark.parametrize(
    "message, reasons",
    [
        (
            "{{node A}} /a; Disk quota exceeded [Op:A]",
            ["/a; Disk quota exceeded"],
        ),
        ("{{function_node f}} {{node A}} late [Op:A] name: ", ["late"]),
        (
            "{{function_node __inference_<lambda>_6}} late [Op:<lambda>]",
            ["late"],
        ),
        ("[_Derived_]{{function_node f}}{{node A}}late", ["late"]),
        ("File system scheme 'a' not implemented", None),
        ("{{a}} is text", None),
        (
            "Graph execution error:\n\nDetected at node A defined at (most "
            "recent call last):\n<stack traces unavailable>\n2 root error(s) "
            "found.\n  (0) INVALID_ARGUMENT:  one\n\t [[{{node A}}]]\n"
            "\t [[B/_2]]\n  (1) INVALID_ARGUMENT:  {{node B}} other\n\t "
            "[[{{node B}}]]\n0 successful operations.\n0 derived errors "
            "ignored. [Op:__inference_f_1]",
            ["one", "other"],
        ),
        ("", []),
    ],
)
def test_reasons(message, reasons):
    error = tf.errors.InternalError(None, None, message)
    assert reasons_of(error) == ([message] if reasons is None else reasons)


def test_an_error_without_a_reason_has_a_name():
    assert reason_of(tf.errors.InternalError(None, None, "")) == "InternalError"
    assert reason_of(KeyError()) == "KeyError"
    assert reason_of(OSError("a\nb")) == "a"
