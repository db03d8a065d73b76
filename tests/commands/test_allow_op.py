"""An export with an operation of the user's own is opened on request."""

import pytest
import tensorflow as tf

import kseq
from kseq.user_error import UserError

COMMANDS = {
    "predict": (),
    "chat": (),
    "score": ("source", "target"),
    "evaluate": ("source", "target"),
    "explain": (),
    "serve": (),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Of an export that answers in capitals; a blank line fails."""
    folder = tmp_path_factory.mktemp("saved_models")
    module = tf.Module()
    module.score = tf.Variable(1.0)

    def capitals(text):
        score = tf.fill(tf.shape(text), module.score)
        upper = tf.strings.upper(text)
        with tf.control_dependencies(
            [tf.debugging.assert_none_equal(text, "fail")]
        ):
            upper = tf.identity(upper)
        return {"text": upper, "score": score, "truncated": score < 0}

    spec = tf.TensorSpec((None,), tf.string, "text")
    module.capitals = tf.function(capitals, [spec], autograph=False)
    signatures = dict.fromkeys(("serving_default", "explain"), module.capitals)
    tf.saved_model.save(module, str(folder / "1"), signatures=signatures)
    return folder


@pytest.fixture
def files(here):
    for name in ("source", "target"):
        (here / name).write_text("a\n")


def test_it_is_named_and_then_allowed(folder, call, refused):
    message = refused("predict", folder)
    assert "no export of kseq has: StringUpper." in message
    assert "--allow-op StringUpper" in message
    answers, _ = call(
        *("predict", folder, "--allow-op", "StringUpper"), text=b"a b\n"
    )
    assert answers == "A B\n"
    loaded = kseq.load(folder, allow_ops=["StringUpper"])
    assert loaded(["c"]) == ["C"]
    with pytest.raises(UserError, match="StringUpper"):
        kseq.load(folder, allow_ops=["StringLower"])


def test_an_operation_that_fails_is_one_message(folder, call):
    words = ("predict", folder, "--allow-op", "StringUpper")
    _, notes = call(*words, text=b"fail\n", code=2)
    [line] = notes.splitlines()
    assert f"{folder / '1'} could not answer" in line


@pytest.mark.parametrize("command", COMMANDS)
def test_names_that_are_none(command, folder, refused, files):
    words = (command, folder, *COMMANDS[command])
    for name in ("", " ", "a b", "../x", "1", "é", "a\nb", "x" * 5 + "\0"):
        assert "--allow-op" in refused(*words, "--allow-op", name)


def test_a_model_of_an_export_is_refused_by_the_server(folder, refused):
    message = refused("serve", folder, "--port", "0")
    assert "cannot be served" in message
    assert "--allow-op StringUpper" in message


def test_a_run_needs_none(tmp_path):
    for name in ("config.json", "environment.json"):
        (tmp_path / name).write_text("{}")
    with pytest.raises(UserError, match="is a run"):
        kseq.load(tmp_path, allow_ops=["StringUpper"])
