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


@pytest.mark.parametrize("search", [GreedySearch(), BeamSearch(2)])
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
