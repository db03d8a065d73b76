import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import ctranslate2
import numpy as np
import pytest
import sentencepiece

import kseq
from kseq import cli
from kseq.control_tokens import END, PAD, START, UNK
from kseq.conversion import read_marian
from kseq.conversion.safetensors import read_safetensors, write_safetensors
from kseq.data import Tokenizer
from kseq.decoding import GreedySearch
from kseq.serving.ctranslate2_export import export_ctranslate2
from kseq.user_error import UserError
from tests.conversion import marian_oracle
from tests.slow import slow


@pytest.fixture(scope="module")
def folder(marian):
    return marian / "trained"


@pytest.fixture(scope="module")
def found(folder):
    return read_marian(folder)


@pytest.fixture(scope="module")
def expected(folder):
    return json.loads((folder / "expected.json").read_text("utf-8"))


def ids_of_kseq(folder, size="vocab_size"):
    """For each id of Marian that of kseq, by the rule of `read_marian`."""
    config = json.loads((folder / "config.json").read_text())
    control = {
        config["decoder_start_token_id"]: START,
        config["eos_token_id"]: END,
        1: UNK,
    }
    others = [i for i in range(config[size]) if i not in control]
    return control | {each: i for i, each in enumerate(others, 4)}


def check_agreement(folder, generator, answers=("beam", "greedy")):
    """Ids, logits and answers are those of transformers."""
    expected = json.loads((folder / "expected.json").read_text("utf-8"))
    numbers = {
        "source": ids_of_kseq(folder),
        "target": ids_of_kseq(folder, "decoder_vocab_size"),
    }
    number = numbers["target"]
    columns = [number[place] for place in range(len(number))]
    for line in expected:
        for side, number in numbers.items():
            ids, _ = generator.tokenizers[side].tokenize_with_end([line[side]])
            wanted = [number[each] for each in line[f"{side}_ids"]]
            assert ids.to_list() == [wanted], line[side]
            line[f"{side}_ids"] = wanted
        logits = generator.model(
            {
                "source_ids": np.array([line["source_ids"]]),
                "target_ids": np.array([[START, *line["target_ids"][:-1]]]),
            }
        )
        logits = np.array(logits)[0]
        np.testing.assert_allclose(
            logits[:, columns], line["logits"], atol=1e-4
        )
        assert (logits[:, PAD] < -90).all()
    sources = [line["source"] for line in expected]
    searches = {"beam": generator.search, "greedy": GreedySearch()}
    for name in answers:
        predictor = generator.with_search(searches[name]).predictor(32)
        # Marian makes something of nothing.
        assert predictor(sources) == [
            line[name] if line["source"] else "" for line in expected
        ]


def test_it_answers_as_transformers_does(folder, found):
    # That beam search does, the test of the command shows: tracing takes long.
    check_agreement(folder, found.generator, answers=("greedy",))
    assert found.generator.search.beam_size == 4


def test_pieces_that_the_vocabulary_lacks_are_unknown(found, folder):
    """They divide a text as they do for Marian, into fewer characters."""
    source = found.generator.tokenizers["source"]
    ids, _ = source.tokenize_with_end(["drei Katzen"])
    assert ids.to_list()[0][0] == UNK
    own = sentencepiece.SentencePieceProcessor(
        model_file=str(folder / "source.spm")
    )
    assert ids.row_lengths()[0] == len(own.encode("drei Katzen")) + 1
    assert source.vocab_size == found.generator.model.target_vocab_size
    assert max(ids.to_list()[0]) < source.vocab_size
    flat, lengths = source.encode_with_end([b"drei Katzen"])
    assert flat.tolist() == ids.to_list()[0] and lengths.tolist() == [len(flat)]


def test_a_language_is_one_piece_before_the_text(found):
    source = found.generator.tokenizers["source"]
    ids, _ = source.tokenize_with_end([">>eng<< eins", ">>fra<<eins", "eins"])
    english, french, alone = ids.to_list()
    assert english[1:] == alone and english[0] != french[0]
    pieces = source.pieces([english[0]]).numpy()[0].decode()
    assert pieces == "\u2581>>eng<<"


def test_sides_share_the_vocabulary(found):
    both = found.generator.tokenizers
    assert both["source"].model != both["target"].model
    assert both["source"].shares_vocabulary(both["target"])


def change(name, **values):
    def changed(folder):
        path = folder / name
        found = json.loads(path.read_text("utf-8"))
        found.update(values)
        found = {key: each for key, each in found.items() if each != "gone"}
        path.write_text(json.dumps(found), "utf-8")

    return changed


def write(name, content):
    return lambda folder: (folder / name).write_bytes(content)


def renamed_token(name):
    """Gives a token of the vocabulary a different text."""

    def changed(folder):
        path = folder / "vocab.json"
        ids = json.loads(path.read_text("utf-8"))
        ids[name] = ids.pop([*ids][10])
        path.write_text(json.dumps(ids), "utf-8")

    return changed


def of_another_model(folder):
    path = folder / "source.spm"
    path.write_bytes(Tokenizer.train(["ЖЩ юяж щшч"], 270, "bpe").model)


def separated(folder, copy):
    """Makes a model with two embeddings of one that has one for both.

    Each side has the pieces in an order of its own, the source fewer: none that
    its tokenizer does not have.
    """
    shutil.copytree(folder, copy)
    config = json.loads((copy / "config.json").read_text())
    ids = json.loads((copy / "vocab.json").read_text())
    tensors = dict(read_safetensors(copy / "model.safetensors"))
    shared = tensors.pop("model.shared.weight")
    own = sentencepiece.SentencePieceProcessor(
        model_file=str(copy / "source.spm")
    )
    own = {own.id_to_piece(number) for number in range(len(own))}
    control = ("</s>", "<unk>", "<pad>")
    others = sorted(ids.keys() - {*control})
    source = [piece for piece in others if piece in own or ">>" in piece]
    pieces = {
        "source": [*control, *source],
        "target": [*control, *others[::-1]],
    }
    rows = {side: [ids[each] for each in pieces[side]] for side in pieces}
    tensors |= {
        "model.encoder.embed_tokens.weight": shared[rows["source"]],
        "model.decoder.embed_tokens.weight": shared[rows["target"]],
        "final_logits_bias": tensors["final_logits_bias"][:, rows["target"]],
    }
    write_safetensors(copy / "model.safetensors", tensors)
    lines = json.loads((copy / "expected.json").read_text("utf-8"))
    by_id = {number: piece for piece, number in ids.items()}
    for name, side in (("vocab", "source"), ("target_vocab", "target")):
        numbered = {piece: place for place, piece in enumerate(pieces[side])}
        (copy / f"{name}.json").write_text(json.dumps(numbered))
        for line in lines:
            old = line[f"{side}_ids"]
            line[f"{side}_ids"] = [numbered[by_id[number]] for number in old]
    for line in lines:
        logits = np.array(line["logits"])[:, rows["target"]]
        line["logits"] = logits.tolist()
    (copy / "expected.json").write_text(json.dumps(lines))
    config |= {
        "vocab_size": len(pieces["source"]),
        "decoder_vocab_size": len(pieces["target"]),
        "share_encoder_decoder_embeddings": False,
        **dict.fromkeys(("pad_token_id", "decoder_start_token_id"), 2),
    }
    (copy / "config.json").write_text(json.dumps(config))
    return copy


def test_two_embeddings_are_those_of_one(folder, tmp_path):
    copy = separated(folder, tmp_path / "two")
    generator = read_marian(copy).generator
    model = generator.model
    assert not model.share_embeddings
    assert model.source_vocab_size < model.target_vocab_size
    check_agreement(copy, generator, answers=())
    # The same of another layout of the files.
    tensors = dict(read_safetensors(copy / "model.safetensors"))
    target = tensors.pop("model.decoder.embed_tokens.weight")
    tensors |= {"lm_head.weight": target, "model.shared.weight": target[:2]}
    write_safetensors(copy / "model.safetensors", tensors)
    (copy / "tokenizer_config.json").write_text('{"separate_vocabs": true}')
    for one, other in zip(
        read_marian(copy).generator.model.variables,
        model.variables,
        strict=True,
    ):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda copy: (copy / "target_vocab.json").unlink(), "not number the"),
        (
            write("tokenizer_config.json", b'{"separate_vocabs": false}'),
            "vocab.json does not number the",
        ),
        (
            change("config.json", share_encoder_decoder_embeddings=True),
            "two vocabularies, and one embedding",
        ),
        (
            change("config.json", share_encoder_decoder_embeddings="no"),
            "expected true or false as share_encoder",
        ),
        (
            change("config.json", decoder_vocab_size=-1),
            "a size as decoder_vocab_size",
        ),
        (
            change("config.json", decoder_vocab_size="gone"),
            "target_vocab.json does not number the",
        ),
        (
            change("target_vocab.json", **{"<unk>": "gone"}),
            "target_vocab.json does not number the",
        ),
    ],
)
def test_two_embeddings_that_are_broken(folder, tmp_path, damage, message):
    copy = separated(folder, tmp_path / "two")
    damage(copy)
    with pytest.raises(UserError, match=message):
        read_marian(copy)


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("model.encoder.embed_tokens.weight", None, "There is no model.enc"),
        ("lm_head.weight", np.zeros((4, 16), "<f4"), "expected an embedding"),
        ("lm_head.weight", "zeros", "lm_head.weight differs from model.dec"),
    ],
)
def test_embeddings_that_do_not_fit(folder, tmp_path, name, values, message):
    copy = separated(folder, tmp_path / "two")
    tensors = dict(read_safetensors(copy / "model.safetensors"))
    tensors.pop(name, None)
    if isinstance(values, str):
        values = 0 * tensors["model.decoder.embed_tokens.weight"]
    if values is not None:
        tensors[name] = values
    write_safetensors(copy / "model.safetensors", tensors)
    with pytest.raises(UserError, match=message):
        read_marian(copy)


def test_the_command_writes_a_run(
    folder, expected, tmp_path, monkeypatch, capfd
):
    monkeypatch.chdir(tmp_path)
    command = ["convert", "marian", str(folder), "runs/opus"]
    assert cli.main(command) == 0
    assert "kseq predict runs/opus < FILE" in capfd.readouterr().out
    served = kseq.load("runs/opus")
    sources = [line["source"] for line in expected]
    answers = [line["beam"] for line in expected]
    assert served(sources) == answers
    card = (tmp_path / "runs/opus/README.md").read_text()
    assert "Converted from the model trained of Marian" in card
    assert "built-in corpus" not in card

    def killed(*_, **values):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("kseq.commands.convert.write_checkpoint", killed)
        assert cli.main([*command, "--overwrite"]) == 130
    assert cli.main(command) == 0
    # It answers like the first: to trace the same search takes long.
    again = kseq.load("runs/opus").served
    assert again.search == served.served.search
    for one, other in zip(
        again.model.weights, served.served.model.weights, strict=True
    ):
        np.testing.assert_array_equal(one, other)

    # The same again, as after a kill; and another one.
    assert cli.main(command) == 0
    other = shutil.copytree(folder, tmp_path / "other")
    config = json.loads((other / "generation_config.json").read_text())
    (other / "generation_config.json").write_text(
        json.dumps({**config, "num_beams": 2})
    )
    command[2] = str(other)
    capfd.readouterr()
    assert cli.main(command) == 2
    assert "holds a run with a different config" in capfd.readouterr().err
    assert cli.main([*command, "--overwrite"]) == 0
    assert kseq.load("runs/opus").served.search.beam_size == 2

    # One of the same sizes.
    path = other / "model.safetensors"
    tensors = read_safetensors(path)
    write_safetensors(path, {name: -each for name, each in tensors.items()})
    capfd.readouterr()
    assert cli.main(command) == 2
    assert "weights_sha256" in capfd.readouterr().err


def test_a_folder_on_the_hub(folder, tmp_path, monkeypatch, capfd):
    """Of the weights one file is copied, and of the others none."""
    asked = []

    def copied(url, patterns):
        asked.append(patterns)
        return folder

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("kseq.commands.convert.hub_folder", copied)
    assert cli.main(["convert", "marian", "hf://me/opus", "runs/my opus"]) == 0
    assert asked == [["*.json", "*.spm", "model.safetensors"]]
    output = capfd.readouterr().out
    assert "'runs/my opus': 10,930 parameters" in output
    assert "kseq predict 'runs/my opus' < FILE" in output


def test_ctranslate2_answers_the_same(found, expected, tmp_path):
    path = export_ctranslate2(found.generator, tmp_path / "ct2")
    model = ctranslate2.Translator(str(path))
    both = [
        sentencepiece.SentencePieceProcessor(model_file=str(path / name))
        for name in ("source.model", "target.model")
    ]
    # Without the one that ends at the limit of its length.
    lines = [line for line in expected if "123" not in line["source"]]
    pieces = [both[0].encode(line["source"], out_type=str) for line in lines]
    answers = model.translate_batch(pieces, beam_size=4)
    assert [both[1].decode(each.hypotheses[0]) for each in answers] == [
        line["beam"] for line in lines
    ]


def check_it_is_trained_on(run, capfd):
    rows = [f"{one}\t{two}\n" for one, two in marian_oracle.sentences(200, 3)]
    Path("pairs.tsv").write_text("".join(rows), "utf-8")
    words = ["train", "translate_transformer", "--from", run]
    words += ["--train", "pairs.tsv", "--run", "runs/tuned", "--steps", "10"]
    words += ["--evaluate-every", "10", "--learning-rate", "0.0001"]
    assert cli.main(words) == 0
    printed = capfd.readouterr().out
    assert f"Starting from {run}: 'best' weights of step 0." in printed
    assert kseq.load("saved_models/tuned")(["zwei rote Hunde"]) == [
        "two red dogs"
    ]


@pytest.mark.slow
@pytest.mark.parametrize("is_separate", [False, True])
def test_it_is_trained_on(folder, tmp_path, monkeypatch, capfd, is_separate):
    monkeypatch.chdir(tmp_path)
    if is_separate:
        folder = separated(folder, tmp_path / "two")
    assert cli.main(["convert", "marian", str(folder), "runs/opus"]) == 0
    check_it_is_trained_on("runs/opus", capfd)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "config.json").unlink(), "cannot be read"),
        (write("config.json", b"[]"), "expected a JSON object"),
        (write("vocab.json", b"{"), "vocab.json is broken"),
        (change("config.json", model_type="bart"), "model_type 'bart'"),
        (change("config.json", d_model="16"), "a size as d_model"),
        (change("config.json", encoder_layers="gone"), "as encoder_layers"),
        (change("config.json", encoder_layers=3), "has no model.encoder.lay"),
        (change("config.json", encoder_layers=1), "layers that are not"),
        (change("config.json", encoder_ffn_dim=20), "decoder_ffn_dim = 24"),
        (change("config.json", d_model=8), "expected (8, 8)"),
        (change("config.json", normalize_before=True), "normalize_before"),
        (change("config.json", activation_function="tanh"), "none of swish"),
        (change("config.json", eos_token_id=1), "does not fit the ids"),
        (change("config.json", pad_token_id=999), "does not fit the ids"),
        (
            change("config.json", vocab_size=9, decoder_vocab_size=9),
            "does not number the 9",
        ),
        (change("vocab.json", **{"<unk>": 0}), "does not number"),
        (change("vocab.json", **{"<unk>": []}), "does not number"),
        (change("vocab.json", **{"<unk>": "1"}), "does not number"),
        (change("vocab.json", **{"<unk>": 1.0}), "does not number"),
        (renamed_token("a\0"), "has a token with NUL or a surrogate"),
        (renamed_token("\ud800"), "has a token with NUL or a surrogate"),
        (write("vocab.json", b'{"a":' + b"[" * 100_000), "too deeply"),
        (change("config.json", activation_function=[]), "none of swish"),
        (
            change(
                *("config.json",), encoder_ffn_dim=2**30, decoder_ffn_dim=2**30
            ),
            "fc1.weight has the shape",
        ),
        (change("generation_config.json", length_penalty=-1), "from 0 to 10"),
        (of_another_model, "does not fit its vocabulary"),
        (change("generation_config.json", num_beams=0), "beam_size"),
        slow(change("generation_config.json", max_length=1), "max_length"),
        (write("source.spm", b"\xff" * 50), "not a SentencePiece model"),
        (write("target.spm", b""), "SentencePiece model"),
        (write("model.safetensors", b""), "model.safetensors cannot be read"),
        (
            lambda folder: (folder / "model.safetensors").unlink(),
            "neither model.safetensors nor",
        ),
    ],
)
def test_what_is_not_converted(
    folder, tmp_path, monkeypatch, capfd, damage, message
):
    monkeypatch.chdir(tmp_path)
    copy = shutil.copytree(folder, tmp_path / "copy")
    damage(copy)
    words = ["convert", "marian", str(copy), "runs/opus"]
    check_refused(words, message, capfd)


def check_refused(words, message, capfd):
    assert cli.main(words) == 2
    printed = capfd.readouterr().err
    assert message in printed
    assert "Traceback" not in printed
    assert not Path("runs").exists()


def test_a_missing_folder_is_refused(tmp_path, capsys):
    command = ["convert", "marian", str(tmp_path / "none"), "runs/opus"]
    assert cli.main(command) == 2
    assert "there is no folder" in capsys.readouterr().err


def test_values_that_are_read_of_the_wrong_type(folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "copy")
    for values in (
        {"dropout": "much"},
        {"num_beams": "4"},
        {"max_length": None},
        {"length_penalty": []},
        {"max_position_embeddings": -1},
        {"encoder_attention_heads": 3, "decoder_attention_heads": 3},
    ):
        (copy / "generation_config.json").unlink(missing_ok=True)
        shutil.copy(folder / "config.json", copy)
        change("config.json", **values)(copy)
        with pytest.raises(UserError):
            read_marian(copy)


def new_model(oracle, module, python, folder, answers, **options):
    """Made by an oracle in the Python that has its toolkit."""
    python = os.environ.get(python, sys.executable)
    if subprocess.run([python, "-c", f"import {module}"]).returncode:
        pytest.skip(f"needs {module}")
    options |= {
        "seed": int(np.random.default_rng().integers(1000)),
        "steps": 300 if answers else 0,
    }
    print(options)
    subprocess.run(
        [python, oracle.__file__, str(folder), json.dumps(options)], check=True
    )
    return folder


@pytest.mark.slow  # needs PyTorch and transformers, which are the oracle
@pytest.mark.parametrize(
    ("activation", "legacy", "separate", "answers"),
    [
        # Random models write to the limit of the length.
        ("gelu", None, False, ()),
        ("relu", False, False, ()),
        ("swish", True, True, ()),
        ("swish", None, False, ("beam", "greedy")),
        ("swish", None, True, ("beam", "greedy")),
    ],
)
def test_new_models(tmp_path, activation, legacy, separate, answers):
    folder = new_model(
        *(marian_oracle, "transformers", "ORACLE_PYTHON"),
        *(tmp_path / "new", answers),
        activation=activation,
        legacy=legacy,
        separate=separate,
    )
    check_agreement(folder, read_marian(folder).generator, answers)
