import atexit
import contextlib
import dataclasses
import errno
import json
import math
import os
import re
import shutil
import subprocess
import sys
import types
from pathlib import Path

import keras
import pytest

from kseq.data import PairTokenizers, prepare_pairs
from kseq.files.atomic_write import atomic_write
from kseq.files.model_path import is_run, model_path
from kseq.layers import LuongAttention
from kseq.models import ExactModel, LSTMSeq2Seq
from kseq.runs import DiskError, RunDirectory, RunError
from kseq.runs.atomic_replace import recover
from kseq.runs.exports import claim_exports
from kseq.runs.free_disk import check_free_disk
from kseq.training import LowRankOptimizer, build_optimizer
from kseq.user_error import UserError

RUNS = "kseq.runs.run_directory"


@dataclasses.dataclass(frozen=True)
class Config:
    units: int = 8
    steps: int = 100
    seed: int = 1
    overwrite: bool = False


@dataclasses.dataclass(frozen=True)
class OfPairs(Config):
    train: tuple[str, ...] = ()
    vocab_size: int = 8000
    pieces: tuple[str, ...] = ("bpe",)


def model(units=8, optimizer="adam"):
    inputs = keras.Input((4,), name="inputs")
    outputs = keras.layers.Dense(units, name="dense")(inputs)
    model = keras.Model(inputs, outputs, name="tiny")
    model.compile(optimizer)
    return model


@pytest.fixture
def run(tmp_path):
    return started(tmp_path / "runs" / "tiny")


def started(path, config=None, may_change=(), **options):
    """A run that is started and saved, as a recipe does."""
    run = RunDirectory(path)
    run.start(config or Config(), may_change, **options)
    run.save_model(model(units=config.units if config else 8))
    return run


def test_a_new_run_has_its_numbers_and_its_environment(run):
    assert json.loads(run.config.read_text()) == {
        "units": 8,
        "steps": 100,
        "seed": 1,
    }
    environment = json.loads(run.environment.read_text())
    assert environment["seed"] == 1
    assert environment["keras"] == keras.version()


def test_the_same_config_resumes(run):
    run.metrics.write_text("{}\n")
    run.start(Config())
    assert run.metrics.read_text() == "{}\n"


def test_a_run_that_overwrote_another_resumes(run):
    started(run.path, Config(overwrite=True), overwrite=True)
    started(run.path)


def test_another_config_is_refused_with_what_differs(run):
    with pytest.raises(RunError) as caught:
        run.start(Config(units=16, steps=200, seed=2), may_change=("steps",))
    message = str(caught.value)
    assert "units: 8 -> 16" in message
    assert "seed: 1 -> 2" in message
    assert "steps" not in message
    assert json.loads(run.config.read_text())["units"] == 8


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EOPNOTSUPP])
def test_a_disk_without_locks_is_named(tmp_path, monkeypatch, number):
    def refuse(descriptor, operation):
        raise OSError(number, "Function not implemented")

    monkeypatch.setattr("fcntl.flock", refuse)
    with pytest.raises(RunError, match="cannot be locked"):
        RunDirectory(tmp_path / "run").start(Config())


@dataclasses.dataclass(frozen=True)
class WithDType(Config):
    dtype: str = "auto"
    accumulation_steps: int = 1


@dataclasses.dataclass(frozen=True)
class WithPositions(Config):
    positions: str = "rotary"


def test_a_run_keeps_a_default_of_its_version(tmp_path):
    """What 0.2 did not write into `config.json`."""

    def start(positions, **options):
        run = RunDirectory(tmp_path / "run")
        config = run.start(WithPositions(positions=positions), **options)
        run.save_model(model())
        return run, config.positions

    run, positions = start("rotary")
    assert positions == "rotary"
    config = json.loads(run.config.read_text())
    del config["positions"]
    run.config.write_text(json.dumps(config))
    run.environment.write_text(json.dumps({"kseq": "0.2.0"}))
    for _ in range(2):
        run, positions = start("rotary")
        assert positions == "sinusoidal"
        assert json.loads(run.config.read_text())["positions"] == positions
    run.environment.write_text(json.dumps({"kseq": "0.3.0"}))
    with pytest.raises(RunError, match="positions: sinusoidal -> rotary"):
        start("rotary")
    assert start("rotary", overwrite=True)[1] == "rotary"


def test_a_run_keeps_what_auto_has_become(tmp_path, monkeypatch):
    """Wherever it resumes; a new run chooses anew."""

    def start(path, chosen, dtype="auto", **options):
        monkeypatch.setattr(f"{RUNS}.dtype_policy", lambda: chosen)
        run = RunDirectory(tmp_path / path)
        config = run.start(WithDType(dtype=dtype), **options)
        run.save_model(model())
        stored = json.loads(run.config.read_text())["dtype"]
        assert stored == config.dtype
        return stored

    assert start("a", "mixed_bfloat16") == "mixed_bfloat16"
    assert start("a", "float32") == "mixed_bfloat16"
    assert start("a", "float32", "mixed_bfloat16") == "mixed_bfloat16"
    with pytest.raises(RunError, match="dtype: mixed_bfloat16 -> float32"):
        start("a", "float32", "float32")
    assert start("b", "float32") == "float32"
    assert start("c", "float32", "mixed_float16") == "mixed_float16"
    assert start("c", "float32") == "mixed_float16"
    assert start("a", "float32", overwrite=True) == "float32"


def test_a_prepared_folder_has_the_options_of_its_tokenizers(here):
    """They are recorded, for runs that start from this one."""
    Path("a.tsv").write_text("".join(f"{n}\tone {n}\n" for n in range(9)))
    pieces = ("char", "bpe")
    prepare_pairs("data", ["a.tsv"], tokenizers=PairTokenizers(290, pieces))

    def start():
        run = RunDirectory("runs/a")
        config = run.start(OfPairs(train=("data",)))
        run.save_model(model())
        return run, (config.vocab_size, config.pieces)

    assert start()[1] == (290, pieces)
    run, found = start()
    assert found == (290, pieces)
    # An earlier version recorded the defaults.
    stored = json.loads(run.config.read_text())
    defaults = {"vocab_size": 8000, "pieces": ["bpe"]}
    run.config.write_text(json.dumps(stored | defaults))
    assert start()[1] == (8000, ("bpe",))


def test_all_machines_have_what_the_run_of_the_chief_decided(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(f"{RUNS}.is_chief", lambda: False)
    kept = {"dtype": "mixed_float16"}
    monkeypatch.setattr(f"{RUNS}.from_chief", lambda own: own or kept)
    config = RunDirectory(tmp_path / "run").start(WithDType())
    assert config.dtype == "mixed_float16"


def test_a_run_resumes_with_other_micro_batches(tmp_path, capsys):
    """They change no update; config and model say what they are."""

    def start(steps):
        run = RunDirectory(tmp_path / "run")
        run.start(WithDType(accumulation_steps=steps, dtype="float32"))
        inputs = keras.Input((4,), name="inputs")
        outputs = keras.layers.Dense(3, name="dense")(inputs)
        one = ExactModel(inputs, outputs, name="exact")
        one.compile("sgd", accumulation_steps=steps)
        run.save_model(one)
        compiled = json.loads(run.model.read_text())["compile_config"]
        assert compiled["accumulation_steps"] == steps
        assert json.loads(run.config.read_text())["accumulation_steps"] == steps
        return capsys.readouterr().err

    assert start(1) == ""
    assert start(4).endswith("resumes with accumulation_steps: 1 -> 4\n")
    assert start(4) == ""


def test_what_may_change_is_printed_and_kept(run, capsys):
    run.start(Config(steps=200), may_change=("steps",))
    assert "steps: 100 -> 200" in capsys.readouterr().err
    assert json.loads(run.config.read_text())["steps"] == 100
    run.save_model(model())
    assert json.loads(run.config.read_text())["steps"] == 200


def test_overwriting_deletes_the_run_and_spares_other_files(run):
    run.metrics.write_text("{}\n")
    run.checkpoints.mkdir()
    (run.path / "notes.txt").write_text("mine")
    before = content(run.path)
    run.start(Config(units=16), overwrite=True)
    assert content(run.path) == before
    run.save_model(model(units=16))
    assert json.loads(run.config.read_text())["units"] == 16
    assert not run.metrics.exists()
    assert not run.checkpoints.exists()
    assert (run.path / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_directory_that_is_no_run_is_refused(tmp_path, overwrite):
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(RunError, match=r"is not a run: it holds config\.json"):
        RunDirectory(tmp_path).start(Config(), overwrite=overwrite)
    assert (tmp_path / "config.json").read_text() == "{}"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_file_in_the_place_of_the_directory_is_refused(tmp_path):
    (tmp_path / "run").write_text("")
    with pytest.raises(RunError, match="run cannot be used: File exists"):
        RunDirectory(tmp_path / "run").start(Config())


def test_a_start_that_was_killed_can_be_repeated(run):
    run.config.rename(run.path / "config.json.part")
    run.model.unlink()
    run.command.unlink()  # version 0.1, which left these files, had none
    started(run.path)
    assert is_run(run.path)
    assert not (run.path / "config.json.part").exists()


START = """
import sys
import types
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from kseq.files.model_path import is_run
from kseq.runs import RunDirectory
from tests.runs.test_run_directory import started
started(sys.argv[2])
print("trains", flush=True)
sys.stdin.read()
"""


@pytest.mark.slow  # TensorFlow starts once more
def test_two_trainers_of_one_run(tmp_path):
    """The second is refused; a process that died holds no lock."""
    root = str(Path(__file__).parents[2])
    command = [sys.executable, "-c", START, root, str(tmp_path)]
    run = RunDirectory(tmp_path)
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout.readline() == b"trains\n"
        with pytest.raises(RunError, match=f"trained by process {other.pid} "):
            run.start(Config(), overwrite=True)
        assert is_run(run.path)
        other.kill()
    started(tmp_path)


def test_a_run_that_was_deleted_is_locked_again(run):
    shutil.rmtree(run.path)
    run.start(Config())
    assert run.lock.read_text().startswith(f"process {os.getpid()} ")


def test_a_broken_config_is_one_message(run):
    run.config.write_text("{")
    with pytest.raises(UserError, match=r"config\.json is broken"):
        run.start(Config())


def test_another_model_is_refused(run):
    run.save_model(model())
    run.save_model(model())
    with pytest.raises(RunError, match=r"config\.units: 8 -> 16"):
        run.save_model(model(units=16))


def test_another_optimizer_is_refused(run):
    run.save_model(model())
    with pytest.raises(RunError, match=r"optimizer\.class_name: Adam -> SGD"):
        run.save_model(model(optimizer="sgd"))


@dataclasses.dataclass(frozen=True)
class Schedule:
    schedule: str
    steps: int = 20
    learning_rate: float = 0.1
    warmup_steps: int = 5
    ema: float = 0.0
    weight_decay: float = 0.0
    optimizer: str = "adam"


@pytest.mark.parametrize("schedule", ["constant", "inverse_sqrt", "cosine"])
def test_more_steps_of_each_schedule(here, schedule):
    def start(steps):
        config = Schedule(schedule, steps)
        run = RunDirectory("runs/tiny")
        run.start(config, ("steps",))
        run.save_model(model(optimizer=build_optimizer(config)))
        return json.loads(run.model.read_text())

    first = start(20)
    if schedule == "cosine":  # `start_run` refuses the steps themselves
        with pytest.raises(RunError, match="decay_steps: 15 -> 35"):
            start(40)
    else:
        assert (start(40) == first) == (schedule == "inverse_sqrt")
        start(20)


def test_layers_that_keras_names_anew_are_the_same(tmp_path):
    """As where a run resumes in the process that started it."""
    run = RunDirectory(tmp_path)
    run.start(Config())
    for _ in range(2):
        attention = LuongAttention()
        run.save_model(
            LSTMSeq2Seq(9, 9, embedding_dim=4, units=4, attention=attention)
        )


def served(source=b"source", target=b"target", beam_size=4, units=8):
    tokenizers = {
        "source": types.SimpleNamespace(model=source),
        "target": types.SimpleNamespace(model=target),
    }
    return types.SimpleNamespace(
        model=model(units),
        tokenizers=tokenizers,
        get_config=lambda: {"search": {"beam_size": beam_size}},
    )


def test_what_is_trained_is_saved(run):
    run.save(served())
    run.save(served())
    assert run.tokenizer("source").read_bytes() == b"source"
    assert run.read_task() == {"search": {"beam_size": 4}}
    assert run.read_model()["config"]["name"] == "tiny"


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"target": b"other"}, r"target\.model"),
        ({"beam_size": 5}, r"search\.beam_size: 4 -> 5"),
    ],
)
def test_a_different_task_is_refused(run, other, message):
    run.save(served())
    with pytest.raises(RunError, match=message):
        run.save(served(**other))
    assert run.tokenizer("target").read_bytes() == b"target"


def test_another_version_may_have_more_options(run):
    environment = json.loads(run.environment.read_text())
    run.environment.write_text(json.dumps(environment | {"kseq": "0.1.0"}))
    config = json.loads(run.config.read_text())
    del config["seed"]
    run.config.write_text(json.dumps(config))
    run.start(Config())


def content(path):
    """All files of a directory, but its lock, and what they hold."""
    return {
        str(file.relative_to(path)): file.is_file() and file.read_bytes()
        for file in path.rglob("*")
        if file.name != "lock"
    }


def trained(path):
    """A run with a file of each kind, which a new one may replace."""
    run = started(path)
    run.save(served())
    for folder in (run.checkpoints / "last", run.tensorboard, run.pretraining):
        folder.mkdir(parents=True)
        (folder / "of the old run").write_text("old")
    run.metrics.write_text("{}\n")
    (run.path / "notes.txt").write_text("mine")
    return run


class Kill(BaseException):
    """No handler of errors sees it, and nothing is done after it."""


def die_after(monkeypatch, calls):
    """Ends all work on files from one call on, as SIGKILL does."""
    count = 0

    def dying(function):
        def call(*args, **options):
            nonlocal count
            count += 1
            if count > calls:
                raise Kill
            return function(*args, **options)

        return call

    for owner, name in (
        *((Path, name) for name in ("mkdir", "rename", "replace", "rmdir")),
        *((Path, "unlink"), (Path, "open"), (os, "fsync")),
        *((shutil, "rmtree"), (os, "open")),
    ):
        monkeypatch.setattr(owner, name, dying(getattr(owner, name)))


def test_killed_while_it_overwrites(tmp_path, monkeypatch):
    """At any call: the next start finds the old run or the new one, whole."""
    old = content(trained(tmp_path / "old").path)
    shutil.copytree(tmp_path / "old", tmp_path / "new")
    other = served(source=b"new", units=16)
    run = RunDirectory(tmp_path / "new")
    run.start(Config(units=16), overwrite=True)
    run.save(other)
    new = content(tmp_path / "new")
    assert new["source.model"] == b"new"
    assert new["notes.txt"] == b"mine"
    assert not {name for name in new if "of the old run" in name}

    found = []
    for calls in range(200):
        path = tmp_path / str(calls)
        shutil.copytree(tmp_path / "old", path)
        run = RunDirectory(path)
        run.start(Config(units=16), overwrite=True)
        try:
            with monkeypatch.context() as patch:
                die_after(patch, calls)
                run.save(other)
        except Kill:
            with contextlib.suppress(RunError):  # another config than the new
                RunDirectory(path).start(Config())
            found.append(content(path))
            assert found[-1] in (old, new), calls
        else:
            break
    assert found[0] == old
    assert found[-1] == new
    assert found == sorted(found, key=new.__eq__)
    assert len(found) > 20


def test_killed_while_it_is_restored(tmp_path, monkeypatch):
    old = content(trained(tmp_path / "old").path)
    (tmp_path / "old" / ".old-run").mkdir()
    (tmp_path / "old" / ".new-run").mkdir()
    for name in ("config.json", "metrics.jsonl", "checkpoints"):
        (tmp_path / "old" / name).rename(tmp_path / "old" / ".old-run" / name)
    with pytest.raises(UserError, match="Repeat its command"):
        model_path(tmp_path / "old")
    for calls in range(50):
        path = tmp_path / str(calls)
        shutil.copytree(tmp_path / "old", path)
        try:
            with monkeypatch.context() as patch:
                die_after(patch, calls)
                recover(path)
        except Kill:
            RunDirectory(path).start(Config())
            assert content(path) == old
        else:
            break
    assert calls > 5


def test_killed_before_it_was_first_saved(tmp_path, monkeypatch):
    tiny = served()
    for calls in range(100):
        path = tmp_path / str(calls)
        run = RunDirectory(path)
        run.start(Config())
        try:
            with monkeypatch.context() as patch:
                die_after(patch, calls)
                run.save(tiny)
        except Kill:
            run.start(Config())
            run.save(tiny)
            assert is_run(path)
            names = {file.name for file in path.iterdir()}
            assert not {name for name in names if name.startswith(".")}
        else:
            break
    assert calls > 10


@pytest.mark.parametrize("name", ["write", "rename"])
def test_an_error_while_it_overwrites_restores_the_run(
    tmp_path, monkeypatch, name
):
    run = trained(tmp_path)
    before = content(tmp_path)
    run.start(Config(units=16), overwrite=True)

    def no_space(*args):
        raise OSError(28, "No space left on device")

    def rename(path, target):
        if target.name == "metrics.jsonl" and path.parent == tmp_path:
            no_space()
        return os.rename(path, target)

    if name == "write":
        monkeypatch.setattr(os, "fsync", no_space)
    else:
        monkeypatch.setattr(Path, "rename", rename)
    with pytest.raises(DiskError, match="No space left") as stopped:
        run.save(served(units=16))
    assert stopped.value.exit_code == 4
    assert content(tmp_path) == before
    monkeypatch.undo()
    run.start(Config())
    run.save(served())


def test_training_needs_a_run_that_is_saved(tmp_path):
    run = RunDirectory(tmp_path)
    run.check_saved()  # it only reads
    with pytest.raises(ValueError, match="start must be called before save"):
        run.save_model(model())
    run.start(Config())
    with pytest.raises(ValueError, match=r"call run\.save first"):
        run.check_saved()
    run.save_model(model())
    run.check_saved()
    run.start(Config(), overwrite=True)
    with pytest.raises(ValueError, match=r"call run\.save first"):
        run.check_saved()


@pytest.mark.parametrize("keep", [0, -1, True, 2.0, None, "5"])
def test_checkpoints_that_are_kept_are_at_least_one(tmp_path, keep):
    run = trained(tmp_path)
    before = content(tmp_path)
    run.start(Config(), overwrite=True)
    with pytest.raises(ValueError, match=f"Received: keep={keep!r}"):
        run.save(served(), keep=keep)
    assert content(tmp_path) == before


def test_a_full_disk_is_found_before_anything_is_touched(tmp_path, monkeypatch):
    run = trained(tmp_path)
    before = content(tmp_path)
    large = model(units=100_000)
    usage = types.SimpleNamespace(free=0)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    run.start(Config(), overwrite=True)
    with pytest.raises(DiskError, match=r"about 56 MB for 6 .* has 0 MB"):
        run.save_model(large, keep=6)
    assert content(tmp_path) == before
    usage.free = 57_000_000
    with pytest.raises(DiskError, match="for 16 checkpoints"):
        check_free_disk(tmp_path, large, keep=6, keep_best=10)
    run.save_model(large, keep=6)


def test_only_checkpoints_make_room_for_others(tmp_path, monkeypatch):
    """Prepared data, which may be larger by far, stay where they are."""
    usage = types.SimpleNamespace(free=10_000_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    large = model(units=100_000)
    for folder in (tmp_path / "prepared", tmp_path / "checkpoints" / "last"):
        folder.mkdir(parents=True)
    with open(tmp_path / "prepared" / "source.values", "wb") as file:
        file.truncate(10**9)  # without content
    with pytest.raises(DiskError, match=r"about 56 MB .* has 10 MB"):
        check_free_disk(tmp_path, large, keep=6)
    with open(tmp_path / "checkpoints" / "last" / "ckpt-1", "wb") as file:
        file.truncate(50_000_000)
    check_free_disk(tmp_path, large, keep=6)


@pytest.mark.parametrize("rank", [0, 2])
@pytest.mark.parametrize("name", ["Adam", "Lion", "Adafactor"])
def test_a_checkpoint_needs_the_space_of_its_variables(
    tmp_path, monkeypatch, name, rank
):
    """Those of LoRA are small, and Adam keeps more than the others."""
    optimizer = getattr(keras.optimizers, name)(use_ema=True)
    if rank:
        optimizer = LowRankOptimizer(optimizer, rank)
    large = model(units=1000, optimizer=optimizer)
    optimizer.build(large.trainable_variables)  # as `ExactModel` does
    usage = types.SimpleNamespace(free=0)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)

    with pytest.raises(DiskError) as error:
        check_free_disk(tmp_path, large, keep=10**6)
    found = re.search(r"about ([\d,]+) MB", str(error.value))
    saved = [*large.variables, *optimizer.variables]
    expected = 4 * sum(math.prod(variable.shape) for variable in saved)
    assert int(found[1].replace(",", "")) == pytest.approx(expected, rel=0.02)


def test_averages_need_space_in_every_checkpoint(tmp_path, monkeypatch):
    usage = types.SimpleNamespace(free=0)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    adam = keras.optimizers.Adam(use_ema=True)
    for optimizer in (adam, keras.optimizers.LossScaleOptimizer(adam)):
        large = model(units=100_000, optimizer=optimizer)
        with pytest.raises(DiskError, match="about 72 MB"):
            check_free_disk(tmp_path, large, keep=6)


@pytest.mark.parametrize("there", [(), ("runs",), ("runs", "runs/tiny")])
def test_a_command_that_fails_leaves_nothing(tmp_path, monkeypatch, there):
    ended = []
    monkeypatch.setattr(atexit, "register", lambda *args: ended.append(args))
    for name in there:
        (tmp_path / name).mkdir()
    run = RunDirectory(tmp_path / "runs" / "tiny")
    run.start(Config())
    assert run.lock.is_file()
    for function, *args in ended:
        function(*args)
    assert {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*")} == {
        *there
    }
    run = started(tmp_path / "runs" / "tiny")
    before = content(tmp_path)
    for function, *args in ended:
        function(*args)
    assert content(tmp_path) == before
    assert run.lock.is_file()


def test_what_kill_leaves_refuses_nothing(tmp_path):
    (tmp_path / "lock").write_text("process 1 on another machine")
    started(tmp_path, Config(units=16))


def test_the_folder_of_its_exports(here):
    for path, name in (
        ("runs/x", "x"),
        ("runs/x/", "x"),
        ("runs/x/.", "x"),
        ("runs/x/..", "runs"),
        (".", here.name),
        ("..", here.parent.name),
    ):
        assert RunDirectory(path).exports == Path("saved_models") / name
    for path in ("/", "//", "/..", "/tmp/.."):
        with pytest.raises(RunError, match="has no name"):
            print(RunDirectory(path).exports)
    for path in ("", "a\0b"):
        with pytest.raises(RunError, match="Expected the path of a run"):
            RunDirectory(path)


def test_exports_of_another_run_are_found_at_the_start(here):
    one, other = (RunDirectory(here / n / "x") for n in ("a", "b"))
    one.exports.mkdir(parents=True)
    claim_exports(one.exports, one.path)
    with pytest.raises(
        RunError, match=r"has the exports of a different run, .*/a/x \("
    ):
        other.start(Config())
    assert not other.path.parent.exists()
    one.start(Config())


def test_a_file_named_saved_models_is_found_at_the_start(here):
    Path("saved_models").touch()
    run = RunDirectory("runs/x")
    with pytest.raises(RunError, match="saved_models is not a directory"):
        run.start(Config())
    assert not Path("runs").exists()


VALID = b"{}", b'{"units": {"a": [NaN, 1e999, null]}, "other": 1}'


@pytest.mark.parametrize("name", ["config.json", "environment.json"])
@pytest.mark.parametrize(
    "text",
    [
        *(b"", b"[]", b"null", b'"text"', b"5", b"NaN", b"{", b"\xff\xfe"),
        *(b"9" * 5000, b"[" * 100_000, b'{"a":' * 500 + b"1" + b"}" * 500),
        *VALID,
    ],
    ids=lambda text: repr(text[:12]),
)
def test_a_broken_file_is_one_message(saved, name, text):
    path = saved / name
    before = path.read_bytes()
    path.write_bytes(text)
    try:
        run = RunDirectory(saved)
        if name == "environment.json" and text in VALID:  # but says nothing
            run.start(Config())
            return
        with pytest.raises(UserError, match=str(saved)) as caught:
            run.start(Config())
        assert len(str(caught.value)) < 500
    finally:
        path.write_bytes(before)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    return started(tmp_path_factory.mktemp("run")).path


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "file.json"
    atomic_write(path, "old")

    def no_space(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(OSError, match="No space"):
        atomic_write(path, "new")
    assert path.read_text() == "old"
