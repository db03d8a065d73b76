import keras
import numpy as np
import pytest
from keras import ops

from kseq.control_tokens import END, PAD, START
from kseq.layers import BahdanauAttention, LuongAttention
from kseq.models import ConvSeq2Seq, LSTMSeq2Seq, Transformer
from tests.slow import slow


def batch_of(task, size, length, vocab_size=14):
    """Strings of random length, and what `task` makes of each."""
    source = np.full((size, length + 1), PAD)
    target = np.full((size, length + 2), PAD)
    for i, count in enumerate(np.random.randint(1, length + 1, size=size)):
        string = np.random.randint(4, vocab_size, size=count)
        source[i, : count + 1] = [*string, END]
        target[i, : count + 2] = [START, *task(string), END]
    inputs = {"source_ids": source, "target_ids": target[:, :-1]}
    return inputs, target[:, 1:], (target[:, 1:] != PAD).astype("float32")


def compiled(model, rate):
    model.compile(keras.optimizers.Adam(rate), clip_norm=1.0)
    return model


def lstm(attention, units=32, **wiring):
    model = LSTMSeq2Seq(
        source_vocab_size=14,
        target_vocab_size=14,
        embedding_dim=16,
        units=units,
        attention=attention,
        **wiring,
    )
    return compiled(model, rate=0.01)


def transformer(**settings):
    model = Transformer(
        source_vocab_size=14,
        target_vocab_size=14,
        num_encoder_layers=2,
        num_decoder_layers=2,
        model_dim=32,
        ffn_dim=64,
        num_heads=4,
        **settings,
    )
    return compiled(model, rate=0.003)


def convolutional():
    model = ConvSeq2Seq(14, 14, embedding_dim=32, units=32, kernel_size=3)
    return compiled(model, rate=0.003)


MODELS = {
    "Bahdanau": lambda: lstm(
        BahdanauAttention(units=32), units=64, order="bahdanau"
    ),
    "Luong": lambda: lstm(LuongAttention("general"), units=64),
    "input feeding": lambda: lstm(
        LuongAttention("scaled_dot"), units=64, input_feeding=True
    ),
    "pre-norm": transformer,
    "post-norm": lambda: transformer(norm="post"),
    "convolutional": convolutional,
    "learned positions": lambda: transformer(
        positions="learned", max_length=16
    ),
}


def right_answers(model, task, length, size=200):
    """The fraction of new strings that greedy decoding gets wholly right."""
    inputs, labels, weights = batch_of(task, size=size, length=length)
    tokens, state = ops.full((size,), START), model.encode(inputs)
    answers = []
    for _ in labels.T:
        logits, state = model.decode_step(tokens, state)
        tokens = ops.argmax(logits, axis=-1)
        answers.append(ops.convert_to_numpy(tokens))
    right = (np.stack(answers, axis=1) == labels) | (weights == 0)
    return right.all(axis=1).mean()


@pytest.mark.parametrize(
    "make_model",
    [
        slow(lambda: lstm(BahdanauAttention(units=16), order="bahdanau")),
        slow(lambda: lstm(BahdanauAttention(units=16), input_feeding=True)),
        lambda: lstm(LuongAttention("general")),  # traced without a loop
        slow(transformer),
        slow(convolutional),
    ],
    ids=["Bahdanau", "input feeding", "Luong", "Transformer", "convolutional"],
)
def test_overfits_one_batch(new_seed, make_model):
    model = make_model()
    batch = batch_of(np.sort, size=8, length=4)
    for _ in range(100):
        report = model.train_on_batch(*batch, return_dict=True)

    assert report["loss"] < 0.1


@pytest.mark.slow
def test_learns_to_reverse(new_seed):
    model = lstm(LuongAttention("general"), input_feeding=True)
    for _ in range(200):
        model.train_on_batch(*batch_of(np.flip, size=64, length=5))

    assert right_answers(model, np.flip, length=5) > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("copy", [False, True])
def test_only_a_pointer_copies_tokens_that_training_never_had(new_seed, copy):
    model = LSTMSeq2Seq(
        *(110, 110),
        embedding_dim=16,
        units=64,
        attention=LuongAttention("general"),
        input_feeding=True,
        copy=copy,
        cell="gru",
    )
    compiled(model, rate=0.005)
    for _ in range(400):
        model.train_on_batch(*batch_of(np.copy, 64, length=5, vocab_size=100))
    tokens = np.random.randint(4, 100, (100, 3))
    tokens[:, 1] = np.random.randint(100, 110, 100)
    ends = np.full((100, 1), END)
    source = np.concatenate([tokens, ends], axis=1)
    target = np.concatenate([np.full((100, 1), START), tokens], axis=1)
    logits = model({"source_ids": source, "target_ids": target})
    found = ops.convert_to_numpy(ops.argmax(logits[:, 1], axis=-1))
    right = (found == tokens[:, 1]).mean()
    # If it had only 20 tokens, training could remember all, and need not copy.
    assert right > 0.8 if copy else right < 0.2


@pytest.mark.slow
@pytest.mark.parametrize("task", [np.copy, np.flip, np.sort])
@pytest.mark.parametrize("make_model", MODELS.values(), ids=MODELS)
def test_learns(new_seed, make_model, task):
    model = make_model()
    for _ in range(1000):
        model.train_on_batch(*batch_of(task, size=64, length=8))

    assert right_answers(model, task, length=8) > 0.9
