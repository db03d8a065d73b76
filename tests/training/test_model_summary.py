from kseq.models import TransformerLM
from kseq.training.model_summary import model_summary


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


def test_nothing_without_a_gpu():
    assert "\n" not in model_summary(build(vocab_size=27))
