"""The models of all recipes train beside a GPU as they do without one."""

import operator

import keras
import numpy as np
import pytest
import tensorflow as tf

from kseq.layers import LuongAttention
from kseq.layers.cudnn import needs_cudnn
from kseq.models import LSTMSeq2Seq
from tests.models.one_by_one import one_by_one
from tests.recipe_models import SERVED, batch_of, make_served
from tests.slow import others_slow, slow

# Those that cuDNN runs a part of.
RECURRENT = {
    "translate_lstm",
    "classify_documents hierarchical",
    "classify_documents flat",
    "tag_words lstm",
    "transcribe_speech",
    "transcribe_speech convolution",
    "chat single",
    "chat joined",
    "chat hierarchical",
    "retrieve_answers",
    "write_text lstm",
}
# Those that cuDNN runs all of: no loop is left that XLA would compile.
CUDNN_ALONE = {
    "classify_documents hierarchical",
    "classify_documents flat",
    "tag_words lstm",
    "retrieve_answers",
    "write_text lstm",
}
KINDS = [
    kind if kind == "classify_documents flat" else slow(kind) for kind in SERVED
]


def trained(kind, dtype="float32"):
    """Loss and weights after one step."""
    served = make_served(kind, dtype)
    served.model.compile(keras.optimizers.SGD(1.0))
    loss = served.model.train_step(batch_of(kind, served))["loss"]
    return [float(loss), *served.model.get_weights()]


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_is_the_same(request, kind):
    expected = trained(kind)
    by_cudnn = request.getfixturevalue("simulated_gpu")
    for one, other in zip(trained(kind), expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4)
    assert bool(by_cudnn) == (kind in RECURRENT)


@pytest.mark.parametrize(
    "kind", others_slow(SERVED, ["chat joined", "write_text lstm"])
)
def test_which_models_need_cudnn(request, kind):
    model = make_served(kind).model
    assert not needs_cudnn(model)
    request.getfixturevalue("reported_gpu")
    assert needs_cudnn(model) == (kind in CUDNN_ALONE)


@pytest.mark.parametrize("input_feeding", [False, True])
def test_a_decoder_decides_whether_cudnn_is_needed(reported_gpu, input_feeding):
    model = LSTMSeq2Seq(
        *(9, 9),
        embedding_dim=4,
        units=4,
        attention=LuongAttention(name="attention"),
        input_feeding=input_feeding,
    )
    assert needs_cudnn(model) != input_feeding


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(RECURRENT))
def test_half_precision(simulated_gpu, kind):
    for part in trained(kind, "mixed_bfloat16"):
        assert np.isfinite(part).all()
    assert simulated_gpu


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(RECURRENT))
def test_devices_without_rows(simulated_gpu, two_devices, kind):
    """The last batches of a length have one row: a device gets none."""
    with two_devices.scope():
        served = make_served(kind)
        served.model.compile(keras.optimizers.Adam(0.01), clip_norm=1.0)
    batch = batch_of(kind, served)
    rows = [
        tf.nest.map_structure(operator.itemgetter(slice(size)), batch)
        for size in (1, 3, 1)
    ]
    batches = one_by_one(rows)
    served.model.fit(batches, verbose=0, shuffle=False)
    found = served.model.evaluate(batches, verbose=0, return_dict=True)
    assert np.isfinite(found["loss"])
    assert simulated_gpu
