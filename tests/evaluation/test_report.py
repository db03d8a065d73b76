from pathlib import Path

import tensorflow as tf

from kseq.data import Documents
from kseq.evaluation import Classifications, Translations, exact_match, report
from kseq.runs import RunDirectory
from kseq.serving import ClassifierPredictor

RUN = RunDirectory("runs/tiny")


def test_scores_and_some_answers(translator, capsys):
    sources = ["a\tb\nc", *("long " * 20, "d", "e")]
    pairs = tf.data.Dataset.from_tensor_slices((sources, sources))
    translations = Translations(translator, pairs, metrics=[exact_match])
    report(
        *(Path("saved_models/tiny/1"), translations, RUN),
        samples=2,
        inputs="--features FILE.npz < NAMES",
    )
    assert capsys.readouterr().out.splitlines() == [
        "",
        "saved_models/tiny/1 on 4 test examples:",
        "  exact match 0.00 %",
        "",
        "Sample answers:",
        "  a b c  ->  A B C",
        f"  {('long ' * 20)[:60]}  ->  {('LONG ' * 20).strip()}",
        "",
        "Answers to your own:  kseq predict saved_models/tiny/1 "
        "--features FILE.npz < NAMES",
        "Training curves:  tensorboard --logdir runs",
    ]


def test_labels_stay_in_a_line(classifier, capsys):
    def renamed(text):
        answer = classifier.signatures["serving_default"](text)
        labels = [["fire\nand\tsmoke", "flood"]]
        return {**answer, "labels": tf.repeat(labels, tf.size(text), axis=0)}

    predictor = ClassifierPredictor({"serving_default": renamed})
    documents = Documents(["smoke", "water"], ["flood", "flood"])
    report(
        *("here", Classifications(predictor, documents), RUN),
        inputs="< PATHS",
    )
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2].endswith("  kseq explain here < PATHS > page.html")
    assert "  smoke  ->  fire and smoke" in lines
    assert "  water  ->  flood" in lines
    assert any(line.startswith("  fire and smoke: prec") for line in lines)
    assert len(lines) == 15


def test_scores_go_into_the_readme_of_run_and_export(translator, tmp_path):
    run = RunDirectory(tmp_path / "run")
    extra = tmp_path / "1" / "assets.extra"
    for folder in (run.path, extra):
        folder.mkdir(parents=True)
    run.metrics.write_text('{"step": 9, "loss": 2.0}\n')
    for folder in (run.path, extra):
        (folder / "README.md").write_text("# tiny\n\n## Use\n\nSo.\n")
    pairs = tf.data.Dataset.from_tensor_slices((["d", "e"], ["D", "e"]))
    for _ in range(2):  # replaced, not repeated
        report(tmp_path / "1", Translations(translator, pairs), run)
    card = run.readme.read_text()
    assert card == (extra / "README.md").read_text()
    assert card.count("## Test scores") == 1
    assert card.count("](learning_curve.png)\n\n## Test scores\n") == 1
    picture = run.learning_curve.read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert picture == (extra / "learning_curve.png").read_bytes()
    assert card.count("exact match 50.00 ± 50.00 %") == 1
    assert "nrefs:1" in card
    assert card.endswith("\n\n## Use\n\nSo.\n")


def test_scores_on_validation_data_are_no_test(translator, tmp_path, capsys):
    run = RunDirectory(tmp_path / "run")
    run.path.mkdir()
    run.readme.write_text("# tiny\n\n## Use\n\nSo.\n")
    run.config.write_text('{"train": ["train.de", "train.en"]}')
    pairs = tf.data.Dataset.from_tensor_slices((["d", "e"], ["D", "e"]))
    report(tmp_path / "1", Translations(translator, pairs), run)
    assert "on 2 validation examples:" in capsys.readouterr().out
    card = run.readme.read_text()
    assert "Test scores" not in card
    assert "## Scores of the export\n\nOn the validation data, by" in card
