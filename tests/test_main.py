import json
import os
import re
import shlex
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
HEAVY |= {"kseq.files.training_process"}  # for few commands


def python(program, *arguments, text=""):
    """Runs a program in a fresh interpreter."""
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        input=text,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        text=True,
    )


# What is given to `kseq`, and its exit status.
WITHOUT_TENSORFLOW = [
    (["--help"], 0),
    (["--version"], 0),
    (["predict", "--help"], 0),
    ([], 0),
    (["predict"], 2),
    (["predict", "/"], 2),
    (["translate", "/"], 2),
    (["score", "/", "no-such-file"], 2),
    (["predict", "builtin://dates", "--attention"], 2),
    (["evaluate", "builtin://dates", __file__, "--seed", "1"], 2),
    (["export", "builtin://dates", "--format", "argos"], 2),
    (["publish", "builtin://dates", "nobody"], 2),
    (["recipes"], 0),
    (["recipes", "copy", "no-such-recipe"], 2),
    (["train"], 0),
    (["train", "lstm", "--help"], 0),
    (["train", "classify_documents", "--units", "0"], 2),
    (["train", "lstm", "--train", "/no-such-file"], 2),
    (["train", "classify", "--train", "/dev/null"], 2),
    (["serve"], 2),
    (["serve", "/"], 2),
    (["serve", "/no-such-file", "--port", "0"], 2),
    (["serve", "--model", "..=/"], 2),
    (["serve", "--model", "a=/dev/null"], 2),
    (["serve", "/", "--grpc-port", "a"], 2),
    (["serve", "/", "--timeout", "nan"], 2),
]


def test_help_and_errors_do_without_tensorflow():
    # One interpreter for all: what the first command does not import is
    # missing for the next one as well.
    program = (
        "import contextlib, io, json, sys; from kseq import cli\n"
        "done = []\n"
        "for arguments in json.load(sys.stdin):\n"
        "    error = io.StringIO()\n"
        "    with contextlib.redirect_stderr(error):\n"
        "        try: code = cli.main(arguments)\n"
        "        except SystemExit as left: code = left.code\n"
        f"    assert not {HEAVY} & sys.modules.keys(), arguments\n"
        "    done.append((code or 0, error.getvalue()))\n"
        "print('\\n' + json.dumps(done))"
    )
    commands = [arguments for arguments, _ in WITHOUT_TENSORFLOW]
    done = python(program, text=json.dumps(commands))
    assert (done.returncode, done.stderr) == (0, "")
    results = json.loads(done.stdout.splitlines()[-1])
    for (arguments, code), (exit_status, error) in zip(
        WITHOUT_TENSORFLOW, results, strict=True
    ):
        assert exit_status == code, (arguments, error)
        assert error.count("\n") == (code == 2), (arguments, error)


def in_shell(command):
    """Runs `kseq ...` with redirections, in a shell."""
    kseq_command = f"{shlex.quote(sys.executable)} -m kseq"
    return subprocess.run(
        ["sh", "-c", command.replace("kseq", kseq_command, 1)],
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": ""},
        text=True,
    )


@pytest.mark.parametrize(
    "command, code, lines",
    [
        ("kseq recipes >&-", 0, 0),
        ("kseq recipes <&- >&- 2>&-", 0, 0),
        ("kseq predict . >&-", 2, 1),
        ("kseq recipes > /dev/full", 4, 1),
        ("kseq --help > /dev/full", 4, 1),
        ("kseq train lstm --help > /dev/full", 4, 1),
        ("KERAS_BACKEND=jax kseq train lstm", 2, 1),
        ("KERAS_BACKEND=torch kseq train lstm", 2, 1),
        ("KERAS_BACKEND= kseq train lstm", 2, 1),
    ],
)
def test_output_that_cannot_be_written(command, code, lines):
    done = in_shell(command)
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert len(done.stderr.splitlines()) == lines, done.stderr


@pytest.mark.parametrize(
    "words, message",
    [
        ("pridict", "Did you mean predict?"),
        ("check a --colunms b c", "Did you mean --columns?"),
        ("recipes cpoy", "Did you mean copy?"),
        ("recipes copy lsmt", "Did you mean translate_lstm?"),
        ("train lsmt", "Did you mean translate_lstm?"),
        (
            "train translate",
            "Did you mean translate_convolutional or translate_lstm",
        ),
        ("train transfomer", "Did you mean translate_transformer?"),
        ("train ./missing.py", "there is no file missing.py"),
        ("train missing.py", "there is no file missing.py"),
        ("train recipes/", "there is no file recipes"),
        ("train lstm --stesp 3", "Did you mean --steps?"),
        ("train lstm steps", "unexpected 'steps'"),
        ("train lstm --overwrite=1", "--overwrite takes no value. Received"),
        ("train lstm --no-overwrite=", "--no-overwrite takes no value. Rec"),
        ("predict --scores=yes a", "--scores takes no value. Received: 'yes'"),
        ("train lstm --units 7", "--units: expected an even number"),
        ("train lstm --units", "--units: expected one argument"),
        ("train lstm --units 1000000", "--units: expected an integer from 1"),
        ("train lstm --dropout nan", "--dropout: expected a number from 0"),
        ("train lstm --dropout=1.5", "--dropout: expected a number from 0"),
        ("train lstm --learning-rate 0", "expected a positive number"),
        ("train lstm --learning-rate=-1", "expected a positive number"),
        ("train lstm --learning_rate inf", "expected a positive number"),
        ("train lstm --warmup-steps 0", "expected an integer of at least 1"),
        ("train lstm --evaluate-every -1", "expected an integer of at least 1"),
        ("train lstm --evaluate-every 0", "expected an integer of at least 1"),
        ("train lstm --steps -5", "expected an integer of at least 1"),
        ("train lstm --steps=0", "expected an integer of at least 1"),
        ("train lstm --seed -1", "expected an integer of at least 0"),
        (f"train lstm --steps {10**30}", "at most 2147483647"),
        (f"train lstm --steps {'9' * 5000}", "expected an integer."),
        ("train lstm --dtype mixed_float61", "Did you mean mixed_float16?"),
        ("train lstm --train", "--train: expected at least one argument"),
        ("train lstm --train=", "--train: the value is empty"),
        ("train lstm --run=", "--run: the value is empty"),
        ("train lstm --run ..", "expected the name of a directory"),
        ("train lstm --run /dev/null", "/dev/null is a file"),
        ("train transformer --averaged 0", "expected an integer from 1"),
        ("train transformer --averaged=-1", "expected an integer from 1"),
        ("train transformer --heads 3", "expected a multiple of --heads 3"),
        ("train tag_words --columns a", "--columns: expected 2 arguments"),
        ("train lstm --vocab-size 2000000000", "from 1 to 1000000"),
        ("check", "the following arguments are required: FILE"),
        ("predict", "the following arguments are required: PATH\n"),
        ("predict --prefix recipes a", "'recipes' is a directory; give"),
        ("predict --prefix /dev/null a", "'/dev/null' is a pipe or a device"),
    ],
)
def test_a_mistake_is_one_message(words, message, monkeypatch, capfd):
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(sys, "argv", ["kseq"])
    with monkeypatch.context() as patch:
        # Found out before TensorFlow is imported.
        patch.setitem(kseq.run_recipe.__globals__, "start_keras", pytest.fail)
        assert cli.main(words.split()) == 2
    output, error = capfd.readouterr()
    assert (output, error.count("\n")) == ("", 1), error
    assert message in error


WRONG = {
    "wide.tsv": b"a\tb\tc\nd\te\tf\n",
    "utf16.tsv": "a\tb\n".encode("utf-16"),
    "utf16.txt": "a b\n".encode("utf-16"),
    "named.csv": b"en,de\nGo.,Los.\n",
    "broken.jsonl": b'{"source": "a", "target":\n',
    "quoted.csv": b'"a,b\n',
    "one.tsv": b"a\n",
}


@pytest.mark.parametrize(
    "words, message",
    [
        ("lstm --train none.txt", "There is no file"),
        ("lstm --train wide.tsv", "wide.tsv:1: "),
        ("lstm --train named.csv", "named.csv:1: "),
        ("lstm --train named.csv --columns en fr", "'en' and 'fr'; found"),
        ("lstm --train named.csv --columns en", "columns, or 3 here"),
        ("transformer --train utf16.txt utf16.txt", "utf16.txt"),
        ("transformer --train broken.jsonl", "broken.jsonl:1: "),
        ("lstm --train quoted.csv", "quoted.csv:1: "),
        ("lstm --train wide.tsv --columns 1 4", "wide.tsv:1: "),
        (
            "lstm --train named.csv --columns en de --validation one.tsv",
            "one.tsv:1: ",
        ),
        ("classify --train wide.tsv", "wide.tsv:1: "),
        ("classify --train utf16.tsv", "utf16.tsv"),
        ("classify --train wide.tsv --columns 1 2 3 4", "columns, or 3 here"),
        (
            "classify --train wide.tsv --columns 1 2 3 --validation named.csv",
            "named.csv:1: ",
        ),
        ("caption --train one.tsv", "one.tsv:1: "),
        ("speech --train one.tsv", "one.tsv:1: "),
        ("chat --train broken.jsonl", "broken.jsonl:1: "),
        ("retrieve --train utf16.txt", "utf16.txt"),
        ("write_text --train named.csv", "named.csv:1: "),
        ("write_text --train named.csv --column x", "named.csv:1: "),
    ],
)
def test_wrong_files_are_one_message(
    words, message, tmp_path, monkeypatch, capfd
):
    monkeypatch.chdir(tmp_path)
    for name, content in WRONG.items():
        Path(name).write_bytes(content)
    monkeypatch.setattr(sys, "argv", ["kseq"])
    with monkeypatch.context() as patch:
        # Found out before TensorFlow is imported.
        patch.setitem(kseq.run_recipe.__globals__, "start_keras", pytest.fail)
        assert cli.main(["train", *words.split()]) == 2
    output, error = capfd.readouterr()
    assert (output, error.count("\n")) == ("", 1), error
    assert message in error
    assert {path.name for path in tmp_path.iterdir()} == {*WRONG}


def test_a_recipe_that_is_not_python(tmp_path, capfd):
    path = tmp_path / "page.py"
    path.write_text("a = 1\nb = (\n", "utf-8")
    assert cli.main(["train", str(path)]) == 2
    assert f"{path}:2 is not Python" in capfd.readouterr().err


def test_trains_a_page_of_the_user(tmp_path, monkeypatch, capfd):
    (tmp_path / "beside.py").write_text("STEPS = 7", "utf-8")
    path = tmp_path / "page.py"
    path.write_text(PAGE, "utf-8")
    monkeypatch.setattr(sys, "argv", ["kseq"])
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert cli.main(["train", str(path), "--rate=3"]) == 0
    assert capfd.readouterr().out == "Config(steps=7, rate=3.0)\n"
    assert cli.main(["train", str(path), "--help"]) == 0
    printed = capfd.readouterr().out
    assert printed.startswith(f"usage: kseq train {path} [options]")
    first, second = printed.split("without --train")
    assert "--steps N" in first and "(default: 3)" in first
    assert "as many # as 100 % of them (default: 1.0)" in first
    assert "--steps" in second and "7" in second and "--rate" not in second


PAGE = """
import dataclasses
import kseq
from beside import STEPS

@dataclasses.dataclass
class Config:
    steps: int = 3
    rate: float | None = 1.0  # as many # as 100 % of them

if __name__ == "__main__":
    kseq.run_recipe(print, Config(), without_files=Config(steps=STEPS))
"""


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
        "found = {name for name in sys.modules if name[:5] == 'kseq.'}\n"
        "assert found == {'kseq.lazy_package'}, found"
    )
    done = python(program)
    assert done.returncode == 0, done.stderr


def test_rooms_are_loaded_when_they_are_used():
    program = (
        "import sys\n"
        "from kseq import data, layers, models, run_recipe, training\n"
        f"assert not {HEAVY} & sys.modules.keys()\n"
        "import kseq, kseq.user_error\n"
        "assert callable(run_recipe) and kseq.run_recipe is run_recipe\n"
        "assert data.tags, 'a part that nothing has imported'\n"
        "for name in ('cellar', 'text.corpus', '__wrapped__'):\n"
        "    assert not hasattr(data, name)\n"
    )
    done = python(program)
    assert done.returncode == 0, done.stderr


def test_pages_need_no_matplotlib():
    program = (
        "import sys; from kseq.pictures import attention_page, document_page\n"
        f"assert not {HEAVY - {'numpy'}} & sys.modules.keys()"
    )
    done = python(program)
    assert done.returncode == 0, done.stderr


def test_all_rooms_are_attributes():
    for name in ("data", "decoding", "evaluation", "serving", "training"):
        assert getattr(kseq, name).__name__ == f"kseq.{name}"
        assert name in dir(kseq)
    assert kseq.load is kseq.loading.load
    with pytest.raises(AttributeError, match="no attribute 'cellar'"):
        _ = kseq.cellar


PREDICTION = """
    import sys
    from kseq import cli
    path = sys.argv[1]
    allowed = ["--allow-op", "PartitionedCall", "--allow-op", "StringUpper"]
    code = cli.main(["predict", path, "--scores", *allowed])
    loaded = sys.modules.keys()
    print("also", *sorted(loaded & {
        *("jax", "matplotlib", "scipy", "sklearn", "sacrebleu"),
        *("tyro", "kseq.training", "kseq.evaluation", "kseq.pictures"),
        *("kseq.models", "kseq.layers", "kseq.decoding"),
    }), file=sys.stderr)
    sys.exit(code)
"""


@pytest.mark.slow  # TensorFlow starts once more
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
    part = tmp_path / "translate_transformer.py.part"
    part.write_text("of the user")
    assert cli.main(["recipes", "copy", "translate_transformer"]) == 0
    assert part.read_text() == "of the user"
    assert (tmp_path / "translate_transformer.py").stat().st_size > 1000
    assert cli.main(["recipes", "copy", "translate_transformer"]) == 2


@pytest.mark.parametrize(
    ("command", "defaults"),
    [
        ("predict", ("1", "0, all", "1", "0")),
        ("chat", ("0.7", "0, all", "0.9", "a random one")),
    ],
)
def test_the_help_has_the_defaults_of_sampling(command, defaults, capsys):
    """`kseq chat` samples without --sample, and differently."""
    assert cli.main([command, "--help"]) == 0
    printed = " ".join(capsys.readouterr().out.split("options:")[1].split())
    names = "temperature", "top-k", "top-p", "seed"
    for name, default in zip(names, defaults, strict=True):
        [text] = re.findall(rf"--{name} X (.*?)(?: --(?!sample)|$)", printed)
        assert text.endswith(f"; default: {default}")
        assert ("with --sample" in text) == (command == "predict")
