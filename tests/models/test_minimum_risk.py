import collections
import contextlib
import functools
import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf

from kseq.control_tokens import END, PAD, START
from kseq.models import BinaryRNN, DualEncoder, LSTMSeq2Seq
from kseq.models.minimum_risk import gleu, risk_losses, sample_answers
from kseq.user_error import ArgumentError
from tests.gpu_memory import GraphMemory, has_gpu_kernels
from tests.models.few_steps import check_same_steps, few_steps
from tests.models.seq2seq_systems import (
    SYSTEMS,
    VOCAB,
    batch_of,
    lstm,
    text,
    transformer,
    with_padding,
)
from tests.models.test_every_seq2seq import check_it_resumes
from tests.models.test_gpu_kernels import read_on_the_host
from tests.slow import others_slow, slow

RISK = {"minimum_risk": 0.7, "risk_samples": 3}


def ngrams(ids):
    ids = [token for token in ids if token != PAD]
    return collections.Counter(
        tuple(ids[start : start + n])
        for n in (1, 2, 3, 4)
        for start in range(len(ids) - n + 1)
    )


def score(answer, reference):
    ours, theirs = ngrams(answer), ngrams(reference)
    return (ours & theirs).total() / max(ours.total(), theirs.total(), 1)


def texts(rows, length):
    """Rows of few different tokens, which repeat, and END."""
    ids = np.random.randint(END + 1, END + 4, (rows, length))
    ends = np.random.randint(0, length, (rows, 1))
    places = np.arange(length)
    ids = np.where(places == ends, END, ids)
    return np.where(places > ends, PAD, ids)


@pytest.mark.parametrize(
    ("length", "other"), [(1, 1), (2, 9), (9, 3), (12, 12), (40, 30)]
)
def test_gleu_is_that_of_a_count(seed, length, other):
    answers, references = texts(15, length), texts(5, other)
    answers[0], references[0] = PAD, PAD
    answers = answers.reshape(5, 3, length)
    expected = [
        [score(answer, reference) for answer in own]
        for own, reference in zip(answers, references, strict=True)
    ]
    found = gleu(tf.constant(answers), tf.constant(references)).numpy()
    np.testing.assert_allclose(found, expected, atol=1e-6)
    same = gleu(tf.constant(references[:, None]), tf.constant(references))
    np.testing.assert_array_equal(same[1:], 1.0)


def compiled(make, samples=3, updates=5):
    model = make()
    model.compile(
        keras.optimizers.SGD(1.0),
        minimum_risk=1.0,
        risk_samples=samples,
        run_eagerly=True,
    )
    model.optimizer.iterations.assign(updates)
    return model


def answers_of(model, inputs, labels):
    inputs = {name: tf.constant(value) for name, value in inputs.items()}
    return sample_answers(model, inputs, tf.constant(labels)).numpy()


@pytest.mark.parametrize("name", others_slow(SYSTEMS, ["lstm", "transformer"]))
def test_answers_are_sampled_as_the_model_predicts(seed, name):
    """First tokens have the probabilities of the model; limits are kept."""
    make, source = SYSTEMS[name]
    model = compiled(make, samples=1000)
    inputs, labels, _ = batch_of(source, 4)
    answers = answers_of(model, inputs, labels)
    first = {**inputs, "target_ids": np.full((4, 1), START)}
    expected = keras.ops.softmax(model(first)).numpy()[:, 0]
    for row, probabilities in zip(answers, expected, strict=True):
        counts = np.bincount(row[:, 0], minlength=len(probabilities))
        allowed = np.array(probabilities)
        allowed[[PAD, START]] = 0.0  # no answer has them
        allowed /= allowed.sum()
        error = np.sqrt(allowed * (1 - allowed) / 1000)
        assert (abs(counts / 1000 - allowed) <= 5 * error + 1e-3).all()

    lengths = (answers != PAD).sum(axis=2)
    tokens = (labels != PAD).sum(axis=1)
    assert (lengths <= (tokens + tokens // 2 + 5)[:, None]).all()
    last = np.take_along_axis(answers, lengths[..., None] - 1, axis=2)[..., 0]
    is_whole = lengths < (tokens + tokens // 2 + 5)[:, None]
    assert (last[is_whole] == END).all()
    assert not (answers == END)[..., :-1][answers[..., 1:] != PAD].any()


def test_answers_depend_on_their_row_and_the_update_alone(seed):
    model = compiled(functools.partial(lstm, "general", "feeding"))
    inputs, labels, _ = batch_of(text, 12)
    answers = answers_of(model, inputs, labels)
    rows = [5, 11, 2]
    some = {name: values[rows] for name, values in inputs.items()}
    part = answers_of(model, some, labels[rows])
    np.testing.assert_array_equal(part, answers[rows, :, : part.shape[2]])
    padded = with_padding(inputs)
    wide = answers_of(model, padded, np.pad(labels, [(0, 0), (0, 2)]))
    np.testing.assert_array_equal(wide, answers)
    model.optimizer.iterations.assign(6)
    assert (answers_of(model, inputs, labels)[:, :, 0] != answers[..., 0]).any()


def all_answers(longest):
    """Every answer in three tokens and END, END or as long as it may be."""
    tokens = (1, 4, 5)
    found = [
        [*start, *end]
        for length in range(longest)
        for start in itertools.product(tokens, repeat=length)
        for end in ([END], *([[t] for t in tokens] * (length == longest - 1)))
    ]
    return np.array([row + [PAD] * (longest - len(row)) for row in found])


def test_the_gradient_is_that_of_the_expected_risk(seed):
    """Of a sum over all answers, on average over many samples."""
    make = functools.partial(
        LSTMSeq2Seq, 6, 6, embedding_dim=3, units=4, attention=None
    )
    model = compiled(make, samples=1000)
    # No answer has PAD or START: their probability must not count either.
    kernel, bias = model.projection.get_weights()
    bias[[PAD, START]] = -30.0
    model.projection.set_weights([2 * kernel, bias])
    inputs = {"source_ids": [[4, 5, END]], "target_ids": [[START]]}
    inputs = {name: tf.constant(ids) for name, ids in inputs.items()}
    labels = tf.constant([[END]])

    answers = all_answers(longest=1 + 5)
    risks = [1 - score(answer, [END]) for answer in answers]
    target = np.pad(answers, [(0, 0), (1, 0)], constant_values=START)[:, :-1]
    rows = {
        "source_ids": np.repeat(inputs["source_ids"], len(answers), axis=0),
        "target_ids": target,
    }
    weights = [variable.value for variable in model.trainable_variables]
    with tf.GradientTape() as tape:
        log_probs = keras.ops.log_softmax(model(rows))
        chosen = tf.gather(log_probs, answers, batch_dims=2)
        chosen = tf.reduce_sum(tf.where(answers == PAD, 0.0, chosen), axis=1)
        risk = tf.reduce_sum(tf.exp(chosen) * risks)
    assert float(tf.reduce_sum(tf.exp(chosen))) == pytest.approx(1, abs=1e-5)
    expected = flat(tape.gradient(risk, weights))

    found, values = [], []
    for update in range(20):
        model.optimizer.iterations.assign(update)
        answers = sample_answers(model, inputs, labels)
        with tf.GradientTape() as tape:
            [value] = risk_losses(model, inputs, labels, answers)
        found.append(flat(tape.gradient(value, weights)))
        values.append(value)
    assert np.mean(values) == pytest.approx(float(risk), abs=0.01)
    error = np.std(found, axis=0) / np.sqrt(20)
    assert np.linalg.norm(expected) > 10 * np.linalg.norm(error)
    assert (abs(np.mean(found, axis=0) - expected) <= 5 * error + 1e-6).all()


def flat(gradients):
    return np.concatenate(
        [np.ravel(tf.convert_to_tensor(each)) for each in gradients]
    )


@pytest.mark.parametrize("name", others_slow(SYSTEMS, ["transformer"]))
def test_the_loss_is_mixed_with_the_risk_of_the_row(seed, name):
    make, source = SYSTEMS[name]
    model = compiled(make)
    data = batch_of(source, 5)
    inputs, labels, weights = data
    answers = answers_of(model, inputs, labels)
    risks = [
        np.mean([1 - score(answer, reference) for answer in own])
        for own, reference in zip(answers, labels, strict=True)
    ]
    expected = np.average(
        np.broadcast_to(np.reshape(risks, (-1, 1)), labels.shape),
        weights=weights,
    )
    logs = model.train_on_batch(*data, return_dict=True)
    assert logs["loss"] == pytest.approx(expected, rel=1e-5)
    assert logs["risk"] == pytest.approx(expected, rel=1e-5)


def test_half_of_a_weight_is_half_of_each(seed):
    data = batch_of(text, 5)
    losses = []
    for weight in (0.0, 1.0, 0.5):
        keras.utils.set_random_seed(3)
        model = transformer()
        model.compile("sgd", minimum_risk=weight, run_eagerly=True)
        losses.append(float(model.loss_and_gradients(data)[0]))
    assert losses[2] == pytest.approx((losses[0] + losses[1]) / 2, rel=1e-5)


@pytest.mark.parametrize(
    ("devices", "parts", "jit_compile"),
    [(1, 3, False), slow(2, 2, False), slow(1, 1, True), slow(2, 1, True)],
)
def test_devices_micro_batches_and_xla_change_nothing(
    two_devices, devices, parts, jit_compile
):
    np.random.seed(5)
    batches = [batch_of(text, size) for size in (6, 5)[:devices]]
    expected = few_steps(transformer, batches, run_eagerly=True, **RISK)
    scope = two_devices.scope if devices == 2 else contextlib.nullcontext
    settings = {"accumulation_steps": parts, "jit_compile": jit_compile}
    settings["run_eagerly"] = devices == 1 and not jit_compile
    with scope():
        found = few_steps(transformer, batches, **settings, **RISK)
    check_same_steps(found, expected, atol=1e-4)


def test_more_padding_changes_no_update(seed):
    batches = [batch_of(text, 4)]
    [(inputs, labels, weights)] = batches
    wide = (
        with_padding(inputs),
        *(np.pad(x, [(0, 0), (0, 2)]) for x in (labels, weights)),
    )
    found = [
        few_steps(transformer, data, run_eagerly=True, **RISK)
        for data in (batches, [wide])
    ]
    found[1][0]["padding"] = found[0][0]["padding"]
    check_same_steps(*found, atol=1e-5)


@pytest.mark.slow  # to trace a loop
@pytest.mark.skipif(not has_gpu_kernels(), reason="no kernels for GPUs")
@pytest.mark.parametrize("name", ["lstm", "transformer"])
def test_what_is_sampled_and_its_risk_stay_on_a_gpu(name):
    model = SYSTEMS[name][0]()
    model.compile(keras.optimizers.SGD(1.0), **RISK)
    specs = {
        name: tf.TensorSpec((None, None), tf.int32)
        for name in ("source_ids", "target_ids")
    }

    @tf.function
    def risks(inputs, labels):
        answers = sample_answers(model, inputs, labels)
        return risk_losses(model, inputs, labels, answers)

    found = risks.get_concrete_function(specs, specs["target_ids"])
    memory = GraphMemory(found)
    data, _ = read_on_the_host(memory)
    # Ids as the model reads them, once a step.
    assert data <= {"int32 Less.x"}
    assert not memory.without_kernel


@pytest.mark.slow  # two trainings
def test_a_stopped_training_resumes_to_the_bit(tmp_path):
    np.random.seed(5)
    batches = [batch_of(text, size) for size in (4, 3, 5)]
    make = functools.partial(transformer, dropout=0.5)
    check_it_resumes(make, batches, tmp_path, after=2, **RISK)


def test_an_evaluation_samples_nothing(seed):
    data, found = batch_of(text, 5), []
    for weight in (0.0, 1.0):
        keras.utils.set_random_seed(3)
        model = transformer()
        model.compile("sgd", minimum_risk=weight, run_eagerly=True)
        found.append(model.test_on_batch(*data, return_dict=True))
    assert found[0] == found[1]
    assert "risk" not in found[0]


def test_a_saved_model_goes_on_with_it(tmp_path):
    model = transformer()
    model.compile("sgd", **RISK)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert (loaded.minimum_risk, loaded.risk_samples) == (0.7, 3)


@pytest.mark.slow  # a training
def test_the_risk_falls(seed):
    """Of copies, in a model that has never seen a reference."""
    model = lstm("dot", source_vocab_size=VOCAB, units=16)
    model.compile(keras.optimizers.Adam(0.01), minimum_risk=1.0)
    batches = (copied(64) for _ in range(150))
    logs = model.fit(
        batches, steps_per_epoch=50, epochs=3, verbose=0, shuffle=False
    )
    risks = logs.history["risk"]
    assert risks[2] < risks[0] - 0.15, risks


def copied(size):
    inputs, labels, weights = batch_of(text, size)
    return {**inputs, "source_ids": labels}, labels, weights


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("minimum_risk", -0.1),
        ("minimum_risk", 1.5),
        ("minimum_risk", float("nan")),
        ("minimum_risk", None),
        ("minimum_risk", "1"),
        ("risk_samples", 1),
        ("risk_samples", 2.5),
        ("risk_samples", 1001),
        ("risk_samples", None),
    ],
)
def test_absurd_values_are_refused(name, value):
    with pytest.raises(ValueError, match=f"Received: {name}={value!r}"):
        transformer().compile("sgd", **{name: value})


def test_models_without_a_decoder_are_refused():
    for model in (
        BinaryRNN(2, 3, keras.layers.SimpleRNNCell(4)),
        DualEncoder(9, 9, embedding_dim=4, units=4, dim=4),
    ):
        with pytest.raises(ArgumentError, match="generates answers"):
            model.compile("sgd", minimum_risk=0.5)
