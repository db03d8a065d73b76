import dataclasses
import functools
import shutil
import types

import numpy as np
import pytest

import kseq
from kseq.command_line.option_types import OptimizerOptions
from kseq.data import DocumentPreprocessor, TextPreprocessor, Tokenizer
from kseq.decoding import GreedySearch
from kseq.layers import LuongAttention
from kseq.models import (
    ConvSeq2Seq,
    HierarchicalAttention,
    LSTMSeq2Seq,
    Transformer,
)
from kseq.runs import RunDirectory, RunError
from kseq.runs.checkpoint_files import write_checkpoint
from kseq.serving import Classifier, Generator
from kseq.training import FineTuning, build_optimizer, freeze
from kseq.user_error import UserError
from tests.slow import slow

OLD = ["ein Hund rennt", "eine Katze schläft", "der Hund schläft"]
NEW = ["ein Pferd rennt", "die Katze frisst", "das Pferd schläft hier"]


@dataclasses.dataclass(frozen=True)
class Config:
    seed: int = 1


def lstm(tokenizer, **sizes):
    sizes = {
        "embedding_dim": 6,
        "units": 8,
        "tie_embeddings": True,
        "ctc": 0.3,
        **sizes,
    }
    return LSTMSeq2Seq(
        *(tokenizer.vocab_size, tokenizer.vocab_size),
        attention=LuongAttention("general", name="attention"),
        **sizes,
    )


def transformer(tokenizer, dropout=0.1):
    return Transformer(
        *(tokenizer.vocab_size, tokenizer.vocab_size),
        num_encoder_layers=1,
        num_decoder_layers=1,
        model_dim=8,
        num_heads=2,
        ffn_dim=8,
        dropout=dropout,
        share_embeddings=True,
    )


def untied(tokenizer):
    sizes = {"model_dim": 8, "num_heads": 2, "ffn_dim": 8}
    return Transformer(
        *(tokenizer.vocab_size, tokenizer.vocab_size),
        num_encoder_layers=1,
        num_decoder_layers=1,
        tie_output=False,
        **sizes,
    )


def convolutional(tokenizer):
    sizes = tokenizer.vocab_size, tokenizer.vocab_size
    return ConvSeq2Seq(*sizes, embedding_dim=6, units=8)


def generator(tokenizer, model):
    preprocessor = TextPreprocessor(tokenizer)
    return Generator(model, preprocessor, tokenizer, GreedySearch())


def classifier(tokenizer, labels, ngrams=0):
    model = HierarchicalAttention(
        vocab_size=tokenizer.vocab_size,
        num_classes=len(labels),
        embedding_dim=6,
        units=4,
        attention_units=4,
        ngrams=ngrams,
    )
    return Classifier(model, DocumentPreprocessor(tokenizer), labels)


def saved(run, served):
    """A run with a checkpoint; it is started where a path is given."""
    if not isinstance(run, RunDirectory):
        run = RunDirectory(run)
        run.start(Config())
    run.save(served)
    values = [variable.value for variable in served.model.variables]
    write_checkpoint(run.checkpoints / "last", 5, keep=1, vars=values)
    return run


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train(OLD, 290)


@pytest.fixture(scope="module")
def other_run(tokenizer, tmp_path_factory):
    """A function: a model, and the folder of a run with its weights.

    It is started from, and never written: tests share it.
    """

    @functools.cache
    def other_run(make):
        served = generator(tokenizer, make(tokenizer))
        return served, saved(tmp_path_factory.mktemp("old"), served).path

    return other_run


def rows_of(served, tokenizer):
    """All of a piece: its embedding and, where there is one, its CTC column."""
    values = {v.path: v.numpy() for v in served.model.variables}
    table = values["target_embedding/embeddings"]
    outputs = ("ctc_logits/kernel", "target_embedding/reverse_embeddings")
    columns = [values[name].T for name in outputs if name in values]
    pieces = tokenizer.pieces(range(tokenizer.vocab_size)).numpy()
    rows = np.concatenate([table, *columns], axis=1)
    return dict(zip(pieces, rows, strict=True))


@pytest.mark.parametrize("make", [lstm, transformer, convolutional])
def test_weights_and_tokenizer_of_a_run_are_kept(
    tmp_path, tokenizer, make, capsys, other_run
):
    old, old_path = other_run(make)
    start = FineTuning(RunDirectory(tmp_path / "new"), old_path)
    kept = start.tokenizer(iter([]), vocab_size=300)
    assert kept.model == tokenizer.model
    new = generator(kept, make(kept))
    start.initialize(new)
    assert (
        capsys.readouterr().out
        == f"Starting from {old_path}: 'last' weights of step 5.\n"
    )
    for a, b in zip(new.model.weights, old.model.weights, strict=True):
        np.testing.assert_array_equal(a, b)


def test_characters_that_a_kept_tokenizer_lacks_are_said(tmp_path, caplog):
    characters = Tokenizer.train(["abc"], 99, "char")
    saved(tmp_path / "old", generator(characters, lstm(characters)))
    start = FineTuning(RunDirectory(tmp_path / "new"), tmp_path / "old")
    assert start.tokenizer(["abc"], 99).model == characters.model
    assert not caplog.messages
    start.tokenizer(["abcdé"], 99)
    [message] = caplog.messages
    assert message.startswith("2 of 6 different characters (33.33% of the")


def test_seeds_of_dropout_are_those_of_the_new_run(
    tmp_path, tokenizer, other_run
):
    _, old = other_run(transformer)
    new = generator(tokenizer, transformer(tokenizer, dropout=0.0))
    FineTuning(RunDirectory(tmp_path / "a"), old).initialize(new)

    new = generator(tokenizer, transformer(tokenizer))
    seeds = [v.numpy() for v in new.model.variables if "int" in v.dtype]
    FineTuning(RunDirectory(tmp_path / "a"), old).initialize(new)
    after = [v.numpy() for v in new.model.variables if "int" in v.dtype]
    assert seeds
    np.testing.assert_array_equal(seeds, after)


class Corpus:
    def lines(self, sides=("source", "target")):
        return {"source": OLD, "target": NEW}.get("".join(sides), OLD + NEW)


def test_one_vocabulary_or_two(tmp_path, tokenizer):
    start = FineTuning(RunDirectory(tmp_path / "new"))
    source, target = start.pair_tokenizers(290).of(Corpus())
    assert source is target
    assert source.model == Tokenizer.train(OLD + NEW, 290).model
    source, target = start.pair_tokenizers(99, ("char", "word")).of(Corpus())
    assert source.model == Tokenizer.train(OLD, 99, "char").model
    assert target.model == Tokenizer.train(NEW, 99, "word").model
    for pieces in ((), ("char",) * 3):
        with pytest.raises(UserError, match="--pieces takes one type"):
            start.pair_tokenizers(99, pieces)


@pytest.mark.parametrize("other", [None, NEW])
def test_one_vocabulary_or_two_as_in_the_other_run(
    tmp_path, tokenizer, other, other_run
):
    words = other and Tokenizer.train(other, 99, "word")
    target = words or tokenizer
    served, _ = other_run(lstm)
    served = Generator(served.model, served.preprocessor, target)
    saved(tmp_path / "old", served)
    start = FineTuning(RunDirectory(tmp_path / "new"), tmp_path / "old")
    both = start.pair_tokenizers(290, ("bpe",)).of(Corpus())
    assert [each.model for each in both] == [tokenizer.model, target.model]
    assert (both[0] is both[1]) == (other is None)


@pytest.mark.parametrize("make", [lstm, transformer, untied, convolutional])
@pytest.mark.parametrize("vocab_size", [290, 296])
def test_a_new_tokenizer_keeps_the_pieces_that_both_have(
    tmp_path, tokenizer, make, vocab_size, other_run
):
    old, old_path = other_run(make)
    run = RunDirectory(tmp_path / "new")
    start = FineTuning(run, old_path, new_tokenizer=True)
    trained = start.tokenizer(NEW, vocab_size)
    assert trained.model == Tokenizer.train(NEW, vocab_size).model
    new = generator(trained, make(trained))
    before, other = rows_of(new, trained), rows_of(old, tokenizer)
    start.initialize(new)

    after = rows_of(new, trained)
    shared = set(after) & set(other)
    assert 260 < len(shared) < len(after)  # control tokens, bytes and more
    for piece, row in after.items():
        expected = other[piece] if piece in shared else before[piece]
        np.testing.assert_array_equal(row, expected)


@pytest.mark.parametrize("is_tied", [True, False])
def test_what_has_as_many_columns_as_there_are_pieces(
    tmp_path, tokenizer, is_tied
):
    """A projection to features is kept as it is; one to pieces has theirs."""
    make = functools.partial(lstm, embedding_dim=290, tie_embeddings=is_tied)
    old = generator(tokenizer, make(tokenizer))
    saved(tmp_path / "old", old)
    run = RunDirectory(tmp_path / "new")
    start = FineTuning(run, tmp_path / "old", new_tokenizer=True)
    trained = start.tokenizer(NEW, 290)
    new = generator(trained, make(trained))
    start.initialize(new)

    before, after = (each.model.projection.kernel for each in (old, new))
    assert np.array_equal(before, after) == is_tied
    np.testing.assert_array_equal(before[:, :260], after[:, :260])


def test_labels_that_both_have_are_kept(tmp_path, tokenizer):
    old = classifier(tokenizer, ["good", "bad", "mixed"])
    saved(tmp_path / "old", old)
    new = classifier(tokenizer, ["bad", "good"])
    FineTuning(RunDirectory(tmp_path / "new"), tmp_path / "old").initialize(new)

    inputs = old.preprocessor(["Ein Hund. Er rennt."]).inputs
    before, after = (np.array(each.model(inputs))[0] for each in (old, new))
    good, bad, _ = before  # the difference of logits is that of log odds
    assert good - bad == pytest.approx(after[1] - after[0], abs=1e-5)


@pytest.mark.parametrize(("old", "new"), [(0, 2), (2, 0), slow(2, 1)])
def test_a_bag_of_ngrams_is_no_part_of_the_start(tmp_path, tokenizer, old, new):
    other = classifier(tokenizer, ["good", "bad"], old)
    for weight in other.model.logits.weights:
        weight.assign(weight + 1.0)
    saved(tmp_path / "old", other)
    served = classifier(tokenizer, ["bad", "good"], new)
    start = FineTuning(RunDirectory(tmp_path / "new"), tmp_path / "old")
    start.initialize(served)

    assert not any(np.any(weight) for weight in served.model.logits.weights)
    inputs = other.preprocessor(["Ein Hund. Er rennt."]).inputs
    before, after = (
        np.array(each.model(inputs, training=True))[0]
        for each in (other, served)
    )
    np.testing.assert_allclose(after, before[::-1], atol=1e-5)


@pytest.mark.slow
def test_once_it_is_trained_a_run_needs_no_other(tmp_path, tokenizer):
    old = saved(tmp_path / "old", generator(tokenizer, lstm(tokenizer)))
    new = generator(tokenizer, lstm(tokenizer))
    before = [variable.numpy() for variable in new.model.variables]
    run = saved(tmp_path / "new", new)
    old.model.unlink()

    start = FineTuning(run, tmp_path / "old")
    assert start.tokenizer(iter([]), 300).model == tokenizer.model
    start.initialize(new)
    for variable, value in zip(new.model.variables, before, strict=True):
        np.testing.assert_array_equal(variable, value)


def test_a_run_that_resumes_keeps_its_tokenizers(
    tmp_path, tokenizer, capsys, other_run
):
    """Whatever text there is now, unless it is overwritten."""
    served, old = other_run(lstm)
    shutil.copytree(old, tmp_path / "run")
    start = FineTuning(RunDirectory(tmp_path / "run"))
    assert start.tokenizer(NEW, 290).model == tokenizer.model
    source, target = start.pair_tokenizers(290).of(Corpus())
    assert source is target
    assert source.model == tokenizer.model

    again = RunDirectory(tmp_path / "run")
    again.start(Config(), overwrite=True)
    start = FineTuning(again)
    assert start.tokenizer(NEW, 290).model == Tokenizer.train(NEW, 290).model
    FineTuning(again, old).initialize(served)
    assert "Starting from" in capsys.readouterr().out


def test_word_vectors_are_read_once(tmp_path, tokenizer, capsys):
    path = tmp_path / "glove.txt"
    path.write_text("Hund 1 0 0 0 0 0\n")
    run = RunDirectory(tmp_path / "run")
    run.start(Config())
    served = classifier(tokenizer, ["a", "b"])
    rows = served.model.embedding.vectors
    initial = rows.numpy()
    options = types.SimpleNamespace(vectors=str(path))

    start = FineTuning(run)
    without = types.SimpleNamespace(vectors="")
    start.initialize_embedding(served.model, without, tokenizer)
    np.testing.assert_array_equal(rows.numpy(), initial)
    start.initialize_embedding(served.model, without, tokenizer, 0 * initial)
    assert not rows.numpy().any()
    start.initialize_embedding(served.model, options, tokenizer, initial)
    vectors = rows.numpy()
    [row] = np.flatnonzero(np.isclose(vectors, np.eye(6)[0]).all(1))
    assert tokenizer.pieces([row]).numpy() == ["\u2581Hund".encode()]
    run.save(served, more=start.files)
    fact = f"word vectors of 1 of 290 pieces from {path}"
    assert start.facts == [fact] and capsys.readouterr().out == f"{fact}\n"

    values = [variable.value for variable in served.model.variables]
    write_checkpoint(run.checkpoints / "last", 5, keep=1, vars=values)
    path.unlink()
    again = FineTuning(run)
    again.initialize_embedding(served.model, options, tokenizer)
    np.testing.assert_array_equal(rows.numpy(), vectors)
    assert again.facts == [fact] and not again.files


def test_without_a_run_nothing_is_changed(tmp_path, tokenizer, other_run):
    start = FineTuning(RunDirectory(tmp_path))
    assert start.tokenizer(OLD, 290).model == tokenizer.model
    new, _ = other_run(lstm)
    before = new.model.get_weights()
    start.initialize(new)
    for value, other in zip(new.model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(value, other)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda t: generator(t, lstm(t, units=16)), "shape"),
        (lambda t: generator(t, lstm(t, num_decoder_layers=2)), "variables"),
        (lambda t: generator(t, transformer(t)), "LSTMSeq2Seq"),
        (lambda t: classifier(t, ["a", "b"]), "LSTMSeq2Seq"),
    ],
)
def test_another_model_is_refused(
    tmp_path, tokenizer, make, message, other_run
):
    start = FineTuning(RunDirectory(tmp_path / "new"), other_run(lstm)[1])
    with pytest.raises(RunError, match=message):
        start.initialize(make(tokenizer))


def test_a_start_that_is_no_run_is_refused(tmp_path, tokenizer):
    with pytest.raises(UserError, match="nothing_there"):
        FineTuning(RunDirectory(tmp_path), tmp_path / "nothing_there")
    with pytest.raises(UserError, match="new_tokenizer needs start_from"):
        FineTuning(RunDirectory(tmp_path), new_tokenizer=True)
    run = RunDirectory(tmp_path / "run")
    run.start(Config())
    new = generator(tokenizer, lstm(tokenizer))
    run.save(new)
    with pytest.raises(RunError, match="itself"):
        FineTuning(run, run.path)
    with pytest.raises(RunError, match="no intact checkpoint"):
        FineTuning(RunDirectory(tmp_path / "b"), run.path).initialize(new)


def test_frozen_layers_keep_their_weights(tokenizer):
    model = transformer(tokenizer)
    freeze(model, ["encoder_*", "target_embedding", "cross_attention"])
    model.compile("adam", clip_norm=1.0, run_eagerly=True)
    before = {v.path: np.array(v) for v in model.variables}
    ids = np.array([[2, 5, 6, 3]], "int32")
    inputs = {"source_ids": ids, "target_ids": ids}
    weights = np.ones_like(ids, float)
    model.fit(inputs, ids, sample_weight=weights, verbose=0)

    after = {v.path: np.array(v) for v in model.variables}
    stayed = {p for p in before if np.array_equal(before[p], after[p])}
    frozen = {
        path
        for path in before
        if path.startswith(("encoder_", "target_embedding/"))
        or "/cross_attention/" in path
    }
    assert frozen and stayed == frozen
    trained = len(model.trainable_variables)
    assert len(model.optimizer.variables) == 2 + 2 * trained


def test_a_layer_that_is_not_there_cannot_be_frozen(tokenizer):
    model = transformer(tokenizer)
    with pytest.raises(UserError, match=r"'encode'.* encoder_0, decoder_0"):
        freeze(model, ["encode"])
    with pytest.raises(UserError, match="no weight to train"):
        freeze(model, ["*"])


def test_lora_leaves_matrices_to_be_trained(tokenizer):
    model = transformer(tokenizer)
    freeze(model, ["encoder_*"], lora=2)
    found = [variable.path for variable in model.trainable_variables]
    assert found and all(path.endswith("/kernel") for path in found)
    assert not any(path.startswith("encoder_") for path in found)

    model = convolutional(tokenizer)
    freeze(model, [], lora=2)
    found = {variable.name for variable in model.trainable_variables}
    assert found == {"kernel", "direction"}


@pytest.mark.parametrize("rank", [6, 1000])
def test_a_rank_that_is_too_large_is_refused(tokenizer, rank):
    """The largest matrix, of keys and values, is 8 x 16."""
    with pytest.raises(UserError, match=rf"at most 5\. Received: {rank}"):
        freeze(transformer(tokenizer), [], lora=rank)
    with pytest.raises(UserError, match=r"at most 0\. Received: 1"):
        freeze(transformer(tokenizer), ["encoder_*", "decoder_*"], lora=1)


def test_lora_starts_from_the_weights_of_the_run(
    tmp_path, tokenizer, other_run
):
    """To the bit; and its run is that of an ordinary model."""
    old, old_path = other_run(transformer)
    run = RunDirectory(tmp_path / "new")
    run.start(Config())
    start = FineTuning(run, old_path)
    new = generator(tokenizer, transformer(tokenizer))
    freeze(new.model, [], lora=2)
    options = OptimizerOptions(warmup_steps=1)
    config = types.SimpleNamespace(
        **vars(options), lora=2, learning_rate=0.1, steps=9
    )
    new.model.compile(build_optimizer(config), clip_norm=1.0, run_eagerly=True)
    start.initialize(new)
    for one, other in zip(new.model.weights, old.model.weights, strict=True):
        np.testing.assert_array_equal(one, other)
    run.save(new)

    ids = np.array([[2, 5, 6, 3]], "int32")
    inputs = {"source_ids": ids, "target_ids": ids}
    new.model.fit(
        inputs, ids, sample_weight=np.ones_like(ids, float), verbose=0
    )
    for one, other in zip(new.model.weights, old.model.weights, strict=True):
        is_changed = not np.array_equal(one, other)
        assert is_changed == (one.name == "kernel"), one.path
    write_checkpoint(
        run.checkpoints / "best",
        1,
        keep=1,
        vars=[variable.value for variable in new.model.variables],
    )
    loaded = kseq.load_run(run.path).model
    assert type(loaded) is Transformer
    for one, other in zip(loaded.weights, new.model.weights, strict=True):
        np.testing.assert_array_equal(one, other)
