"""What a step of a search reads."""

import numpy as np
import pytest
import tensorflow as tf

from kseq.control_tokens import END
from kseq.decoding import BeamSearch, GreedySearch, NoRepeatedNgrams, Sampling
from kseq.layers import LuongAttention
from kseq.models import LSTMSeq2Seq
from tests.slow import others_slow, slow

SEARCHES = [
    GreedySearch(),
    BeamSearch(3),
    BeamSearch(3, patience=1.0),
    Sampling(num_samples=2),
]
# The loop is the same for all of them: the others run before a release.
two_searches = pytest.mark.parametrize(
    "search", others_slow(SEARCHES, SEARCHES[:2])
)


class Watched:
    """Counts the rows that another model encodes, and each step reads."""

    def __init__(self, model):
        self.model = model
        self.encoded, self.rows = [], []

    def encode(self, inputs):
        self.encoded.append(len(inputs["source_ids"]))
        return self.model.encode(inputs)

    def decode_step(self, token_ids, state):
        self.rows.append(len(token_ids))
        return self.model.decode_step(token_ids, state)


def everything(log_probs, ids):
    """A constraint that changes nothing, and is not `is_row_wise`."""
    return log_probs


@pytest.fixture
def many(seed):
    """Sources and limits of 20 items."""
    rng = np.random.default_rng(seed)
    ids = rng.integers(4, 20, (20, 5)).astype("int32")
    return tf.constant(ids), tf.constant(rng.integers(0, 15, 20), tf.int32)


@pytest.mark.parametrize("search", others_slow(SEARCHES, SEARCHES[:1]))
def test_answers_do_not_depend_on_what_leaves_the_batch(
    make_model, many, traced, searched, search
):
    model = make_model(bias={END: 1.0})
    whole = type(search)(**{**vars(search), "constraints": (everything,)})
    found = traced(search, model)(*many)
    expected = searched(whole, model, *many)
    np.testing.assert_array_equal(found.ids, expected.ids)
    np.testing.assert_allclose(found.scores, expected.scores, atol=1e-5)


@pytest.mark.parametrize(
    ("search", "constraints"),
    [
        (SEARCHES[0], ()),
        (SEARCHES[1], (NoRepeatedNgrams(3),)),
        (SEARCHES[2], ()),
        (SEARCHES[3], (NoRepeatedNgrams(3),)),
        slow(SEARCHES[0], (NoRepeatedNgrams(3),)),
        slow(SEARCHES[1], ()),
        slow(SEARCHES[2], (NoRepeatedNgrams(3),)),
        slow(SEARCHES[3], ()),
    ],
)
def test_items_that_are_done_leave(make_model, many, search, constraints):
    watched = Watched(make_model(bias={END: 1.0}))
    search = type(search)(**{**vars(search), "constraints": constraints})
    inputs = {"source_ids": many[0][:8]}
    limits = tf.constant([2] * 6 + [8] * 2)
    search(watched, inputs, limits)
    most = {GreedySearch: 1, Sampling: 2}.get(type(search), 4)
    assert watched.rows[0] <= 8 * most
    assert all(rows <= 2 * most for rows in watched.rows[2:])


def test_large_batches_are_searched_in_groups(make_model, many):
    watched = Watched(make_model(bias={END: -100.0}))
    inputs = {"source_ids": many[0]}
    GreedySearch()(watched, inputs, tf.constant([3] * 20))
    assert watched.encoded == [10] * 2
    assert watched.rows == [10] * 6


@pytest.mark.parametrize(("size", "groups"), [(128, [32] * 4), (129, [65, 64])])
def test_a_batch_for_a_gpu_has_two_groups(make_model, many, size, groups):
    watched = Watched(make_model())
    inputs = {"source_ids": tf.tile(many[0], (7, 1))[:size]}
    GreedySearch()(watched, inputs, tf.ones(size, tf.int32))
    assert watched.encoded == groups


@two_searches
def test_groups_of_any_inputs(make_model, many, search):
    """An input that is no batch of items leaves the batch whole."""
    ids, limits = many[0], tf.minimum(many[1], 3)
    model = make_model(bias={END: 1.0})
    expected = search(model, {"source_ids": ids}, limits)

    for inputs, encoded in (
        ({"source_ids": ids.numpy()}, [10, 10]),
        ({"source_ids": ids, "temperature": 1.0}, [20]),
        ({"source_ids": ids, "weights": tf.ones(3)}, [20]),
        ({"source_ids": ids, "sizes": [20, 5]}, [20]),
    ):
        watched = Watched(model)
        found = search(watched, inputs, limits)
        np.testing.assert_array_equal(found.ids, expected.ids)
        assert watched.encoded == encoded


@two_searches
def test_constants_are_computed_once(make_model, many, search):
    class Doubled(Watched):
        """Twice the logits, by a constant."""

        computed = 0

        def decoding_constants(self):
            self.computed += 1
            return {"factor": tf.constant(2.0)}

        def decode_step(self, token_ids, state):
            factor = state["constants"]["factor"]
            logits, state = super().decode_step(token_ids, state)
            return factor * logits, state

    ids, limits = many[0], tf.minimum(many[1], 3)
    doubled = Doubled(make_model(bias={END: 1.0}))
    found = search(doubled, {"source_ids": ids}, limits)
    assert doubled.computed == 1
    assert len(doubled.encoded) == 2

    doubled.decoding_constants = lambda: {"factor": tf.constant(1.0)}
    found = search(doubled, {"source_ids": ids}, limits)
    expected = search(doubled.model, {"source_ids": ids}, limits)
    np.testing.assert_array_equal(found.ids, expected.ids)


# A search by patience has the loops of the other beam, and so have those that
# revise no token.
@pytest.mark.parametrize(
    "search", others_slow(SEARCHES, [SEARCHES[1], SEARCHES[3]])
)
def test_groups_may_run_at_the_same_time(traced, search):
    """TensorFlow runs what has a state in order, also a read variable."""
    model = LSTMSeq2Seq(
        source_vocab_size=20,
        target_vocab_size=20,
        embedding_dim=4,
        units=4,
        attention=LuongAttention("dot"),
        tie_embeddings=True,
    )
    graph = traced(search, model).get_concrete_function().graph
    loops = [op for op in graph.get_operations() if "While" in op.type]
    assert [op.type for op in loops if op.name == "while"] == ["StatelessWhile"]


def test_no_row_for_what_cannot_win(make_model, source_ids):
    """All but one hypothesis become hopeless when the first one ends."""

    class Sure:
        """An answer of one token and END is as good as certain."""

        def encode(self, inputs):
            batch = tf.shape(inputs["source_ids"])[0]
            return {"position": tf.zeros((batch,), tf.int32)}

        def decode_step(self, token_ids, state):
            position = state["position"]
            is_sure = tf.one_hot(tf.where(position == 0, 5, END), 7)
            return 20 * is_sure, {"position": position + 1}

    watched = Watched(Sure())
    inputs = {"source_ids": source_ids}
    best = BeamSearch(4)(watched, inputs, tf.constant([9, 9, 9]))
    assert best.ids[:, 0].numpy().tolist() == [[5, END]] * 3
    assert watched.rows[0] == 3  # the hypotheses of an item are one
    assert len(watched.rows) == 2


def test_equal_hypotheses_share_a_row(make_model, source_ids):
    """Before the beam loses the greedy hypothesis, it has no row of its own."""
    watched = Watched(make_model(bias={END: -100.0}))
    inputs = {"source_ids": source_ids}
    BeamSearch(3)(watched, inputs, tf.constant([3, 3, 3]))
    assert watched.rows[0] == 3
    assert watched.rows[1] <= 3 * 3
