"""Commands on models that transcribe speech."""

import json

import keras
import numpy as np
import pytest

from kseq import cli, data, decoding, layers, models, serving
from kseq.control_tokens import END
from tests.commands.saved_run import saved_run
from tests.data.wav import tone, wav

pytestmark = pytest.mark.slow  # those of captions have files and features too

TEXTS = ["yes", "no", "go on"]
AUDIO = data.AudioPreprocessor(8000, num_mels=8)
KINDS = {"audio": AUDIO, "frames": data.FramePreprocessor(8)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Four recordings, as files and as features, and their transcripts."""
    folder = tmp_path_factory.mktemp("recordings")
    names = [f"{i}.wav" for i in range(4)]
    draw = np.random.default_rng(1)
    frames = []
    for number, name in enumerate(names):
        sound = tone(0.1 + number / 20, hertz=300 * (1 + number))
        content = wav(sound + 0.05 * draw.standard_normal(len(sound)))
        (folder / name).write_bytes(content)
        frames.append(AUDIO.features([content])[0].numpy())
    np.savez(
        folder / "a.npz",
        features=np.concatenate(frames),
        lengths=list(map(len, frames)),
        names=names,
    )
    rows = zip(names, [*TEXTS, "no"], strict=True)
    (folder / "table.tsv").write_text("\n".join(map("\t".join, rows)))
    (folder / "other.wav").write_bytes(wav(tone(), sample_rate=16_000))
    (folder / "silent.wav").write_bytes(wav(np.zeros(900)))
    (folder / "empty.wav").write_bytes(wav([]))
    whole = (folder / "0.wav").read_bytes()
    (folder / "cut.wav").write_bytes(whole[:40] + bytes(4) + whole[44:])
    return folder


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    """The same model for both inputs: an export of audio, a run of frames."""
    root = tmp_path_factory.mktemp("runs")
    tokenizer = data.Tokenizer.train(TEXTS, 100, "char")
    keras.utils.set_random_seed(1)
    model = models.LSTMSeq2Seq(
        None,
        tokenizer.vocab_size,
        embedding_dim=8,
        units=8,
        num_encoder_layers=0,
        attention=layers.LocationAwareAttention(4, kernel_size=5),
        order="bahdanau",
        source_layer=layers.PyramidalEncoder(8, num_layers=2),
        source_dim=8,
        ctc=0.5,
    )
    for weight in model.trainable_variables:
        weight.assign(keras.random.normal(weight.shape))
    bias = model.projection.bias.numpy()
    bias[END] -= 9  # no answer is empty
    model.projection.bias.assign(bias)
    paths = {}
    greedy = decoding.GreedySearch()  # it is traced sooner than a beam
    for kind, preprocessor in KINDS.items():
        served = serving.Generator(
            model, preprocessor, tokenizer, greedy, max_length=9
        )
        paths[kind] = saved_run(served, root / kind)
    run, export = str(paths["audio"]), root / "saved_models" / "audio"
    assert cli.main(["export", run, "--to", str(export)]) == 0
    return paths | {"audio": export}


@pytest.fixture(autouse=True)
def in_folder(folder, monkeypatch):
    monkeypatch.chdir(folder)


def test_the_same_answers_whatever_is_given(paths, predict):
    """A run and an export, recordings and their frames, alone, in a batch."""
    lines = b"0.wav\n\n3.wav\n 1.wav \n"
    found, _ = predict(paths["audio"], lines)
    assert len(found) == 4
    assert found[1] == ""
    assert len({*found}) >= 3
    features = ("--features", "a.npz")
    assert predict(paths["frames"], lines, *features)[0] == found
    run = paths["audio"].parent.parent / "audio"
    assert predict(run, b"3.wav")[0] == found[2:3]


def test_unfinished_and_resampled_recordings(paths, predict, call):
    (whole, cut), notes = predict(paths["audio"], b"0.wav\ncut.wav\n")
    assert whole == cut
    assert notes.startswith("line 2: cut.wav is unfinished")
    soundfile = pytest.importorskip("soundfile")
    sound, _ = soundfile.read("3.wav")
    soundfile.write("3.flac", sound, 8000)
    one, other = predict(paths["audio"], b"3.wav\n3.flac\n")[0]
    assert one == other
    pytest.importorskip("soxr")
    assert predict(paths["audio"], b"other.wav", "--resample")[0] != [""]
    rows = "other.wav\tyes\n0.wav\tno\n"
    with open("mixed.tsv", "w") as file:
        file.write(rows)
    options = ("mixed.tsv", "--resample")
    assert "CER " in call("evaluate", paths["audio"], *options)[0]
    shown, _ = call("check", "mixed.tsv", "--audio", ".", "--resample", "8000")
    assert "Training recordings: 1" in shown


def test_attention_is_to_seconds(paths, predict):
    (record, _), _ = predict(
        paths["audio"], b"3.wav\n\n", "--json", "--attention"
    )
    attention = json.loads(record)["attention"]
    assert attention["source_tokens"][:3] == ["0.00", "0.02", "0.04"]
    assert len(attention["source_tokens"]) == 12  # half of 23 frames
    np.testing.assert_allclose(np.sum(attention["weights"], axis=1), 1, 1e-4)


def test_evaluate_gives_error_rates(paths, call):
    printed, _ = call("evaluate", paths["audio"], "table.tsv")
    assert "CER " in printed and "WER " in printed
    assert "letters" not in printed  # nobody knows where they are
    source = (paths["frames"], "table.tsv", "--features", "a.npz")
    assert call("evaluate", *source)[0] == printed
    elsewhere = ("table.tsv", "--audio", ".")
    assert call("evaluate", paths["audio"], *elsewhere)[0] == printed


def test_explain_shows_the_spectrogram(paths, call):
    page, _ = call("explain", paths["audio"], text=b"0.wav\n\n")
    assert page.count('<img alt="" src="data:image/png;base64,') == 1
    assert "0.02 s" in page
    page, _ = call(
        "explain", paths["frames"], "--features", "a.npz", text=b"1.wav\n"
    )
    assert page.count("<img") == 1


@pytest.mark.parametrize(
    ("kind", "text", "options", "message"),
    [
        ("frames", b"0.wav", (), "features of recordings"),
        ("frames", b"9.wav", ("--features", "a.npz"), "line 1: expected a"),
        ("frames", b"0.wav", ("--features", "table.tsv"), "table.tsv"),
        ("audio", b"0.wav\n9.wav", (), "line 2: 9.wav is not a file"),
        ("audio", b"table.tsv", (), "not a readable 16-bit PCM WAV file"),
        ("audio", b"other.wav", (), "16000 samples per second; expected 8000"),
        ("audio", b"0.wav\nsilent.wav", (), "line 2: silent.wav is silent"),
        ("audio", b"empty.wav", (), "line 1: empty.wav has no samples"),
        ("audio", b"0.wav", ("--features", "a.npz"), "paths of recordings"),
        ("frames", b"", ("--features", "a.npz", "--resample"), "--resample is"),
    ],
)
def test_wrong_input_is_one_message(
    paths, predict, kind, text, options, message
):
    _, notes = predict(paths[kind], text, *options, code=2)
    assert message in notes
    assert notes.count("\n") == 1


@pytest.mark.parametrize(
    ("kind", "arguments", "message"),
    [
        ("audio", ("table.tsv", "table.tsv"), "needs one table"),
        ("audio", ("table.tsv", "--audio", "none"), "not a folder"),
        ("audio", ("table.tsv", "--images", "."), "--images is not for"),
        ("audio", ("table.tsv", "--plain"), "--plain is not for"),
        ("frames", ("table.tsv",), "--features"),
        (
            "frames",
            ("table.tsv", "--features", "a.npz", "--audio", "."),
            "--audio is not for",
        ),
    ],
)
def test_wrong_files_of_evaluate(paths, refused, kind, arguments, message):
    assert message in refused("evaluate", paths[kind], *arguments)


def test_bytes_that_are_no_recording_answer_blank(paths, folder, load):
    served = load(paths["audio"])
    good = (folder / "0.wav").read_bytes()
    [alone] = served([good])
    found = served([b"RIFF", good, b"", wav(np.zeros(900))])
    assert found == ["", alone, "", ""]


def test_recordings_of_different_lengths_are_frames(paths, load):
    served = load(paths["frames"])
    stored = data.read_frames("a.npz")
    frames = [stored[number] for number in range(4)]
    alone = [served([each])[0] for each in frames]
    assert served(frames) == alone
    assert served([np.full((3, 8), np.nan)]) == [""]


def test_check_prints_the_numbers(call, refused):
    audio, _ = call("check", "table.tsv", "--audio", ".")
    assert "Training recordings: 3, 0.4 seconds (table.tsv)" in audio
    ready, _ = call("check", "table.tsv", "--features", "a.npz")
    assert ready == audio
    both = ("table.tsv", "--audio", ".", "--features", "a.npz")
    assert "mutually exclusive" in refused("check", *both)
    assert "not a folder" in refused("check", "table.tsv", "--audio", "none")
