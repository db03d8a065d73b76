"""Transformers of OpenNMT-tf as runs."""

import json
import os
import shutil
from pathlib import Path

import ctranslate2
import numpy as np
import pytest
import sentencepiece
import tensorflow as tf

import kseq
from kseq import cli
from kseq.control_tokens import END, PAD, START, UNK
from kseq.conversion import read_opennmt_tf
from kseq.decoding import GreedySearch
from kseq.serving.ctranslate2_export import export_ctranslate2
from kseq.user_error import UserError
from tests.conversion import opennmt_tf_oracle
from tests.conversion.test_marian import (
    check_it_is_trained_on,
    check_refused,
    new_model,
)
from tests.slow import slow
from tests.unpack import unpack

VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"
SOURCE = "model/examples_inputter/features_inputter/embedding"
TARGET = "model/examples_inputter/labels_inputter/embedding"
QUERIES = "model/encoder/layers/0/self_attention/layer/linear_queries/kernel"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What `opennmt_tf_oracle` has written."""
    path = Path(__file__).with_name("opennmt_tf.tar.xz")
    to = tmp_path_factory.mktemp("opennmt_tf")
    unpack(path, to)
    return to / "trained"


def read(folder, sides=("source", "source"), **options):
    return read_opennmt_tf(
        folder,
        [folder / f"{side}.vocab" for side in sides],
        [folder / f"{side}.model" for side in sides],
        **{"heads": 4, **options},
    )


@pytest.fixture(scope="module")
def found(folder):
    return read(folder)


@pytest.fixture(scope="module")
def expected(folder):
    return json.loads((folder / "expected.json").read_text("utf-8"))


def numbers(size):
    """For each id of OpenNMT-tf that of kseq."""
    control = {0: PAD, 1: START, 2: END, size - 1: UNK}
    return [control.get(each, each + 1) for each in range(size)]


def check_agreement(folder, generator, answers=()):
    """Ids, logits and answers are those of OpenNMT-tf.

    Of two beam searches, one may drop what the other finds: an answer may also
    be another one that is more probable.
    """
    expected = json.loads((folder / "expected.json").read_text("utf-8"))
    of_source = numbers(generator.model.source_vocab_size)
    of_target = numbers(generator.model.target_vocab_size)
    for line in expected:
        source = [of_source[each] for each in line["source_ids"]]
        if not generator.model.source_end:
            source.append(END)
        target = [of_target[each] for each in line["target_ids"]]
        for side, wanted in (("source", source), ("target", target)):
            ids, _ = generator.tokenizers[side].tokenize_with_end([line[side]])
            assert ids.to_list() == [wanted], line[side]
        logits = generator.model(
            {
                "source_ids": np.array([source]),
                "target_ids": np.array([[START, *target[:-1]]]),
            }
        )
        np.testing.assert_allclose(
            np.array(logits)[0][:, of_target], line["logits"], atol=1e-4
        )
    sources = [line["source"] for line in expected]
    searches = {"beam": generator.search, "greedy": GreedySearch()}
    for name in answers:
        predictor = generator.with_search(searches[name]).predictor(32)
        found = predictor(sources)
        wanted = [line[name] for line in expected]
        if name == "beam":
            better = np.greater(
                predictor.scores(sources, found),
                predictor.scores(sources, wanted),
            )
            assert np.mean(better) <= 0.2
            found = np.where(better, wanted, found).tolist()
        assert found == wanted


def test_it_answers_as_opennmt_tf_does(folder, found):
    check_agreement(folder, found.generator)


def command(folder, *more):
    """The words of a command; `more` replaces what it has."""
    words = ["convert", "opennmt-tf", str(folder), "runs/nmt"]
    for name, values in (
        ("--vocabulary", 2 * [str(folder / "source.vocab")]),
        ("--sentencepiece", 2 * [str(folder / "source.model")]),
        ("--heads", ["4"]),
    ):
        if name not in more:
            words += [name, *values]
    return [*words, *more]


def test_the_command_writes_a_run(folder, found, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    assert cli.main(command(folder)) == 0
    assert "kseq predict runs/nmt < FILE" in capfd.readouterr().out
    served = kseq.load("runs/nmt").served
    for one, two in zip(
        served.model.trainable_variables,
        found.generator.model.trainable_variables,
        strict=True,
    ):
        np.testing.assert_array_equal(one, two)
    assert served.model.get_config() == found.generator.model.get_config()
    assert served.search == found.generator.search
    assert cli.main(command(folder)) == 0  # as after a kill
    assert cli.main(["inspect", "runs/nmt"]) == 0
    assert "best score" not in capfd.readouterr().out
    card = (tmp_path / "runs/nmt/README.md").read_text()
    assert "Converted from the model trained of OpenNMT" in card


@pytest.mark.slow
def test_ctranslate2_answers_the_same(found, expected, tmp_path):
    path = export_ctranslate2(found.generator, tmp_path / "ct2")
    model = ctranslate2.Translator(str(path))
    tokenizer = sentencepiece.SentencePieceProcessor(
        model_file=str(path / "source.model")
    )
    pieces = [
        tokenizer.encode(line["source"], out_type=str) for line in expected
    ]
    answers = model.translate_batch(pieces, beam_size=4, length_penalty=0)
    assert [tokenizer.decode(each.hypotheses[0]) for each in answers] == [
        line["beam"] for line in expected
    ]


def tensors_of(folder):
    reader = tf.train.load_checkpoint(folder)
    return {
        name.removesuffix(VALUE): reader.get_tensor(name)
        for name in reader.get_variable_to_shape_map()
        if name.startswith("model/") and "OPTIMIZER" not in name
    }


def rewritten(folder, copy, *, drop=(), rename=(), **tensors):
    """A copy of a model with other tensors, saved as OpenNMT-tf saves them."""
    shutil.copytree(folder, copy)
    values = {**tensors_of(copy), **tensors}
    root = tf.Module()
    for name, value in values.items():
        if any(part in name for part in drop):
            continue
        for old, new in rename:
            name = name.replace(old, new)
        *path, last = name.split("/")
        node = root
        for part in path:
            if not hasattr(node, part):
                setattr(node, part, tf.Module())
            node = getattr(node, part)
        setattr(node, last, tf.Variable(value))
    for path in copy.glob("ckpt-*"):
        path.unlink()
    checkpoint = tf.train.Checkpoint(model=root.model)
    tf.train.CheckpointManager(checkpoint, copy, 1).save(7)
    return copy


def test_one_embedding_and_normalization_after_sublayers(
    folder, found, tmp_path
):
    copy = rewritten(
        *(folder, tmp_path / "copy"),
        drop=("labels_inputter", "output_layer", "coder/layer_norm"),
        rename=[("input_layer_norm", "output_layer_norm")],
    )
    shared = read(copy)
    expected = {
        "share_embeddings": True,
        "tie_output": True,
        "output_bias": False,
        "norm": "post",
    }
    assert expected.items() <= shared.options.items()
    assert not any(
        found.options[name] == value for name, value in expected.items()
    )
    model, other = shared.generator.model, found.generator.model
    np.testing.assert_array_equal(
        model.target_embedding.embeddings, other.source_embedding.embeddings
    )
    np.testing.assert_array_equal(
        model.decoder_blocks[0].cross_attention_norm.gamma,
        other.decoder_blocks[0].cross_attention_norm.gamma,
    )
    tokenizers = found.generator.tokenizers
    assert tokenizers["source"] is tokenizers["target"]


def test_the_number_of_heads(folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "model")
    shutil.copytree(folder, copy / "avg")
    program = copy / "model_description.py"
    program.write_text("raise SystemExit\nmodel = f(num_heads=2)")
    assert read(copy / "avg", heads=None).generator.model.num_heads == 2
    program.write_text("model = f(num_heads=HEADS)")
    with pytest.raises(UserError, match="give it with --heads"):
        read(copy, heads=None)


def cut(name, size=100):
    def damage(folder):
        path = next(folder.glob(name))
        path.write_bytes(path.read_bytes()[:size])

    return damage


def write(name, content):
    return lambda folder: (folder / name).write_bytes(content.encode())


def lines(change):
    def damage(folder):
        path = folder / "source.vocab"
        tokens = change(path.read_text("utf-8").splitlines())
        path.write_text("\n".join(tokens) + "\n", "utf-8")

    return damage


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            lambda folder: (folder / "checkpoint").unlink(),
            "has no TensorFlow checkpoint",
        ),
        (write("checkpoint", "\0\1"), "has no TensorFlow checkpoint"),
        (write("checkpoint", ""), "checkpoint is broken"),
        (
            write("checkpoint", 'model_checkpoint_path: "../a"'),
            "has no TensorFlow checkpoint",
        ),
        (
            lambda folder: (
                (folder / "checkpoint").unlink(),
                os.mkfifo(folder / "checkpoint"),
            ),
            "checkpoint is broken",
        ),
        (cut("*.index"), "ckpt-300 is broken"),
        (cut("*.data*"), "ckpt-300 is broken"),
        (cut("*.vocab", 0), "does not begin with <blank>, <s>, </s>"),
        (cut("*.model"), "not a SentencePiece model"),
        (lines(lambda tokens: [*tokens, "more"]), "the model has"),
        (lines(lambda tokens: [*tokens[:-1], "a", "a"]), "different tokens"),
        (lines(lambda tokens: tokens[1:]), "does not begin with"),
        (
            lines(lambda tokens: [each.strip("▁") for each in tokens]),
            "has no token with ▁",
        ),
        (
            lambda folder: (folder / "source.vocab").write_bytes(b"\xff"),
            "not text in UTF-8",
        ),
        (
            write("model_description.py", "ffn_activation=tf.nn.gelu"),
            "models with ffn_activation=tf.nn.gelu are not",
        ),
    ],
)
def test_what_is_not_converted(
    folder, tmp_path, monkeypatch, capfd, damage, message
):
    monkeypatch.chdir(tmp_path)
    copy = shutil.copytree(folder, tmp_path / "copy")
    damage(copy)
    check_refused(command(copy), message, capfd)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        slow({QUERIES: np.zeros((16, 15), "f4")}, "has the shape (16, 15)"),
        ({SOURCE: np.zeros((5, 16), "f4")}, "the model has 4"),
        (
            {SOURCE: np.zeros((48, 3), "f4")},
            "is not a Transformer of OpenNMT-tf",
        ),
        (
            {SOURCE: np.zeros((48, 2), "f4")},
            "is not a Transformer of OpenNMT-tf",
        ),
        ({SOURCE: np.zeros((48, 6), "f4")}, "must be a multiple of num_heads"),
        ({SOURCE: np.zeros(5, "f4")}, "is not a Transformer of OpenNMT-tf"),
        ({TARGET: np.float32(0)}, "is not a Transformer of OpenNMT-tf"),
        ({"drop": ("encoder",)}, "is not a Transformer of OpenNMT-tf"),
        slow({"drop": ("linear_values/bias",)}, "has no model/encoder/layers"),
        ({"drop": ("decoder/layers",)}, "num_decoder_layers must be"),
        ({"drop": ("layers/0/ffn",)}, "is not a Transformer of OpenNMT-tf"),
        slow(
            {"drop": ("labels_inputter", "decoder/layer_norm")},
            "has no model/decoder/layer_norm/gamma",
        ),
        (
            {
                QUERIES.replace(
                    "linear_queries/kernel", "relative_position_keys"
                ): np.zeros((7, 4), "f4")
            },
            "layers that are not converted: model/encoder/layers/0/self_atten"
            "tion/layer/relative_position_keys",
        ),
    ],
)
def test_weights_that_do_not_fit(
    folder, tmp_path, monkeypatch, capfd, changes, message
):
    monkeypatch.chdir(tmp_path)
    copy = rewritten(folder, tmp_path / "copy", **changes)
    check_refused(command(copy), message, capfd)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--heads", "3"], "must be a multiple of num_heads"),
        (["--heads", f"{2**31 - 1}"], "must be a multiple of num_heads"),
        (["--heads", "0"], "argument --heads"),
        (["--vocabulary", "none", "none"], "there is no file 'none'"),
        (["--vocabulary", __file__], "expected 2 arguments"),
        (["--sentencepiece", __file__, __file__], "not a SentencePiece model"),
    ],
)
def test_options_that_do_not_fit(
    folder, tmp_path, monkeypatch, capfd, words, message
):
    monkeypatch.chdir(tmp_path)
    check_refused(command(folder, *words), message, capfd)


def test_options_of_another_format(folder, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    start = ["convert", "opennmt-tf"]
    words = [*start, str(folder), "runs/nmt"]
    check_refused(words, "--sentencepiece: only models tokenized", capfd)
    words = command(folder)
    place = words.index("--heads")
    del words[place : place + 2]
    check_refused(words, "give it with --heads", capfd)
    words = [*start, "hf://me/nmt", "runs/nmt"]
    check_refused(words, "a local folder", capfd)
    words = ["convert", "marian", str(folder), "runs/nmt", "--source-end"]
    check_refused(words, "marian has no --source-end", capfd)


def test_one_embedding_has_one_vocabulary(folder, tmp_path):
    copy = rewritten(folder, tmp_path / "all", drop=["labels_inputter"])
    for kind in ("vocab", "model"):
        shutil.copy(copy / f"source.{kind}", copy / f"target.{kind}")
    lines(lambda tokens: [*tokens[:3], *tokens[:2:-1]])(copy)
    with pytest.raises(UserError, match="one embedding: source and target"):
        read(copy, ("source", "target"))


@pytest.mark.slow
def test_a_run_answers_and_is_trained_on(
    folder, expected, tmp_path, monkeypatch, capfd
):
    monkeypatch.chdir(tmp_path)
    assert cli.main(command(folder)) == 0
    sources = [line["source"] for line in expected]
    answers = [line["beam"] for line in expected]
    assert kseq.load("runs/nmt")(sources) == answers
    check_it_is_trained_on("runs/nmt", capfd)


@pytest.mark.slow  # needs OpenNMT-tf, which is the oracle
@pytest.mark.parametrize(
    ("options", "answers"),
    [
        # Random models write to the limit of the length.
        ({"sharing": "ALL", "source_end": True}, ()),
        ({"sharing": "SOURCE_TARGET_INPUT", "num_heads": 2}, ()),
        ({"pre_norm": False, "output_layer_bias": False}, ()),
        ({"sharing": "TARGET", "separate": True}, ("beam", "greedy")),
    ],
)
def test_new_models(tmp_path, options, answers):
    folder = new_model(
        *(opennmt_tf_oracle, "opennmt", "OPENNMT_PYTHON"),
        *(tmp_path / "new", answers),
        **options,
    )
    target = "target" if options.get("separate") else "source"
    found = read(
        folder,
        ("source", target),
        heads=options.get("num_heads", 4),
        source_end=options.get("source_end", False),
    )
    check_agreement(folder, found.generator, answers)
