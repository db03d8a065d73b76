import math
import types

import keras
import numpy as np
import pytest

from kseq.control_tokens import START
from kseq.data import Tokenizer, running_ids
from kseq.evaluation import Texts
from kseq.models import LSTMLM
from tests.slow import slow

DOCUMENTS = ["a rose\nis a rose\n", "b", " c\n\n" * 30]


class Writer:
    """A language model whose continuations are known."""

    def __init__(self):
        tokenizer = Tokenizer.train(DOCUMENTS, 99, "char", verbatim=True)
        size = tokenizer.vocab_size
        model = LSTMLM(size, num_layers=1, embedding_dim=4, units=5)
        for weight in model.trainable_variables:
            weight.assign(keras.random.normal(weight.shape))
        self.served = types.SimpleNamespace(model=model, tokenizer=tokenizer)
        self.prompts = None

    def __call__(self, prompts):
        self.prompts = prompts
        return [f"<{prompt}>" for prompt in prompts]


@pytest.fixture
def writer(seed):
    return Writer()


def losses_of(served, length):
    """-log p of every token but START, from those of its row."""
    ids = running_ids(DOCUMENTS, served.tokenizer)
    losses = []
    for start in range(0, len(ids) - 1, length):
        row = ids[start : start + length + 1]
        inputs = {"target_ids": row[None, :-1]}
        logits = np.array(served.model.loss_outputs(inputs, training=False))[0]
        powers = np.exp(logits.astype("float64"))
        p = powers / powers.sum(axis=-1, keepdims=True)
        losses += [
            -math.log(p[t, token])
            for t, token in enumerate(row[1:])
            if token != START
        ]
    return losses


@pytest.mark.parametrize("length", [slow(4), 500])
def test_scores_agree_with_numpy(writer, length):
    losses = losses_of(writer.served, length)
    characters = sum(map(len, DOCUMENTS))
    assert len(losses) == characters + len(DOCUMENTS)
    texts = Texts(writer, DOCUMENTS, length)
    done = []

    scores = texts.scores(done.append)

    assert scores == pytest.approx(
        {
            "loss": np.mean(losses),
            "perplexity": math.exp(np.mean(losses)),
            "bits_per_character": sum(losses) / math.log(2) / characters,
        },
        rel=1e-4,
    )
    assert sum(done) == len(texts) == 3
    loss, perplexity, bits = texts.report()
    assert loss == (
        f"loss {scores['loss']:.4f}  "
        f"tokens:{len(losses)}|characters:{characters}"
    )
    assert perplexity.startswith("perplexity ")
    assert bits.startswith("bits per character ")
    assert texts.pictures(3) == {}


def test_continuations_are_shown_beside_the_text(writer):
    texts = Texts(writer, DOCUMENTS, 500, samples=4)
    texts.scores()
    whole = "".join(DOCUMENTS)
    rows = texts.rows(3)
    assert len(rows) == 3
    assert len(writer.prompts) == 4
    for prompt, text, output in rows:
        assert prompt + text in whole
        assert len(prompt) == 40
        assert output == f"<{prompt}>"
    assert [len(text) for _, text, _ in rows[:2]] == [40, 40]
    assert len(rows[0]) == len(texts.columns)


def test_the_share_of_valid_texts(writer):
    texts = Texts(
        writer,
        ["abcd", "ab", "aaaa"],
        500,
        samples=2,
        is_valid=lambda text: text == "a<a>",
    )
    assert texts.scores()["valid"] == 0.5
    assert writer.prompts == ["ab", "a"]
    assert texts.report()[-1] == "valid 50.00%  texts:2"
    assert texts.rows(9) == [("ab", "cd", "<ab>"), ("a", "b", "<a>")]


@pytest.mark.parametrize("documents", [[], ["", ""]])
def test_there_must_be_a_document_with_text(writer, documents):
    with pytest.raises(ValueError, match="Received: documents="):
        Texts(writer, documents, 5)


def test_there_must_be_a_sample(writer):
    with pytest.raises(ValueError, match="Received: samples=0"):
        Texts(writer, ["text"], 5, samples=0)
