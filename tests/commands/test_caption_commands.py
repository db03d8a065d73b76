"""Commands on models that describe pictures."""

import json
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

import kseq
from kseq import cli, data, decoding, layers, models, serving
from kseq.loading import load_export
from kseq.user_error import UserError
from tests.commands.saved_run import saved_run

pytestmark = pytest.mark.slow  # their road is that of a translator

CAPTIONS = ["a red dog", "two dogs", "a cat runs on a mat"]
GRID = data.FeaturePreprocessor(rows=2, columns=3, num_features=12, scale=64.0)
KINDS = {
    "features": GRID,
    "image": data.ImagePreprocessor(side=2, rows=2, columns=3),
}


def generator(preprocessor, source_dim=12, search=None):
    keras.utils.set_random_seed(1)
    tokenizer = data.Tokenizer.train(CAPTIONS, 280)
    model = models.LSTMSeq2Seq(
        None,
        280,
        embedding_dim=8,
        units=8,
        num_encoder_layers=0,
        attention=layers.BahdanauAttention(4),
        order="bahdanau",
        source_layer=layers.GridEncoder(8, num_cells=6),
        source_dim=source_dim,
    )
    for weight in model.trainable_variables:
        weight.assign(keras.random.normal(weight.shape))
    # A greedy search is traced sooner than a beam.
    search = search or decoding.GreedySearch()
    return serving.Generator(
        model, preprocessor, tokenizer, search, max_length=9
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Five pictures, as files and as features, and their captions."""
    folder = tmp_path_factory.mktemp("pictures")
    draw = np.random.default_rng(1)
    pixels = draw.integers(0, 255, (5, 4, 6, 3), np.uint8)
    names = [f"{i}.png" for i in range(5)]
    for name, picture in zip(names, pixels, strict=True):
        (folder / name).write_bytes(tf.io.encode_png(picture).numpy())
    cells = data.pictures.image_preprocessor.cells_of(
        pixels.astype("float32"), 2
    )
    np.savez(folder / "a.npz", features=cells - 128, names=names)
    rows = [f"{name}\t{text}" for name in names for text in CAPTIONS]
    (folder / "captions.tsv").write_text("\n".join(rows))
    (folder / "moving.gif").write_bytes(b"GIF89a" + bytes(20))
    (folder / "moving.tsv").write_text("0.png\ta dog\nmoving.gif\ta cat\n")
    return folder


@pytest.fixture(scope="module")
def opened_runs(tmp_path_factory):
    """The run for images has a beam, and is exported without."""
    root = tmp_path_factory.mktemp("runs")
    searches = {"image": decoding.BeamSearch(2)}
    return {
        kind: saved_run(
            generator(preprocessor, search=searches.get(kind)), root / kind
        )
        for kind, preprocessor in KINDS.items()
    }


@pytest.fixture(scope="module")
def paths(opened_runs):
    """The same model for both inputs: an export of images, a run."""
    run = opened_runs["image"]
    export = run.parent / "saved_models" / "image"
    arguments = ["export", str(run), "--greedy", "--to", str(export)]
    assert cli.main(arguments) == 0
    return opened_runs | {"image": export}


def test_the_same_answers_whatever_is_given(
    paths, folder, predict, monkeypatch
):
    """Pictures and their features, alone and in a batch."""
    monkeypatch.chdir(folder)
    lines = b"0.png\n\n3.png\n 1.png \n"
    found, _ = predict(paths["image"], lines)
    assert len(found) == 4
    assert found[1] == ""
    assert len({*found}) >= 3
    features = ("--features", "a.npz")
    assert predict(paths["features"], lines, *features)[0] == found
    assert predict(paths["image"], b"3.png")[0] == found[2:3]


@pytest.mark.slow  # as a translator's in test_predict.py
def test_a_run_answers_as_its_export_does(
    opened_runs, folder, predict, monkeypatch, tmp_path
):
    monkeypatch.chdir(folder)
    run, export = opened_runs["features"], tmp_path / "features"
    assert cli.main(["export", str(run), "--to", str(export)]) == 0
    given = b"0.png\n\n3.png\n", "--features", "a.npz"
    assert predict(run, *given) == predict(export, *given)


def test_an_export_that_answers_greedily(
    opened_runs, paths, folder, predict, monkeypatch
):
    monkeypatch.chdir(folder)
    run, export = opened_runs["image"], paths["image"]
    description = export / "1" / "assets.extra" / "kseq.json"
    searches = [
        json.loads(path.read_text())["search"]["class"]
        for path in (run / "task.json", description)
    ]
    assert searches == ["BeamSearch", "GreedySearch"]
    given = b"0.png\n\n3.png\n", "--json"
    exported, _ = predict(export, *given)
    greedy, _ = predict(run, *given, "--greedy")
    for answer, expected in zip(
        map(json.loads, exported), map(json.loads, greedy), strict=True
    ):
        assert answer["text"] == expected["text"]
        assert answer["score"] == pytest.approx(expected["score"], abs=1e-4)
    _, notes = predict(export, b"0.png\n", "--n-best=2", code=2)
    assert "needs a beam" in notes


def test_json_scores_and_attention(paths, folder, predict, monkeypatch):
    monkeypatch.chdir(folder)
    (record, _), _ = predict(
        paths["image"], b"0.png\n\n", "--json", "--attention"
    )
    attention = json.loads(record)["attention"]
    cells = [f"{row},{column}" for row in (1, 2) for column in (1, 2, 3)]
    assert attention["source_tokens"] == cells
    np.testing.assert_allclose(np.sum(attention["weights"], axis=1), 1, 1e-4)


def test_scores_of_given_answers(paths, folder, call, monkeypatch):
    monkeypatch.chdir(folder)
    (folder / "names").write_text("0.png\n\n2.png\n")
    (folder / "answers").write_text("a dog\n\na cat\n")
    scores, _ = call("score", paths["image"], "names", "answers")
    assert scores.split()[1] == "0.0000"
    assert len({*scores.split()}) == 3
    options = ("names", "answers", "--features", "a.npz")
    assert call("score", paths["features"], *options)[0] == scores


def test_evaluate_uses_all_references(
    paths, folder, call, monkeypatch, tmp_path
):
    monkeypatch.chdir(folder)
    source = (paths["features"], "captions.tsv", "--features", "a.npz")
    printed, _ = call("evaluate", *source)
    assert "nrefs:3|" in printed
    table = (paths["image"], "captions.tsv", "--images", ".", "--plain")
    assert call("evaluate", *table)[0] == printed
    score = printed.partition(" ")[2].partition("  ")[0]
    (tmp_path / "wrong").write_text("a red dog\n" * 5)
    examples = ("compare", tmp_path / "wrong", *table, "--page", "page.html")
    assert score in call(*examples)[0]
    page = Path("page.html").read_text("utf-8")
    assert '<img alt="" src="data:image/png;base64,' in page
    assert "img-src data:" in page and "the picture is dark" in page


def test_explain_shows_the_picture(paths, folder, call, monkeypatch):
    monkeypatch.chdir(folder)
    page, _ = call("explain", paths["image"], text=b"0.png\n\n")
    assert page.count('<img alt="" src="data:image/png;base64,') == 1
    assert "img-src data:" in page
    assert "row 2, column 3" in page
    assert "<script" not in page
    arguments = (paths["features"], "--features", "a.npz")
    page, _ = call("explain", *arguments, text=b"0.png\n")
    assert "<img" not in page
    assert 'class="cells alone"' in page
    page, _ = call("explain", *arguments, "--images", ".", text=b"0.png\n")
    assert page.count("<img") == 1


@pytest.mark.parametrize(
    ("kind", "text", "options", "message"),
    [
        ("features", b"0.png", (), "--features"),
        ("features", b"9.png", ("--features", "a.npz"), "line 1: expected"),
        ("image", b"0.png\n9.png", (), "line 2: 9.png is not a file"),
        ("image", b".", (), "line 1: . is not a file"),
        ("image", b"captions.tsv", (), "not a readable JPEG or PNG file"),
        ("image", b"0.png\nmoving.gif", (), "line 2: moving.gif is not a "),
        ("image", b"a\0b", (), "line 1"),
        ("image", b"0.png", ("--features", "a.npz"), "is for a model that"),
        ("features", b"0.png", ("--features", "captions.tsv"), "captions.tsv"),
    ],
)
def test_wrong_input_is_one_message(
    paths, folder, predict, monkeypatch, kind, text, options, message
):
    monkeypatch.chdir(folder)
    _, notes = predict(paths[kind], text, *options, code=2)
    assert message in notes
    assert notes.count("\n") == 1


def test_a_folder_is_for_features(paths, folder, refused, monkeypatch):
    monkeypatch.chdir(folder)
    arguments = ("explain", paths["image"], "--images", ".")
    assert "--images is for a model that takes features" in refused(*arguments)


@pytest.mark.parametrize(
    ("kind", "arguments", "message"),
    [
        ("image", ("captions.tsv",), "--images"),
        ("image", ("captions.tsv", "captions.tsv"), "needs one table"),
        ("image", ("moving.tsv", "--images", "."), "moving.tsv:2: moving.gif"),
        ("image", ("captions.tsv", "--images", "none"), "not a folder"),
        ("features", ("captions.tsv",), "--features"),
        (
            "features",
            ("captions.tsv", "--features", "a.npz", "--images", "."),
            "--images is not for this model",
        ),
    ],
)
def test_wrong_files_of_evaluate(
    paths, folder, refused, monkeypatch, kind, arguments, message
):
    monkeypatch.chdir(folder)
    assert message in refused("evaluate", paths[kind], *arguments)


def test_bytes_that_are_no_picture_answer_blank(paths, folder, load):
    served = load(paths["image"])
    good = (folder / "0.png").read_bytes()
    alone = served([good])
    assert served([b"no picture", good, b"", good[:40]]) == ["", *alone, "", ""]


def test_features_that_are_not_finite_answer_blank(paths, load):
    served = load(paths["features"])
    assert served([np.full((6, 12), np.nan)]) == [""]
    assert served.scores([np.full((6, 12), np.inf)], [""]) == [0.0]


@pytest.mark.slow
def test_a_network_is_part_of_a_run_and_of_its_export(folder, tmp_path):
    """The answers are those of its weights, which are random here."""
    preprocessor = data.ImagePreprocessor(
        side=32, rows=2, columns=2, network="MobileNetV3Small"
    ).with_scale(1e-10)
    served = generator(preprocessor, source_dim=576)
    images = [(folder / f"{i}.png").read_bytes() for i in (0, 1)]
    expected = served.predictor().answers(images)
    files = {"network.npz": preprocessor.network.save()}
    run = saved_run(served, tmp_path / "run", files)
    path = serving.export(served, tmp_path / "saved_models")
    for opened in (kseq.load(run), load_export(path)):
        for answer, other in zip(opened.answers(images), expected, strict=True):
            assert answer.hypotheses[0].text == other.hypotheses[0].text
            score = other.hypotheses[0].score
            assert answer.hypotheses[0].score == pytest.approx(score, abs=1e-4)
    (run / "network.npz").unlink()
    with pytest.raises(UserError, match="cannot be read as the weights"):
        kseq.load(run)


def test_a_run_whose_parts_do_not_fit(opened_runs, tmp_path):
    served = generator(KINDS["features"])
    run = saved_run(served, tmp_path / "run")
    task = json.loads((run / "task.json").read_text())
    for wrong, message in (
        ({"num_features": 5}, "source_dim=12"),
        ({"rows": 10**12}, "rows=10"),
        ({"rows": "x"}, "rows='x'"),
        ({"class": "StoredFeatures"}, "no class StoredFeatures"),
    ):
        changed = {**task, "preprocessor": {**task["preprocessor"], **wrong}}
        (run / "task.json").write_text(json.dumps(changed))
        with pytest.raises(UserError, match=message):
            kseq.load(run)
