import importlib
import os
import re
import shutil
import sys

import numpy as np
import pytest
from tensorflow.core.protobuf import saved_model_pb2
from tensorflow.io import gfile

import kseq
from kseq import cli
from kseq.data.files.text_files import LONGEST_LINE
from kseq.loading.load_export import read_meta_graph
from kseq.pictures import explanation_page
from tests.commands.some_lines import LEARNT, SOURCES, lines_of
from tests.slow import slow


def test_scores_are_those_of_predict(run, export, predict, call, tmp_path):
    path = tmp_path / "lines"
    path.write_bytes(lines_of(["", *LEARNT]))
    rows, _ = predict(run, path.read_bytes(), "--scores")
    scores, answers = zip(*(row.split("\t") for row in rows), strict=True)
    assert answers == ("", *LEARNT)
    for model in (run, export):
        again = call("score", model, path, path)[0].split()
        for score, other in zip(scores, again, strict=True):
            assert float(score) == pytest.approx(float(other), abs=1.1e-4)


def test_files_of_object_stores(run, call, predict, refused, tmp_path):
    """TensorFlow's file system in memory is one of them."""
    urls = {}
    gfile.makedirs("ram://commands")
    for name, lines in (("source", SOURCES), ("target", LEARNT)):
        (tmp_path / name).write_bytes(lines_of(lines))
        urls[name] = f"ram://commands/{name}"
        gfile.copy(tmp_path / name, urls[name], overwrite=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        for command in ("score", "evaluate"):
            local = [tmp_path / name for name in urls]
            expected, _ = call(command, run, *local)
            assert call(command, run, *urls.values())[0] == expected
        expected, answers = (
            predict(run, lines_of(SOURCES), "--prefix", path)[0]
            for path in (tmp_path / "target", urls["target"])
        )
        assert answers == expected
        missing = refused("score", run, urls["source"], "ram://commands/none")
        assert "There is no file 'ram://commands/none'." in missing
    message = refused("evaluate", run, urls["source"], "--images", "gs://a/b")
    assert "--images takes a local folder" in message
    assert "Received: gs://a/b" in message


def test_scores_are_printed_in_chunks(run, call, tmp_path, monkeypatch):
    from kseq.commands import score
    from kseq.serving import GeneratorPredictor

    path = tmp_path / "lines"
    path.write_bytes(lines_of(LEARNT[:1] * 5))
    expected, _ = call("score", run, path, path)
    sizes, whole = [], GeneratorPredictor.scores_and_cuts

    def scores_and_cuts(self, inputs, targets, progress):
        sizes.append((len(inputs), len(targets)))
        return whole(self, inputs, targets, progress)

    monkeypatch.setattr(GeneratorPredictor, "scores_and_cuts", scores_and_cuts)
    monkeypatch.setattr(score, "chunk_size", lambda batch_size: 2)
    found, _ = call("score", run, path, path)
    assert sizes == [(2, 2), (2, 2), (1, 1)]
    for one, other in zip(found.split(), expected.split(), strict=True):
        assert float(one) == pytest.approx(float(other), abs=1.1e-4)


def test_no_score_is_printed_if_the_files_do_not_fit(run, tmp_path, capfd):
    for name, count in (("source", 3000), ("target", 2999)):
        (tmp_path / name).write_bytes(lines_of(LEARNT[:1] * count))
    command = ["score", run, tmp_path / "source", tmp_path / "target"]
    assert cli.main([str(part) for part in command]) == 2
    output, error = capfd.readouterr()
    assert not output
    assert "has 3000" in error and "has 2999" in error


@pytest.mark.parametrize("options", [["--plain"], ["--audio", "."]])
def test_options_of_other_inputs_are_not_for_text(run, refused, options):
    table = run / "config.json"
    message = refused("evaluate", run, table, table, *options)
    assert f"{options[0]} is not for this model" in message


def test_evaluation_prints_scores_with_signatures(run, tmp_path, capfd):
    for name in ("source", "reference"):
        (tmp_path / name).write_bytes(lines_of(SOURCES))
    command = ["evaluate", run, tmp_path / "source", tmp_path / "reference"]
    assert cli.main([str(part) for part in command]) == 0
    output, _ = capfd.readouterr()
    bleu, chrf, exact = output.splitlines()
    assert bleu.startswith("BLEU ")
    assert "|tok:13a|" in bleu
    assert "|nc:6|" in chrf
    assert re.fullmatch(r"exact match [\d.]+( ± [\d.]+ %  bs:.*| %)", exact)


def test_evaluation_of_a_table_by_chosen_metrics(
    run, classifier_run, tmp_path, call, refused
):
    table = tmp_path / "table.tsv"
    table.write_bytes(b"".join(b"%b\t%b\n" % ((line,) * 2) for line in [b"a"]))
    metrics = ("--metrics", "wer", "rouge_l")
    output, _ = call("evaluate", run, table, *metrics)
    wer, rouge = output.splitlines()
    assert wer.startswith("WER ") and rouge.startswith("ROUGE-L ")
    answer, _ = call("predict", run, text=b"a\n")
    rows = f"de\tid\ten\na\t1\tX\na \t2\t{answer.strip()}\n"
    table.write_text(rows, "utf-8")
    choice = ("--columns", "de", "en", "--metrics", "exact_match")
    output, _ = call("evaluate", run, table, *choice)
    assert output == "exact match 100.00 %\n"
    message = refused("evaluate", run, table, "--metrics", "nothing")
    assert "Received: 'nothing'" in message
    message = refused("evaluate", run, table, table, "--columns", "1", "2")
    assert "columns is for tables" in message
    message = refused("evaluate", classifier_run, table, *metrics)
    assert "answers with a label: it is not scored by --metrics" in message


@pytest.mark.slow  # tests/runs shows the mean
def test_averaging_makes_weights_that_are_used(run, predict, tmp_path, capfd):
    copy = shutil.copytree(run, tmp_path / "copy")
    assert cli.main(["average", str(copy), "--last", "2"]) == 0
    assert capfd.readouterr().out.count("ckpt-") == 2
    used, averaged = (
        kseq.load(copy, weights=weights).model.get_weights()
        for weights in (None, "average")
    )
    for one, other in zip(used, averaged, strict=True):
        np.testing.assert_array_equal(one, other)
    options = ("--scores", "--greedy")
    found, _ = predict(copy, b"a b\n", *options, "--weights", "average")
    assert found != predict(run, b"a b\n", *options)[0]


def test_inspecting(run, export, capfd):
    assert cli.main(["inspect", str(run)]) == 0
    facts = capfd.readouterr().out
    assert "{" not in facts and "None" not in facts
    for fact in ("Transformer", "parameters", "best score", "beam_size"):
        assert fact in facts
    assert len(re.findall(r"^seed ", facts, re.MULTILINE)) == 1
    [parameters] = re.findall(r"^parameters +[0-9,]+$", facts, re.MULTILINE)
    assert cli.main(["inspect", str(export)]) == 0
    facts = capfd.readouterr().out
    assert parameters in facts.splitlines()
    for fact in ("serving_default", "text string", "MatMul"):
        assert fact in facts


def test_inspecting_a_run_without_intact_weights(run, tmp_path, capfd):
    broken = shutil.copytree(run, tmp_path / "run")
    for file in broken.glob("checkpoints/*/*.data*"):
        file.write_bytes(b"")
    assert cli.main(["inspect", str(broken)]) == 0
    facts = capfd.readouterr().out
    assert re.search(r"^broken +.*no intact checkpoint", facts, re.MULTILINE)
    assert "vocabulary" in facts and "beam_size" in facts


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--beam-size", "2"], "search can be chosen for run directories"),
        (["--length-penalty", "0"], "search can be chosen for run directories"),
        (["--greedy"], "search can be chosen for run directories"),
        (["--sample"], "search can be chosen for run directories"),
        (["--weights", "last"], "weights can be chosen for run directories"),
    ],
)
def test_what_is_fixed_in_an_export_is_refused(
    export, refused, options, message
):
    assert message in refused("predict", export, *options)
    assert "is an export" in refused("predict", export, *options)


@pytest.fixture
def not_opened(monkeypatch):
    """Commands fail where they open a model."""

    def open_predictor(options):
        raise AssertionError("the model has been opened")

    for name in ("predict", "score", "evaluate", "explain"):
        module = importlib.import_module(f"kseq.commands.{name}")
        monkeypatch.setattr(module, "open_predictor", open_predictor)


def test_what_cannot_be_done_is_refused_before_a_model_is_opened(
    run,
    export,
    bare_export,
    refused,
    tmp_path,
    not_opened,
):
    names = "one", "two", "none", "wide"
    one, two, none, wide = (tmp_path / name for name in names)
    one.write_bytes(b"a\n")
    two.write_bytes(b"a\nb\n")
    none.write_bytes(b"")
    wide.write_bytes("a\nb\n".encode("utf-16"))
    for path in (run, export):
        for command in ("score", "evaluate"):
            assert "wide is UTF-16" in refused(command, path, two, wide)
            assert "has 2" in refused(command, path, one, two)
            assert "is empty" in refused(command, path, none, none)
        assert "SOURCE and REFERENCE" in refused("evaluate", path, one)
        assert "SOURCE and TARGET" in refused("score", path, one)
        message = refused("predict", path, "--n-best", "4")
        assert "--n-best 4 needs a beam of at least that size" in message
        assert "gives 3" in message
        options = ("--json", "--attention", "--prefix", one)
        assert "not shown" in refused("predict", path, *options)
    beam = ("--beam-size", "5", "--n-best", "6")
    assert "gives 5" in refused("predict", run, *beam)
    assert "gives 1" in refused("predict", run, "--greedy", "--n-best", "2")
    for signature, command in {
        "score": ("score", bare_export, one, one),
        "explain": ("explain", bare_export),
        "n_best": ("predict", bare_export, "--n-best", "2"),
        "prefix": ("predict", bare_export, "--prefix", one),
    }.items():
        message = refused(*command)
        assert f"needs a signature {signature}; " in message
        assert message.endswith("has serving_default.\n")


# Exporting takes seconds; the test above has exports in every run.
@pytest.mark.parametrize("kind", ["classifier_run", slow("classifier_export")])
def test_what_a_classifier_cannot_do_is_refused_before_it_is_opened(
    kind, request, refused, tmp_path, not_opened
):
    path = request.getfixturevalue(kind)
    names = "one", "none", "labels"
    one, none, labels = (tmp_path / name for name in names)
    one.write_bytes(b"a\n")
    none.write_bytes(b"")
    labels.write_bytes(b"fire\tsmoke\nspam\tbuy\n")
    assert "does not know: spam" in refused("evaluate", path, labels)
    assert "predict --scores" in refused("score", path, one, one)
    assert "--prefix is for models" in refused("predict", path, "--prefix", one)
    assert "4 labels" in refused("predict", path, "--n-best", "5")
    assert "one file" in refused("evaluate", path, one, one)
    assert "is empty" in refused("evaluate", path, none)


@pytest.fixture(scope="session")
def bare_export(export, tmp_path_factory):
    """A copy with one signature and no description; it is never loaded."""
    path = tmp_path_factory.mktemp("bare")
    meta_graph = read_meta_graph(export / "1")
    for name in list(meta_graph.signature_def):
        if name != "serving_default":
            del meta_graph.signature_def[name]
    saved = saved_model_pb2.SavedModel(meta_graphs=[meta_graph])
    (path / "saved_model.pb").write_bytes(saved.SerializeToString())
    return path


def test_scores_of_any_bytes(run, export, call, tmp_path):
    sources, targets = tmp_path / "sources", tmp_path / "targets"
    sources.write_bytes(b"a\0b\r\n\n\xff\nc " * 2 + b"a b c " * 12_000)
    targets.write_bytes(b"a\r\n\n\xfe\0\n" * 2 + b"c")
    output, notes = call("score", run, sources, targets)
    scores = [float(line) for line in output.splitlines()]
    assert len(scores) == 7
    assert scores[1] == 0
    invalid = "2 lines are not valid UTF-8; invalid bytes become U+FFFD."
    assert notes.splitlines() == [
        f"{sources}: {invalid}",
        f"{targets}: {invalid}",
        "line 7 is too long; its end was left out.",
    ]
    again, notes = call("score", export, sources, targets)
    assert [float(line) for line in again.splitlines()] == pytest.approx(
        scores, abs=1.1e-4
    )
    assert notes.count("\n") == 3


def test_a_translation_is_explained_on_a_page(run, export, call):
    lines = ["a b c", "", "<script>alert(1)</script> b", "ü 日 c\0"]
    text = lines_of(lines).removesuffix(b"\n")
    page, notes = call("explain", run, text=text)
    assert notes == ""
    assert page.startswith("<!doctype html>")
    assert page.count("<article") == len(lines)
    assert "<script" not in page
    assert page.count("&lt;") == 2
    assert "▁" not in page and "The answer is empty." in page
    other, _ = call("explain", export, text=text)
    assert other.count("<a ") == page.count("<a ")


def test_a_page_that_would_be_too_large_says_so(run, call, monkeypatch, caplog):
    monkeypatch.setattr(explanation_page, "MOST_ARTICLES", 2)
    page, _ = call("explain", run, "--batch-size=1", text=b"a\nb\nc\n")
    assert page.count("<article") == 2
    assert "ends here, after the first 2 lines" in page
    assert "after the first 2 lines" in caplog.text
    page, _ = call("explain", run, text=b"a\nb\n")
    assert "ends here" not in page


def test_a_very_long_line_is_left_out_of_the_scores(
    run, call, refused, caplog, tmp_path
):
    source, reference = tmp_path / "source", tmp_path / "reference"
    long = "x" * (LONGEST_LINE + 1)
    source.write_bytes(lines_of([LEARNT[0], long, "", "b", long]))
    reference.write_bytes(lines_of([LEARNT[0], "X", "", long, ""]))
    printed, _ = call("evaluate", run, source, reference)
    assert printed.endswith("exact match 100.00 %\n")
    [message] = caplog.messages
    assert "3 of 5 pairs are left out of the scores" in message
    source.write_bytes(lines_of([long]))
    message = refused("evaluate", run, source, source)
    assert "no pair to evaluate on; 1 of 1" in message


def test_a_reader_who_leaves(run, call, monkeypatch, tmp_path):
    path = tmp_path / "lines"
    path.write_bytes(lines_of(LEARNT))
    for command, *arguments in (
        ("explain", run),
        ("score", run, path, path),
        ("evaluate", run, path, path),
    ):
        read, write = os.pipe()
        os.close(read)
        with open(write, "w") as output:
            monkeypatch.setattr(sys, "stdout", output)
            _, notes = call(command, *arguments, text=lines_of(LEARNT))
        assert "Broken" not in notes and "Traceback" not in notes


def test_bad_commands_are_refused(run, export, refused, tmp_path):
    short = tmp_path / "short"
    short.write_bytes(b"a\n")
    long = tmp_path / "long"
    long.write_bytes(b"a\nb\n")
    assert "no such-path" in refused("predict", "no such-path")
    assert "COMMAND" in refused("pridict")
    assert "at least 1" in refused("predict", run, "--batch-size", "0")
    assert "there is no file" in refused("score", run, short, tmp_path / "no")
    assert "is an export" in refused("average", export)
    assert "at least 1" in refused("average", run, "--best", "0")
    assert "not allowed" in refused("average", run, "--best", 1, "--last", 1)
    assert "no best checkpoints" in refused("average", run, "--best", "2")
    for command in ("evaluate", "score"):
        assert "has 1" in refused(command, run, short, long)
    assert "needs --json" in refused("predict", run, "--attention")
    assert "SOURCE and REFERENCE" in refused("evaluate", run, short)
    assert "there is no recipe" in refused("recipes", "copy", "nothing")


def test_debugging_keeps_the_traceback(run):
    with pytest.raises(ValueError, match="needs --json"):
        cli.main(["predict", str(run), "--attention", "--debug"])


def test_a_recipe_is_copied_whole_or_not_at_all(call, here, monkeypatch):
    copy = here / "translate_lstm.py"
    command = ("recipes", "copy", "translate_lstm")

    def no_space(descriptor):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", no_space)
        _, message = call(*command, code=4)
    assert "translate_lstm.py could not be written: No space" in message
    assert not list(here.glob("translate*"))
    copy.symlink_to(here / "nowhere")
    assert "exists already" in call(*command, code=2)[1]
    copy.unlink()
    call(*command)
    assert copy.read_text().startswith('"""')
    assert "exists already" in call(*command, code=2)[1]
    for name in ("../recipes/translate_lstm", "/etc/passwd", "..", "", "a\nb"):
        assert "there is no recipe" in call("recipes", "copy", name, code=2)[1]


def test_a_folder_of_another_run_is_found_before_loading(
    run, export, refused, tmp_path
):
    other = shutil.copytree(run, tmp_path / run.name)
    message = refused("export", other, "--to", export)
    assert (
        f"{export} has the exports of a different run, {run.resolve()}"
        in message
    )
    assert "is a file, and must be a directory" in refused(
        "export", run, "--to", run / "config.json" / "x"
    )
