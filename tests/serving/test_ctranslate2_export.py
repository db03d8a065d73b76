"""Transformers in CTranslate2's format."""

import re

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf

import kseq
from kseq import layers, models
from kseq.decoding import BeamSearch
from kseq.serving import Generator
from kseq.serving.ctranslate2_export import export_ctranslate2
from kseq.user_error import DiskError, UserError
from tests.slow import slow

ctranslate2 = pytest.importorskip("ctranslate2")

LINES = ["a rose is a rose", "is a rose", "eine Rose ist eine Rose"]
SIZES = {
    "num_encoder_layers": 2,
    "num_decoder_layers": 1,
    "model_dim": 16,
    "ffn_dim": 24,
    "num_heads": 2,
}


def generator_of(vocab_sizes=(280, 280), **options):
    source, target = (kseq.data.Tokenizer.train(LINES, n) for n in vocab_sizes)
    model = models.Transformer(*vocab_sizes, **SIZES, **options)
    for weight in model.weights:  # biases, too
        weight.assign_add(np.random.normal(0, 0.2, weight.shape))
    preprocessor = kseq.data.TextPreprocessor(source, max_length=40)
    return Generator(model, preprocessor, target, max_length=40)


@pytest.fixture(scope="module")
def generator():
    return generator_of()


@pytest.mark.parametrize(
    ("vocab_sizes", "options"),
    [
        (
            (280, 281),
            {
                "norm": "post",
                "activation": "silu",
                "output_bias": True,
                "norm_epsilon": 0.1,
                "source_end": False,
            },
        ),
        (
            (280, 280),
            {
                "positions": "rotary",
                "normalization": "rms",
                "activation": "swiglu",
                "num_kv_heads": 1,
            },
        ),
        slow((280, 280), {"activation": "gelu", "positions": "none"}),
        slow((280, 280), {"share_embeddings": True}),
        slow((281, 280), {"tie_output": False, "positions": "learned"}),
    ],
)
def test_log_probabilities_are_those_of_kseq(
    seed, vocab_sizes, options, tmp_path
):
    generator = generator_of(vocab_sizes, **options)
    folder = export_ctranslate2(generator, tmp_path / "new" / "model")
    loaded = ctranslate2.Translator(str(folder))
    source, target = (
        sentencepiece.SentencePieceProcessor(str(folder / f"{side}.model"))
        for side in ("source", "target")
    )
    texts = ["a rose is", "eine Rose", "a"]
    answers = ["is a rose ist", "", "Rose a"]
    found = loaded.score_batch(
        source.encode(texts, out_type=str), target.encode(answers, out_type=str)
    )
    expected = generator.signatures["score"](
        text=tf.constant(texts), target=tf.constant(answers)
    )
    np.testing.assert_allclose(
        [sum(each.log_probs) for each in found], expected["log_prob"], atol=1e-4
    )
    np.testing.assert_array_equal(
        [len(each.log_probs) for each in found], expected["tokens"]
    )


def test_the_readme_answers(generator, tmp_path, monkeypatch, capsys):
    generator = generator.with_search(BeamSearch(3, length_penalty=0.0))
    folder = export_ctranslate2(generator, tmp_path / "model")
    monkeypatch.chdir(folder)
    [code] = re.findall(
        "```python\n(.*?)```", (folder / "README.md").read_text(), re.S
    )
    exec(code, {})
    assert re.fullmatch(r"\['.*'\]\n|\[\".*\"\]\n", capsys.readouterr().out)
    assert "beam_size=3,\n    length_penalty=0," in code


def test_the_tokenizers_of_the_folder_read_unicode_like_kseq(
    generator, tmp_path
):
    folder = export_ctranslate2(generator, tmp_path / "model")
    texts = [
        *("a \u2581rose", "\ufdd0 \uffff", "\ufdd1", "line\u2028x\u0085y"),
        *(
            "e\u0301 😀",
            "a\u00a0b\u3000c",
            "nul\0x",
            "שלום",
            "a\nb",
            "</s> <s>",
        ),
        *(f" {text}\r " for text in ("a  b", "\u3000a")),
    ]
    tokenizer = generator.tokenizers["target"]
    ids = tokenizer.tokenize(texts)
    answers = tokenizer.detokenize(ids.to_tensor()).numpy()
    loaded = sentencepiece.SentencePieceProcessor(str(folder / "target.model"))
    # What the README says that kseq does before.
    read = [
        re.sub("[\ufdd0\ufdd1]", "\ufffd", text.replace("\r", "")).strip(
            "\t\n\v\f "
        )
        for text in texts
    ]
    pieces = loaded.encode(read, out_type=str)
    assert [list(map(loaded.piece_to_id, each)) for each in pieces] == (
        ids.to_list()
    )
    assert loaded.decode(pieces) == [answer.decode() for answer in answers]


def lstm():
    tokenizer = kseq.data.Tokenizer.train(LINES, 280)
    model = models.LSTMSeq2Seq(
        280, 280, embedding_dim=4, units=4, attention=layers.LuongAttention()
    )
    return Generator(model, kseq.data.TextPreprocessor(tokenizer), tokenizer)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lstm, "the class LSTMSeq2Seq"),
        (lambda: generator_of(window=3), "windows of self-attention"),
        (
            lambda: generator_of(positions="relative", norm="both"),
            "norm='both' instead of 'pre' or .*; positions='relative' instead",
        ),
    ],
)
def test_what_it_cannot_run(make, message, tmp_path):
    with pytest.raises(UserError, match=message):
        export_ctranslate2(make(), tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_nothing_is_overwritten_or_left_half_written(
    generator, tmp_path, monkeypatch
):
    (tmp_path / "model").mkdir()
    with pytest.raises(UserError, match="exists"):
        export_ctranslate2(generator, tmp_path / "model")

    def full(self, *_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_bytes", full)
    with pytest.raises(DiskError, match="No space left"):
        export_ctranslate2(generator, tmp_path / "other")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
