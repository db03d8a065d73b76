"""A model of a user whose state no search can read is refused, and why."""

import pytest
import tensorflow as tf

from kseq.decoding import BeamSearch, GreedySearch
from kseq.user_error import ArgumentError

WRONG = {
    "a tuple": (lambda state: tuple(state.values()), "dict. Received: tuple"),
    "a count": (lambda state: {**state, "step": 0}, r'state\["step"\] with 0'),
    "a scalar": (
        lambda state: {**state, "step": tf.constant(0)},
        r'from encode: state\["step"\] with',
    ),
    "nothing": (lambda s: {**s, "x": None}, r'state\["x"\] with None'),
}
STEPS = {
    "no state": (lambda logits, state: logits, "the state. Received: "),
    "logits of a sequence": (
        lambda logits, state: (logits[:, None], state),
        r"Received: logits \(.*, 1, 7\)",
    ),
    "logits of an unknown shape": (
        lambda logits, state: (
            tf.numpy_function(lambda x: x, [logits], tf.float32),
            state,
        ),
        "for R tokens and a V that is known.* Received: logits <unknown> for",
    ),
    "another state": (
        lambda logits, state: (logits, [state]),
        "decode_step of a model must return its state as a dict",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_states_are_dicts_of_tensors_with_a_batch(make_model, source_ids, name):
    change, message = WRONG[name]
    model = make_model()
    encode = model.encode
    model.encode = lambda inputs: change(encode(inputs))
    with pytest.raises(ArgumentError, match=message):
        GreedySearch()(model, {"source_ids": source_ids}, [2, 2, 2])


LIMITS = {
    "for all": 5,
    "for one": [5],
    "for one too many": [5, 5, 5, 5],
    "in a column": [[5], [5], [5]],
    "a float": tf.constant([5.0, 5.0, 5.0]),
}
searches = pytest.mark.parametrize("search", [GreedySearch(), BeamSearch(2)])


@searches
@pytest.mark.parametrize("name", LIMITS)
def test_each_row_has_one_length_limit(make_model, source_ids, search, name):
    inputs = {"source_ids": source_ids, "scale": tf.constant(1.0)}
    with pytest.raises(ArgumentError, match="one limit for each row of the in"):
        search(make_model(), inputs, LIMITS[name])


@searches
def test_limits_of_any_width(make_model, source_ids, search):
    model, inputs = make_model(), {"source_ids": source_ids}
    expected = search(model, inputs, [2, 3, 4])
    for dtype in ("int64", "uint8"):
        limits = tf.constant([2, 3, 4], dtype)
        found = search(model, inputs, limits)
        tf.debugging.assert_equal(found.ids, expected.ids)


@searches
@pytest.mark.parametrize("name", STEPS)
def test_a_step_gives_logits_and_a_state(make_model, source_ids, search, name):
    change, message = STEPS[name]
    model = make_model()
    step = model.decode_step
    model.decode_step = lambda *given: change(*step(*given))
    function = tf.function(
        lambda x: search(model, {"source_ids": x}, [2] * 3), autograph=False
    )
    with pytest.raises(ArgumentError, match=message):
        function(source_ids)


@searches
def test_logits_of_other_rows_are_refused(make_model, source_ids, search):
    """In a graph their number is not known."""
    model = make_model()
    step = model.decode_step

    def of_one_row(*given):
        logits, state = step(*given)
        return logits[:1], state

    model.decode_step = of_one_row
    with pytest.raises(ArgumentError, match=r"logits \(1, 7\) for 3 tokens"):
        search(model, {"source_ids": source_ids}, [2, 2, 2])
