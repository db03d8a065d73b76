import pytest

from kseq.models import (
    LSTMLM,
    ConvSeq2Seq,
    LSTMSeq2Seq,
    Transformer,
    TransformerLM,
)
from kseq.training.model_summary import model_summary, training_operations
from tests.slow import slow


def build(vocab_size=24, model_dim=16, ffn_dim=24, dtype="mixed_bfloat16"):
    return TransformerLM(
        vocab_size,
        num_layers=1,
        model_dim=model_dim,
        ffn_dim=ffn_dim,
        num_heads=2,
        dtype=dtype,
    )


def test_sizes_that_do_not_fit_are_named(reported_gpu):
    model = build(vocab_size=27, model_dim=24, ffn_dim=12)
    size, line = model_summary(model).splitlines()
    assert size.startswith("TransformerLM: ")
    assert size.endswith(" parameters, a vocabulary of 27 pieces")
    assert "multiples of 8" in line
    assert line.endswith("vocab_size=27, ffn_dim=12, model_dim / num_heads=12")


def test_nothing_where_all_fit(reported_gpu):
    assert "\n" not in model_summary(build())


def test_nothing_in_full_precision(reported_gpu):
    assert "\n" not in model_summary(build(vocab_size=27, dtype="float32"))


def test_both_vocabularies_are_named():
    model = LSTMSeq2Seq(27, 35, embedding_dim=2, units=2, attention=None)
    text = model_summary(model)
    assert text.endswith(", a vocabulary of 27 and one of 35 pieces")


def test_nothing_without_a_gpu():
    assert "\n" not in model_summary(build(vocab_size=27))


@pytest.mark.parametrize(
    ("layers", "millions", "operations"),
    [(1, 26, "157.7"), slow(6, 63, "377.9")],  # building six takes seconds
)
def test_operations_of_the_base_model_of_the_paper(
    layers, millions, operations
):
    """Vaswani et al. 2017, table 3: 65 million parameters, counted by hand."""
    model = Transformer(
        *(37_000, 37_000),
        num_encoder_layers=layers,
        num_decoder_layers=layers,
        model_dim=512,
        ffn_dim=2048,
        num_heads=8,
        share_embeddings=True,
    )
    attention, feed_forward = 4 * 512**2, 2 * 512 * 2048
    encoder = layers * (attention + feed_forward)
    decoder = layers * (2 * attention + feed_forward)
    outputs = 37_000 * 512
    assert training_operations(model) == 6 * (encoder + decoder + outputs)
    # Biases, and normalization of each sublayer and at the ends.
    biases = layers * ((4 + 8) * 512 + 2 * (2048 + 512))
    norms = (layers * (2 + 3) + 2) * 2 * 512
    parameters = encoder + decoder + outputs + biases + norms
    assert model.count_params() == parameters
    assert round(parameters / 1e6) == millions
    assert model_summary(model).startswith(
        f"Transformer: {operations} MFLOPs of training for a token, {millions},"
    )


def test_operations_of_what_is_shared_or_recurrent():
    def operations(**arguments):
        return training_operations(
            TransformerLM(
                *(8,),
                num_layers=3,
                model_dim=8,
                ffn_dim=8,
                num_heads=2,
                **arguments,
            )
        )

    assert operations(share_layers=True) == operations()
    lstm = LSTMLM(8, num_layers=1, embedding_dim=4, units=4)
    assert training_operations(lstm) == 0


def test_dropout_is_named():
    sizes = {"source_vocab_size": 27, "target_vocab_size": 27, "dropout": 0.3}
    layers = {"num_encoder_layers": 1, "num_decoder_layers": 1}
    blocks = {"model_dim": 4, "ffn_dim": 4, "num_heads": 2}
    for model in (
        LSTMSeq2Seq(**sizes, embedding_dim=2, units=2, attention=None),
        ConvSeq2Seq(**sizes, **layers, embedding_dim=2, units=2),
        Transformer(**sizes, **layers, **blocks),
    ):
        assert model_summary(model).endswith("pieces, dropout 0.3")
