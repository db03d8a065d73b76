import shutil

import pytest

from kseq import cli
from tests.commands.some_lines import LEARNT, SOURCES, lines_of


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


def test_evaluation_prints_scores_with_signatures(run, tmp_path, capfd):
    for name in ("source", "reference"):
        (tmp_path / name).write_bytes(lines_of(SOURCES))
    command = ["evaluate", run, tmp_path / "source", tmp_path / "reference"]
    assert cli.main([str(part) for part in command]) == 0
    output, progress = capfd.readouterr()
    bleu, chrf, exact = output.splitlines()
    assert bleu.startswith("BLEU ")
    assert "|tok:13a|" in bleu
    assert "|nc:6|" in chrf
    assert exact.endswith("%")
    assert "5 of 5 lines" in progress


def test_averaging_makes_weights_that_are_used(run, predict, tmp_path, capfd):
    copy = shutil.copytree(run, tmp_path / "copy")
    assert cli.main(["average", str(copy), "--last", "2"]) == 0
    assert capfd.readouterr().out.count("ckpt-") == 2
    options = ("--scores", "--greedy")
    used, _ = predict(copy, b"a b\n", *options)
    averaged, _ = predict(copy, b"a b\n", *options, "--weights", "average")
    assert used == averaged
    assert used != predict(run, b"a b\n", *options)[0]


def test_inspecting(run, export, capfd):
    assert cli.main(["inspect", str(run)]) == 0
    facts = capfd.readouterr().out
    for fact in ("Transformer", "parameters", "best score", "beam_size"):
        assert fact in facts
    assert cli.main(["inspect", str(export)]) == 0
    facts = capfd.readouterr().out
    for fact in ("serving_default", "text string", "MatMul"):
        assert fact in facts


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
    for command in ("evaluate", "score"):
        assert "has 1" in refused(command, run, short, long)
    assert "needs --json" in refused("predict", run, "--attention")
    assert "SOURCE and REFERENCE" in refused("evaluate", run, short)
    assert "answers with a text" in refused("explain", run)
    assert "there is no recipe" in refused("recipes", "copy", "nothing")


def test_debugging_keeps_the_traceback(run):
    with pytest.raises(ValueError, match="needs --json"):
        cli.main(["predict", str(run), "--attention", "--debug"])
