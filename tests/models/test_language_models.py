"""What every language model promises."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

from kseq.control_tokens import END, PAD, START
from kseq.data import running_text_batches
from kseq.decoding import BeamSearch, GreedySearch, sequence_scores
from kseq.models import LSTMLM, TransformerLM
from tests.half_precision import HALF_POLICIES
from tests.models.few_steps import check_same_steps, few_steps
from tests.models.new_weights import new_weights
from tests.slow import others_slow, slow

VOCAB = 14
LENGTHS = (5, 2, 1)  # of prompts


def transformer(**settings):
    settings = {"num_layers": 2, "model_dim": 8, "ffn_dim": 16} | settings
    return TransformerLM(VOCAB, num_heads=2, **settings)


def lstm(**settings):
    settings = {"num_layers": 2, "embedding_dim": 6, "units": 8} | settings
    return LSTMLM(VOCAB, **settings)


CASES = {
    "rotary": transformer,
    "rotary, window": functools.partial(transformer, window=2),
    "sinusoidal": functools.partial(transformer, positions="sinusoidal"),
    "sinusoidal, window": functools.partial(
        transformer, positions="sinusoidal", window=2
    ),
    "learned": functools.partial(
        transformer, positions="learned", max_length=16, tie_output=False
    ),
    "learned, window": functools.partial(
        transformer, positions="learned", max_length=16, window=2
    ),
    "relative, shared": functools.partial(
        transformer,
        positions="relative",
        share_layers=True,
        norm="post",
        activation="gelu",
    ),
    "no positions, grouped queries": functools.partial(
        transformer,
        positions="none",
        num_kv_heads=1,
        norm="both",
        normalization="rms",
        activation="swiglu",
    ),
    "lstm": lstm,
}
MODELS = {"transformer": transformer, "lstm": lstm}
# Each kind of position in every run, with a window and without.
_OFTEN = ("rotary, window", "relative, shared", "lstm")
every_case = pytest.mark.parametrize("name", others_slow(CASES, _OFTEN))
every_model = pytest.mark.parametrize("name", ["rotary", slow("lstm")])


@functools.cache
def _built(name):
    """A model, and what its variables were at first."""
    model = CASES[name]()
    return model, [variable.numpy() for variable in model.variables]


def model_of(name):
    """The model of a case, which tests share, with new weights."""
    return new_weights(*_built(name))


def prompts():
    """START and tokens, of several lengths."""
    ids = np.random.randint(END + 1, VOCAB, (len(LENGTHS), max(LENGTHS)))
    ids[:, 0] = START
    ids[np.arange(ids.shape[1]) >= np.array(LENGTHS)[:, None]] = PAD
    return ids.astype("int32")


def targets():
    """START in place of the last token of the prompt, and what follows."""
    ids = np.random.randint(END + 1, VOCAB, (len(LENGTHS), 3))
    ids[:, 0] = START
    return ids.astype("int32")


def running_logits(model, ids):
    """(T,) -> (T, V), of one text."""
    inputs = {"target_ids": np.array(ids, "int32")[None]}
    return np.array(model.loss_outputs(inputs, training=False))[0]


def logits_of_steps(model, source_ids, target_ids):
    state, steps = model.encode({"source_ids": source_ids}), []
    for ids in target_ids.T:
        logits, state = model.decode_step(ids, state)
        steps.append(np.array(logits))
    return np.stack(steps, axis=1)


def assert_close(found, expected):
    np.testing.assert_allclose(found, expected, atol=1e-5)


# Two ways to one answer.


@every_case
def test_prompts_and_steps_are_one_running_text(seed, name):
    """Together, alone, whole, step by step, and as in training."""
    model, source, target = model_of(name), prompts(), targets()
    whole = np.array(model({"source_ids": source, "target_ids": target}))
    assert_close(logits_of_steps(model, source, target), whole)
    for row, length in enumerate(LENGTHS):
        one = np.s_[row : row + 1]
        alone = source[one, :length], target[one]
        assert_close(logits_of_steps(model, *alone)[0], whole[row])
        text = [*source[row, :length], *target[row, 1:]]
        running = running_logits(model, text)[length - 1 :]
        assert_close(running, whole[row])


@every_model
def test_greedy_search_in_a_graph_is_a_loop_over_running_text(seed, name):
    """One graph for prompts of any length."""
    model = model_of(name)
    search = tf.function(
        lambda source: GreedySearch()(
            model, {"source_ids": source}, tf.fill(tf.shape(source)[:1], 6)
        ).ids[:, 0],
        input_signature=[tf.TensorSpec((None, None), tf.int32)],
        autograph=False,
    )
    source, answers = prompts(), []
    for row in source:
        text, answer = [*row[row != PAD]], []
        while len(answer) < 6 and END not in answer:
            last = running_logits(model, text)[-1]
            last[[PAD, START]] = -np.inf
            answer.append(last.argmax())
            text.append(answer[-1])
        answers.append(answer)
    for first, ids in enumerate((source, source[1:, :2], source[2:, :1])):
        found = [[*ids[ids != PAD]] for ids in search(ids).numpy()]
        assert found == answers[first:]


@every_model
def test_beams_keep_their_own_texts(seed, name):
    model, inputs = model_of(name), {"source_ids": prompts()}
    limits = tf.fill(len(LENGTHS), 4)
    best = BeamSearch(3, length_penalty=0.0)(model, inputs, limits, n_best=3)
    for answer in range(3):
        ids = best.ids[:, answer]
        shifted = tf.pad(ids, [[0, 0], [1, 0]], constant_values=START)[:, :-1]
        logits = model({**inputs, "target_ids": shifted.numpy()})
        real = tf.cast(ids != PAD, tf.float32)
        scores = sequence_scores(logits, ids, real, length_penalty=0.0)
        np.testing.assert_allclose(best.scores[:, answer], scores, atol=1e-4)


@pytest.mark.parametrize("name", [slow("rotary"), slow("learned"), "lstm"])
def test_a_file_has_the_same_model(seed, name, tmp_path):
    model = model_of(name)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.get_config() == model.get_config()
    inputs = {"source_ids": prompts(), "target_ids": targets()}
    np.testing.assert_array_equal(loaded(inputs), model(inputs))


@pytest.mark.parametrize("make", [transformer, lstm])
def test_keras_can_clone_its_layers(make):
    clone = keras.models.clone_model(make())
    assert {"joined", "tail"} <= {layer.name for layer in clone.layers}


@pytest.mark.parametrize("policy", HALF_POLICIES)
@every_model
def test_half_precision(seed, name, policy):
    """The state keeps its types, as a loop in a graph needs."""
    model, source, target = model_of(name), prompts(), targets()
    half = CASES[name](dtype=policy)
    half.set_weights(model.get_weights())
    found = half({"source_ids": source, "target_ids": target})
    assert found.dtype == "float32"
    expected = model({"source_ids": source, "target_ids": target})
    np.testing.assert_allclose(found, expected, atol=0.2)
    np.testing.assert_allclose(
        logits_of_steps(half, source, target), found, atol=0.1
    )

    first = half.encode({"source_ids": source})
    _, then = half.decode_step(target[:, 0], first)
    types = [
        keras.tree.map_structure(keras.ops.dtype, s) for s in (first, then)
    ]
    assert types[0] == types[1]


# Influence.


@every_case
def test_the_future_is_not_read(seed, name):
    """Equal to the bit."""
    model = model_of(name)
    ids = np.random.randint(END + 1, VOCAB, 7)
    texts = np.tile(ids, (6, 1))
    is_changed = np.arange(7) > np.arange(6)[:, None]
    changed = (ids - END) % (VOCAB - END - 1) + END + 1
    before, after = (
        np.array(model.loss_outputs({"target_ids": each}, training=False))
        for each in (texts, np.where(is_changed, changed, texts))
    )
    np.testing.assert_array_equal(after[~is_changed], before[~is_changed])
    for row, changes in enumerate(is_changed):
        assert (after[row, changes] != before[row, changes]).any()


def test_a_step_attends_to_the_last_positions_alone(seed):
    """Those of training: before them, a prompt has no influence."""
    model = transformer(num_layers=1, max_length=4)
    text = np.random.randint(END + 1, VOCAB, (1, 9))
    start = np.array([[START]])
    whole = logits_of_steps(model, text, start)
    assert_close(logits_of_steps(model, text[:, -4:], start), whole)
    assert np.abs(logits_of_steps(model, text[:, -3:], start) - whole).max() > (
        1e-4
    )
    padded = np.pad(text, [(0, 1), (0, 2)], constant_values=PAD)
    padded[1] = np.arange(11) % 3 + END + 1
    assert_close(logits_of_steps(model, padded, start[[0, 0]])[:1], whole)


@pytest.mark.parametrize("window", [None, 2])
def test_the_whole_sequence_attends_to_them_too(seed, window):
    """So answers and prompts that are longer have the score of their steps."""
    model = transformer(max_length=4, window=window)
    prompts = np.random.randint(END + 1, VOCAB, (2, 7))
    prompts[1, 2:] = PAD
    targets = np.random.randint(END + 1, VOCAB, (2, 7))
    targets[:, 0] = START
    steps = logits_of_steps(model, prompts, targets)
    whole = model({"source_ids": prompts, "target_ids": targets})
    assert_close(whole, steps)


def test_learned_positions_after_the_last_are_finite(seed):
    model = transformer(positions="learned", max_length=4)
    text = np.random.randint(END + 1, VOCAB, (1, 9))
    found = logits_of_steps(model, text[:, :4], text)
    assert np.isfinite(found).all()


def test_prompts_beside_a_gpu(seed, request):
    """Their padding comes first, which cuDNN alone would refuse."""
    model = model_of("lstm")
    inputs = {"source_ids": prompts(), "target_ids": targets()}
    state, logits = model.encode(inputs), model(inputs)
    by_cudnn = request.getfixturevalue("simulated_gpu")
    again = model.encode(inputs)
    keras.tree.map_structure(assert_close, again["states"], state["states"])
    assert_close(model(inputs), logits)
    assert by_cudnn == ["lstm"] * 2 * model.num_layers


# Learning.


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [transformer, lstm],
    ids=["transformer", "lstm"],
)
def test_training_lowers_the_loss(seed, make):
    ids = np.array([START, 5, 6, 7, 8, END] * 20, "int32")
    batches = running_text_batches(ids, batch_size=8, length=6, seed=seed)
    model = make(num_layers=1, dropout=0.1)
    model.compile(keras.optimizers.Adam(0.05))
    logs = model.fit(
        batches, steps_per_epoch=15, epochs=3, shuffle=False, verbose=0
    )
    first, *_, last = logs.history["loss"]
    assert last < first / 2


@pytest.mark.slow  # to trace the step for two devices and two micro-batches
@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_two_devices_equal_one(make, two_devices):
    np.random.seed(5)
    batches = []
    for size in (4, 3, 5, 1, 2):
        ids = np.random.randint(END + 1, VOCAB, (size, 6))
        weights = np.ones((size, 5), "float32")
        batches.append(({"target_ids": ids[:, :-1]}, ids[:, 1:], weights))
    expected = few_steps(make, batches, accumulation_steps=2)
    with two_devices.scope():
        found = few_steps(make, batches, accumulation_steps=2)
    check_same_steps(found, expected, atol=1e-4)


# Errors.


@pytest.mark.parametrize(
    ("make", "arguments", "message"),
    [
        (transformer, {"positions": "all"}, "positions='all'"),
        (transformer, {"model_dim": 7}, "model_dim=7, num_heads=2"),
        (transformer, {"model_dim": 6}, "even key_dim. Received: key_dim=3"),
        (transformer, {"max_length": 0}, "max_length=0"),
        (transformer, {"window": -1}, "window=-1"),
        (transformer, {"dropout": 1.5}, "dropout=1.5"),
        (lstm, {"units": 0}, "units=0"),
        (lstm, {"num_layers": 1.5}, "num_layers=1.5"),
        (lstm, {"dropout": -1}, "dropout=-1"),
    ],
)
def test_wrong_arguments(make, arguments, message):
    with pytest.raises(ValueError, match=message):
        make(**arguments)


def test_learned_positions_have_an_end():
    model = transformer(positions="learned", max_length=4)
    with pytest.raises(ValueError, match="max_length=4"):
        running_logits(model, [5] * 5)
