import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import tensorflow as tf

import kseq
from kseq import cli

ROOT = Path(kseq.__file__).parents[1]
HEAVY = {"tensorflow", "keras", "numpy", "matplotlib"}


def python(program, *arguments, text=""):
    """Runs a program in a fresh interpreter."""
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        input=text,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        text=True,
    )


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--help"], 0),
        (["--version"], 0),
        (["predict", "--help"], 0),
        ([], 0),
        (["predict"], 2),
        (["predict", "/"], 2),
        (["translate", "/"], 2),
        (["score", "/", "no-such-file"], 2),
        (["recipes"], 0),
        (["recipes", "copy", "no-such-recipe"], 2),
    ],
)
def test_help_and_errors_do_without_tensorflow(arguments, code):
    program = (
        "import sys; from kseq import cli\n"
        "try: sys.exit(cli.main(sys.argv[1:]))\n"
        f"finally: assert not {HEAVY} & sys.modules.keys()"
    )
    done = python(program, *arguments)
    assert done.returncode == code, done.stderr
    assert done.stderr.count("\n") == (code == 2)


def test_bad_options_do_without_tensorflow(tmp_path):
    for name in ("config.json", "environment.json"):
        (tmp_path / name).write_text("{}")
    program = (
        "import sys; from kseq import cli\n"
        "for option in sys.argv[2:]:\n"
        "    try: cli.main(['predict', sys.argv[1], option])\n"
        "    except SystemExit as left: assert left.code == 2\n"
        f"assert not {HEAVY} & sys.modules.keys()"
    )
    options = ("--beam-size=0", "--top-p=x", "--prefix=no-such-file", "--nope")
    done = python(program, tmp_path, *options)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("kseq predict: ") == len(options)
    assert "there is no option --nope" in done.stderr


def test_importing_kseq_imports_no_keras():
    program = (
        "import sys, kseq; dir(kseq)\n"
        f"assert not {HEAVY} & sys.modules.keys()\n"
        "assert not [name for name in sys.modules if name[:5] == 'kseq.']"
    )
    done = python(program)
    assert done.returncode == 0, done.stderr


def test_all_rooms_are_attributes():
    for name in ("data", "decoding", "evaluation", "serving", "training"):
        assert getattr(kseq, name).__name__ == f"kseq.{name}"
        assert name in dir(kseq)
    assert kseq.load is kseq.serving.load
    with pytest.raises(AttributeError, match="no attribute 'cellar'"):
        _ = kseq.cellar


PREDICTION = """
    import sys
    from kseq import cli
    path = sys.argv[1]
    code = cli.main(["predict", path, "--scores"])
    loaded = sys.modules.keys()
    print("also", *sorted(loaded & {
        *("matplotlib", "scipy", "sklearn", "sacrebleu", "tyro"),
        *("kseq.training", "kseq.evaluation", "kseq.pictures"),
    }), file=sys.stderr)
    sys.exit(code)
"""


def test_predicting_imports_what_it_needs_alone(tmp_path):
    module = tf.Module()
    module.answer = tf.function(
        lambda text: {
            "text": tf.strings.upper(text),
            "score": tf.zeros(tf.shape(text)),
            "truncated": tf.zeros(tf.shape(text), tf.bool),
        },
        input_signature=[tf.TensorSpec((None,), tf.string, "text")],
        autograph=False,
    )
    signatures = {"serving_default": module.answer}
    tf.saved_model.save(module, tmp_path / "1", signatures=signatures)

    done = python(textwrap.dedent(PREDICTION), tmp_path, text="a\nb\n")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "0.0000\tA\n0.0000\tB\n"
    assert done.stderr.splitlines()[-1] == "also"


def test_recipes_are_listed_and_copied(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["recipes"]) == 0
    listed = capfd.readouterr().out
    assert "translate_transformer" in listed
    assert cli.main(["recipes", "copy", "translate_transformer"]) == 0
    assert (tmp_path / "translate_transformer.py").stat().st_size > 1000
    assert cli.main(["recipes", "copy", "translate_transformer"]) == 2
