import functools

import numpy as np
import pytest
from keras import ops

from kseq.control_tokens import START
from kseq.user_error import ArgumentError
from tests.models.seq2seq_systems import convolutional, lstm, transformer

MODELS = {
    "lstm": lstm,
    "transformer": functools.partial(transformer, num_decoder_layers=1),
    "convolutional": convolutional,
}
every_model = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
ONES = np.ones((3, 5), "int32")


def logits_of(model, source, target, training):
    target = np.where(np.arange(5) > 0, target, START)
    inputs = {"source_ids": source, "target_ids": target}
    return ops.convert_to_numpy(model(inputs, training=training))


def difference(model, source=5 * ONES, target=5 * ONES, training=True):
    """That other pieces make to the logits of the last position."""
    before = logits_of(model, 4 * ONES, 4 * ONES, training)
    return abs(before - logits_of(model, source, target, training))[:, -1].max()


@every_model
def test_pieces_of_both_sides_are_dropped_in_training_only(seed, make):
    model = make(piece_dropout=1.0)

    assert difference(model) == 0
    assert difference(model, target=4 * ONES, training=False) > 1e-4
    assert difference(model, source=4 * ONES, training=False) > 1e-4


@every_model
def test_some_pieces_are_dropped(seed, make):
    model = make(piece_dropout=0.5)
    trained = logits_of(model, 4 * ONES, 4 * ONES, training=True)

    assert abs(trained[0] - trained[1]).max() > 1e-4


@every_model
def test_models_without_it_are_as_before(seed, make):
    model, dropping = make(dropout=0.1), make(dropout=0.1, piece_dropout=0.1)

    assert "piece_dropout" not in model.get_config()
    assert not any("piece_dropout" in each.path for each in model.variables)
    assert len(dropping.variables) == len(model.variables) + 1
    again = type(dropping).from_config(dropping.get_config())
    assert again.piece_dropout == 0.1


@every_model
def test_bad_rates(make):
    with pytest.raises(ArgumentError, match=r"Received: piece_dropout=1\.5"):
        make(piece_dropout=1.5)
