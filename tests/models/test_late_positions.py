"""Positions past 256, of which bfloat16 has the even ones alone."""

import keras
import numpy as np
import pytest

from kseq.control_tokens import END, START
from kseq.models import ConvSeq2Seq, Transformer, TransformerLM
from tests.slow import slow

VOCAB, LATE = 20, 257
BLOCKS = {"model_dim": 8, "ffn_dim": 8, "num_heads": 2, "max_length": 2 * LATE}
SOURCE = {"source_ids": np.array([[5, 6, END]], "int32")}


def transformer(positions):
    return Transformer(
        *(VOCAB, VOCAB),
        num_encoder_layers=1,
        num_decoder_layers=1,
        positions=positions,
        dtype="mixed_bfloat16",
        **BLOCKS,
    )


def convolutional(_):
    return ConvSeq2Seq(
        *(VOCAB, VOCAB),
        embedding_dim=8,
        units=8,
        num_encoder_layers=1,
        num_decoder_layers=1,
        max_length=2 * LATE,
        dtype="mixed_bfloat16",
    )


@pytest.mark.parametrize(
    ("make", "positions"),
    [
        (transformer, "sinusoidal"),
        pytest.param(transformer, "learned", marks=pytest.mark.slow),
        (convolutional, "learned"),
    ],
)
def test_neighbours_differ(seed, make, positions):
    model = make(positions)
    state = model.encode(SOURCE)

    def logits_at(place):
        later = {**state, "position": state["position"] + place}
        logits, _ = model.decode_step(np.array([7]), later)
        return keras.ops.convert_to_numpy(logits)

    assert not np.array_equal(logits_at(LATE - 1), logits_at(LATE))


@pytest.mark.parametrize("positions", ["sinusoidal", slow("learned")])
def test_a_prompt_and_a_step_are_one_text(seed, positions):
    model = TransformerLM(
        VOCAB,
        num_layers=1,
        positions=positions,
        dtype="mixed_bfloat16",
        **BLOCKS,
    )
    ids = np.random.randint(END + 1, VOCAB, (1, LATE + 1), "int32")
    ids[0, 0] = START
    first = np.array([[START]], "int32")
    whole = model({"source_ids": ids, "target_ids": first})
    step, _ = model.decode_step(first[0], model.encode({"source_ids": ids}))
    np.testing.assert_allclose(step, whole[:, 0], atol=0.05)


def test_rotary_attention_is_at_its_place(seed):
    """A float would be rounded when the block is called."""
    model = transformer("rotary")
    assert "int" in keras.backend.standardize_dtype(
        model.encode(SOURCE)["position"].dtype
    )
