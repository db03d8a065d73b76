import errno
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from tensorflow.io import gfile

from kseq import data
from kseq.data import DataError, Tokenizer, open_prepared
from kseq.data.text.prepare_pairs import _Preparation
from tests.data.tar import tar
from tests.data.wav import tone, wav


@pytest.fixture(autouse=True)
def files(here):
    rows = [f"eins {n} drei\tone {n} three\n" for n in range(200)]
    Path("a.tsv").write_text("".join(rows) + "\tx\n")


def test_prepare_and_check(call):
    arguments = ["prepare", "out", "--train", "a.tsv", "--vocab-size", "290"]
    facts = [
        "Training pairs: 180 (a.tsv)",
        "Validation pairs: 20 (held out of training by source)",
        "a.tsv: 1 of 201 pairs are left out: 1 with a blank side, 0 with a "
        "line over 65536 bytes.",
    ]
    for _ in range(2):  # the second time it is there already
        output, _ = call(*arguments)
        assert output.splitlines() == [
            *facts,
            "Next: kseq train translate_transformer --train out",
        ]
    source, target = open_prepared("out").tokenizers
    assert source is target
    assert source.vocab_size == 290

    _, notes = call("check", "out", "--filter", "--columns", "x", "y", code=2)
    assert "as a whole: leave out --columns, --filter." in notes
    _, notes = call("check", "out", "--max-ratio", "2", code=2)
    assert "leave out --max-ratio." in notes
    output, _ = call("check", "out")
    assert output.splitlines()[-3:] == facts
    assert "Prepared pairs: source.model, source.offsets" in output
    values = Path("out/source.values").read_bytes()
    Path("out/source.values").write_bytes(values[::-1])
    _, notes = call("check", "out", code=2)
    assert "content of source.values has changed" in notes

    _, notes = call("prepare", "out", "--train", "a.tsv", code=2)
    assert "Use --overwrite, or a different folder." in notes
    output, _ = call(*arguments, "--overwrite")
    assert output.splitlines()[:3] == facts
    call("check", "out")


def test_the_built_in_dates_support_fewer_pieces(call, monkeypatch):
    def prepare(*_, tokenizers, **options):
        raise DataError(f"{tokenizers.vocab_size} pieces")

    monkeypatch.setattr(data, "prepare_pairs", prepare)
    assert ": 1500 pieces" in call("prepare", "out", code=2)[1]
    given = call("prepare", "out", "--vocab-size", "290", code=2)
    assert ": 290 pieces" in given[1]


def test_options_that_need_one_vocabulary(call):
    arguments = ["prepare", "out", "--train", "a.tsv", "--vocab-size", "290"]
    call(*arguments, "--pieces", "bpe", "char")
    for words in (
        ["transformer", "--pretraining-steps", "9"],
        ["transformer", "--share-embeddings"],
        ["lstm", "--copy"],
    ):
        _, notes = call("train", *words, "--train", "out", code=2)
        assert f"{words[1]} needs one vocabulary of source and" in notes
        assert not Path("runs").exists()


def test_old_data_stay_until_others_are_complete(call, monkeypatch):
    """What is finished of these stays, too."""
    arguments = ["prepare", "out", "--vocab-size", "290", "--train"]
    call(*arguments, "a.tsv")
    before = open_prepared("out").facts
    Path("b.de").write_text("a\nb\n")
    Path("b.en").write_text("a\nb\nc\n")
    wrong = [*arguments, "b.de", "b.en", "--overwrite"]
    assert "b.de has 2, b.en has 3" in call(*wrong, code=2)[1]
    Path("deep.tsv").write_text("a\tb\n" * 9 + "a\n")
    deep = [*arguments, "deep.tsv", "--overwrite"]
    assert "deep.tsv:10: expected 2 columns" in call(*deep, code=2)[1]
    assert open_prepared("out").facts == before
    assert not Path("out/.new").exists()
    call("check", "out")

    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    again = [*arguments, "a.tsv", "--overwrite"]
    with monkeypatch.context() as patch:
        patch.setattr(_Preparation, "join", full)
        assert "the same command resumes" in call(*again, code=4)[1]
    call("check", "out")
    written = Path("out/.new/source.model").stat().st_mtime_ns
    call(*wrong, code=2)
    call(*again)
    model = Path("out/source.model")
    assert model.stat().st_mtime_ns == written
    assert not Path("out/.new").exists()
    call("check", "out")
    call(*again)  # what is complete is replaced
    assert model.stat().st_mtime_ns > written


def test_object_stores(call, monkeypatch, tmp_path):
    """TensorFlow's file system in memory is one of them."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    gfile.makedirs("ram://store/out")
    gfile.copy("a.tsv", "ram://store/a.tsv", overwrite=True)
    arguments = ["--vocab-size", "290", "--processes", "1"]
    call("prepare", "out", "--train", "a.tsv", *arguments)
    call("prepare", "other", "--train", "ram://store/a.tsv", *arguments)
    for file in Path("out").iterdir():
        if file.name != "prepared.json":  # the paths of the files
            assert file.read_bytes() == Path("other", file.name).read_bytes()
        gfile.copy(file, f"ram://store/out/{file.name}", overwrite=True)

    output, _ = call("check", "ram://store/out")
    assert "Training pairs: 180 (a.tsv)" in output
    output, _ = call("check", "ram://store/a.tsv")
    assert "Training pairs: 180" in output
    for words, message in (
        (["out2", "--train", "ram://store/out"], "is prepared already"),
        (["out2", "--train", "ram://store/b.tsv"], "There is no file 'ram:"),
        (["out2", "--train", "no://a/b.tsv"], "no file system for no://"),
        (["s3://a/out", "--train", "a.tsv"], "nothing is written to URLs"),
    ):
        _, notes = call("prepare", *words, code=2)
        assert message in notes


def test_running_text(call, refused):
    Path("a.txt").write_text("A rose is a rose.\n" * 40)
    arguments = ["prepare", "out", "--text", "--train", "a.txt"]
    facts = [
        "Training text: 648 characters in 1 document (a.txt)",
        "Validation text: 72 characters in 1 document (held out of training: "
        "the end)",
    ]
    output, _ = call(*arguments)
    assert output.splitlines() == [
        *facts,
        "Next: kseq train write_text --train out",
    ]
    output, _ = call("check", "out")
    assert output.splitlines()[-2:] == facts
    assert "ids: 650 ids (uint16)" in output
    for words, message in (
        (["a.txt"], "--text takes one --train FILE"),
        (["--columns", "a", "b"], "--columns takes one column"),
        (["--from", "run"], "run"),
        (
            ["--vocab-size", "9"],
            "different options: vocab_size was 8000, now 9",
        ),
    ):
        assert message in refused(*arguments, *words)
    assert "one --train FILE" in refused("prepare", "new", "--text")


def test_recordings(call, refused):
    for number in range(3):
        Path(f"{number}.wav").write_bytes(wav(tone(0.1 + number / 10)))
    Path("a.tsv").write_text("0.wav\tyes\n1.wav\tno\n2.wav\tyes\n")
    arguments = ["prepare", "out", "--audio", ".", "--train", "a.tsv"]
    output, _ = call(*arguments)
    facts = call("check", "--audio", ".", "a.tsv")[0].splitlines()
    assert output.splitlines() == [
        *facts,
        "Next: kseq train transcribe_speech --train out",
    ]
    output, _ = call("check", "out")
    assert output.splitlines()[-2:] == facts
    assert "features: 54 x 40 features (float16)" in output
    for words, message in (
        (["a.tsv"], "--audio takes one --train FILE"),
        (["--vocab-size", "99"], "training makes the tokenizer"),
        (["--max-seconds", "9"], "max_seconds was 30.0, now 9.0"),
        (["--features", "a.tsv"], "are mutually exclusive"),
        (["--filter"], "--filter is for pairs"),
    ):
        assert message in refused(*arguments, *words)
    with pytest.raises(DataError, match=r"cannot be used|holds 'recordings'"):
        open_prepared("out")


def test_archives_say_what_they_contain(call, refused, monkeypatch, tmp_path):
    files = {"0.wav": wav(tone()), "1.wav": wav(tone(0.1))}
    Path("a.tar").write_bytes(tar({**files, "0.txt": b"yes", "1.cls": b"no"}))
    output, _ = call("prepare", "out", "--train", "*.tar", "--num-mels", "20")
    facts = call("check", "a.tar")[0].replace("a.tar", "*.tar").splitlines()
    assert output.splitlines() == [
        *facts,
        "Next: kseq train transcribe_speech --train out",
    ]
    assert "features: 26 x 20 features (float16)" in call("check", "out")[0]

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    gfile.makedirs("ram://archives")
    gfile.copy("a.tar", "ram://archives/a.tar", overwrite=True)
    archive, mels = ("--train", "ram://archives/*.tar"), ("--num-mels", "20")
    output, _ = call("prepare", "other", *archive, *mels)
    assert output.splitlines()[-1].endswith("transcribe_speech --train other")
    values = [Path(each, "features.values") for each in ("out", "other")]
    assert values[0].read_bytes() == values[1].read_bytes()
    Path("b.tar").write_bytes(tar({"0.png": b"GIF89a", "0.txt": b"A dog."}))
    Path("c.tar").write_bytes(tar({"0.txt": b"A dog."}))
    for words, message in (
        (["a.tar", "--audio", "."], "Leave out audio"),
        (["a.tar", "--columns", "a", "b"], "Leave out columns"),
        (["b.tar"], "b.tar: 0.png is not a readable JPEG or PNG file, but GIF"),
        (["b.tar", "--resample", "900"], "--resample is for recordings"),
        (["c.tar"], "c.tar contains no recording and no picture"),
        (["c.tar.gz"], "Decompress it to a .tar file"),
    ):
        assert message in refused("check", *words)


def test_features_of_pictures(call, refused, monkeypatch, tmp_path):
    arrays = {"features": np.ones((3, 4, 2)), "names": ["a", "b", "c"]}
    np.savez("a.npz", **arrays)
    Path("a.tsv").write_text("a\tA dog.\nb\tA cat.\nc\tA cow.\n")
    arguments = ["prepare", "out", "--features", "a.npz", "--train", "a.tsv"]
    output, _ = call(*arguments)
    facts = call("check", "--features", "a.npz", "a.tsv")[0].splitlines()
    assert output.splitlines() == [
        *facts,
        "Next: kseq train caption_images --train out",
    ]
    output, _ = call("check", "out")
    assert "features: 3 x 4 x 2 features (float64)" in output
    assert "training makes the tokenizer" in refused(
        *arguments, "--pieces", "bpe"
    )

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    gfile.makedirs("ram://features")
    gfile.copy("a.npz", "ram://features/a.npz", overwrite=True)
    arguments[1::2] = "other", "ram://features/a.npz", "a.tsv"
    assert call(*arguments)[0].splitlines()[:-1] == facts
    for name in ("features.values", "train.names"):
        assert (
            Path("other", name).read_bytes() == Path("out", name).read_bytes()
        )
    output, _ = call("check", *arguments[2:4], "a.tsv")
    assert output.splitlines() == facts
    arguments[2:4] = "--audio", "gs://a/folder"
    assert "--audio takes a local folder" in refused(*arguments)


def test_documents(call, refused):
    rows = [f"{n % 2}\tReport {n}. All is well.\n" for n in range(40)]
    Path("b.tsv").write_text("".join(rows))
    arguments = ["prepare", "out", "--documents", "--train", "b.tsv"]
    facts = [
        "Training documents: 36 (b.tsv)",
        "Validation documents: 4 (held out of training)",
        "Labels: 2",
    ]
    output, _ = call(*arguments, "--vocab-size", "290")
    assert output.splitlines() == [
        *facts,
        "Next: kseq train classify_documents --train out",
    ]
    output, _ = call("check", "out")
    assert output.splitlines()[-3:] == facts
    assert "Prepared documents: ids.offsets, ids.rows" in output
    for words, message in (
        (["b.tsv"], "--documents takes one --train FILE"),
        (["--columns", "a"], "--columns takes 2 columns, or 3 here"),
        (["--pieces", "char"], "leave out --pieces"),
        (["--text"], "--documents and --text are mutually exclusive"),
        ([], "different options: vocab_size was 290, now 16000"),
    ):
        assert message in refused(*arguments, *words)


def test_tags(call, refused):
    rows = [f"to Oslo at {n}\tO B-to O O\n" for n in range(20)]
    Path("b.tsv").write_text("".join(rows))
    arguments = ["prepare", "out", "--tags", "--train", "b.tsv"]
    facts = [
        "Training sentences: 18, 72 words (b.tsv)",
        "Validation sentences: 2, 8 words (held out of training)",
        "Tags: 2",
    ]
    output, _ = call(*arguments, "--vocab-size", "280")
    assert output.splitlines() == [
        *facts,
        "Next: kseq train tag_words --train out",
    ]
    output, _ = call("check", "out")
    assert output.splitlines()[-3:] == facts
    assert "Training sentences of each corpus: 18" in output
    for words, message in (
        (["b.tsv"], "--tags takes one --train FILE"),
        (["--columns", "a"], "--columns takes 2 columns here"),
        (["--pieces", "char"], "leave out --pieces"),
        (["--documents"], "--documents and --tags are mutually exclusive"),
        ([], "different options: vocab_size was 280, now 8000"),
    ):
        assert message in refused(*arguments, *words)


def test_dialogues(call, refused):
    rows = [f"Hi {n}!\nHello {n}.\nWho are you?\n\n" for n in range(20)]
    Path("b.txt").write_text("".join(rows))
    arguments = ["prepare", "out", "--dialogues", "--train", "b.txt"]
    facts = [
        "Training dialogues: 18, 36 answers (b.txt)",
        "Validation dialogues: 2, 4 answers (held out of training)",
    ]
    output, _ = call(*arguments, "--vocab-size", "290")
    assert output.splitlines() == [
        *facts,
        "Next: kseq train chat --train out",
    ]
    output, _ = call("check", "out")
    assert output.splitlines()[-2:] == facts
    assert "Training dialogues of each corpus: 18" in output
    for words, message in (
        (["b.txt"], "--dialogues takes one --train FILE"),
        (["--columns", "a"], "leave out --columns"),
        (["--pieces", "char"], "leave out --pieces"),
        (["--tags"], "--tags and --dialogues are mutually exclusive"),
        ([], "different options: vocab_size was 290, now 8000"),
    ):
        assert message in refused(*arguments, *words)


def test_filters(call, refused):
    arguments = ["prepare", "out", "--train", "a.tsv", "--vocab-size", "290"]
    output, _ = call(*arguments, "--filter", "--max-characters", "12")
    # 100 and more: "eins 100 drei" has 13 characters, "one 100 three" too.
    assert (
        "a.tsv: filters leave out 100 of 200 pairs: 0 empty, 100 longer than "
        "12 characters, 0 with a length ratio over 9, 0 not in the scripts any "
        "and any, 0 with a source equal to the target, 0 duplicates."
    ) in output.splitlines()
    for words, message in (
        (["--max-ratio", "2"], "--max-ratio is for --filter"),
        (["--filter", "--scripts", "any", "x"], "A script has a name such as"),
        (["--filter", "--text"], "--filter is for pairs of sentences"),
    ):
        assert message in refused(*arguments, *words)


def test_tokenizers_of_a_run(call, run):
    call("prepare", "out", "--train", "a.tsv", "--from", run)
    [source, _] = open_prepared("out").tokenizers
    assert source.model == Tokenizer.load(run / "source.model").model


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--train", "b.tsv"], "There is no file 'b.tsv'"),
        (["--train", "a.tsv", "--columns", "x", "y"], "the columns 'x'"),
        (["--train", "a.tsv", "--processes", "0"], "--processes"),
        (["--train", "a.tsv", "--from", "nothing"], "nothing"),
        (["--from", "a", "--pieces", "bpe"], "leave out --vocab-size"),
    ],
)
def test_wrong_arguments(refused, words, message):
    assert message in refused("prepare", "out", *words)
    assert not Path("out").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--beam", "'"], '--beam "\'": No closing quotation'),
        (["--beam", "--processes", "2"], "leave out --processes"),
    ],
)
def test_wrong_options_of_beam(refused, words, message):
    assert message in refused("prepare", "out", "--train", "a.tsv", *words)


def prepare(*words, **options):
    """Starts the command with the text of more than one part."""
    command = [sys.executable, "-m", "kseq", "prepare", "out"]
    command += ["--train", "a.de", "a.en", "--vocab-size", "290", *words]
    return subprocess.Popen(command, stderr=subprocess.PIPE, **options)


def write_much():
    for name in ("a.de", "a.en"):
        lines = [f"{name} line {n % 999} of {n % 97}\n" for n in range(400_000)]
        Path(name).write_text("".join(lines))


@pytest.mark.slow
def test_a_full_disk_and_a_signal_lose_nothing():
    """One message each; the same command ends what they stopped."""
    write_much()

    def fill():
        limit = (3 * 2**20, resource.RLIM_INFINITY)
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)

    full = prepare(preexec_fn=fill)
    _, errors = full.communicate()
    assert full.returncode == 4
    [message] = [line for line in errors.splitlines() if b"kseq" in line]
    assert message == (
        b"kseq prepare: out cannot be written: File too large. What is "
        b"finished is kept: the same command resumes."
    )
    assert Path("out/plan.json").is_file()

    stopped = prepare("--processes", "2")
    while not list(Path("out/parts").glob("*.json")):
        assert stopped.poll() is None
        time.sleep(0.05)
    other = prepare()
    _, errors = other.communicate()
    assert other.returncode == 2
    assert b"out is being prepared by process" in errors
    stopped.send_signal(signal.SIGTERM)
    _, errors = stopped.communicate()
    assert stopped.returncode == 128 + signal.SIGTERM
    assert b"Traceback" not in errors
    assert not Path("out/prepared.json").exists()

    closed = prepare(stdout=subprocess.PIPE)
    closed.stdout.close()
    _, errors = closed.communicate()
    assert Path("out/prepared.json").is_file()
    assert b"Traceback" not in errors
    assert len(open_prepared("out").source) > 300_000


def test_wrong_files_are_refused_without_tensorflow():
    script = (
        "import sys; from kseq.cli import main; "
        "code = main(['prepare', 'out', '--train', 'a.tsv', 'b.tsv']); "
        "sys.exit(code if 'tensorflow' not in sys.modules else 99)"
    )
    found = subprocess.run(
        [sys.executable, "-c", script],
        check=False,
        capture_output=True,
        env={**os.environ, "KERAS_BACKEND": "tensorflow"},
    )
    assert found.returncode == 2
    assert b"no file 'b.tsv'" in found.stderr
