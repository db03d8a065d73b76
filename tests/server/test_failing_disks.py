"""Versions on disks that fail, and folders that nobody may read."""

import contextlib
import functools
import os
import shutil
import tempfile
import threading
import time
from pathlib import Path

import pytest

from kseq.server import ModelStore, model_store, serve
from kseq.server.request_error import RequestError
from tests.failing_disk import ERRORS, FailingDisk


class _Servable:
    """What `ModelStore` loads, without TensorFlow."""

    def __init__(self, name, path, allow_ops):
        self.name, self.path, self.version = name, path, int(path.name)
        text = (path / "saved_model.pb").read_text()
        if text != "whole":
            raise ValueError(f"it is {text}")


@pytest.fixture(autouse=True)
def _no_tensorflow(monkeypatch):
    monkeypatch.setattr(model_store, "Servable", _Servable)


@pytest.fixture
def disk(monkeypatch):
    return FailingDisk(monkeypatch)


@pytest.fixture
def base(tmp_path):
    add(tmp_path / "m", 1)
    return tmp_path / "m"


def add(base, name, text="whole"):
    folder = base / f"{name}"
    folder.mkdir(parents=True)
    (folder / "saved_model.pb").write_text(text)
    return folder


def open_store(*args, **options):
    store = ModelStore(*args, **options)
    store.poll()
    return store


def states(store, name="m"):
    return {
        version: (status.state, status.error_code)
        for version, status in store.status(name).items()
    }


AVAILABLE, BROKEN = ("AVAILABLE", "OK"), ("END", "UNKNOWN")


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("part", ["", "saved_model.pb", "variables"])
def test_an_error_of_a_new_version_heals(base, disk, error, part):
    store = open_store({"m": base})
    (add(base, 2) / "variables").mkdir()
    disk.errors[base / "2" / part if part else base / "2"] = error
    for _ in range(2):
        store.poll()
        assert store.newest("m").version in {1, 2}
        assert store.readiness()["m"].is_ready
        assert not store.readiness()["m"].problem
    if part != "variables" and error != "ENOENT":
        assert states(store) == {1: AVAILABLE, 2: BROKEN}
        message = store.status("m")[2].error_message
        assert str(base / "2") in message and "\n" not in message
    disk.errors.clear()
    store.poll()
    assert store.newest("m").version == 2


@pytest.mark.parametrize("error", ERRORS)
def test_an_error_of_a_served_version_takes_nothing_down(base, disk, error):
    add(base, 2)
    store = open_store({"m": base})
    if error != "ENOENT":  # which says that it is gone
        disk.errors[base / "2"] = error
    store.poll()
    assert store.newest("m").version == 2
    assert states(store) == {2: AVAILABLE}


@pytest.mark.parametrize("error", ERRORS)
def test_an_error_of_the_folder_is_shown(base, disk, error, tmp_path):
    store = open_store({"m": base, "n": tmp_path / "n"})
    disk.errors[base] = error
    [line] = [line for line in store.poll() if line.startswith("m")]
    assert "m: its folder cannot be polled: " in line
    assert store.poll() == []
    assert store.newest("m").version == 1
    assert states(store) == {1: AVAILABLE}
    message = store.status("m")[1].error_message
    assert str(base) in message and message in line
    assert store.readiness()["m"].problem == message
    disk.errors.clear()
    add(base, 2)
    store.poll()
    assert states(store) == {1: ("END", "OK"), 2: AVAILABLE}
    assert store.status("m")[2].error_message == ""


@pytest.mark.parametrize("function", ["is_file", "iterdir", "resolve", "stat"])
@pytest.mark.parametrize("kind", [PermissionError, KeyError, RuntimeError])
def test_one_model_does_not_delay_others(
    base, monkeypatch, tmp_path, function, kind
):
    add(tmp_path / "a", 1)
    store = open_store({"a": tmp_path / "a", "m": base})
    replaced = getattr(Path, function)

    def fail(path, *args, **options):
        if path.is_relative_to(tmp_path / "a"):
            raise kind("of this model alone")
        return replaced(path, *args, **options)

    monkeypatch.setattr(Path, function, fail)
    add(base, 2)
    add(tmp_path / "a", 2)
    store.poll()
    assert store.newest("m").version == 2
    assert store.newest("a").version in {1, 2}


def test_a_message_that_cannot_be_encoded(tmp_path):
    base = tmp_path / os.fsdecode(b"m\xff")
    store = open_store({"m": base})
    with pytest.raises(RequestError, match="versions of model m: ") as error:
        store.status("m")
    assert str(error.value).encode()
    add(base, 1, "\udcff".encode("utf-8", "surrogatepass").decode("latin-1"))
    store.poll()
    assert store.status("m")[1].error_message.encode()


def test_a_version_that_is_deleted_while_it_is_polled(base):
    store = open_store({"m": base})
    stop = threading.Event()

    def come_and_go():
        while not stop.is_set():
            folder = add(base, 2, "broken")
            for number in range(20):
                (folder / f"{number}").mkdir()
            shutil.rmtree(folder)

    thread = threading.Thread(target=come_and_go)
    thread.start()
    try:
        for _ in range(500):
            store.poll()
            assert not store.readiness()["m"].problem
    finally:
        stop.set()
        thread.join()
    assert store.newest("m").version == 1


@contextlib.contextmanager
def unprivileged():
    """Root reads whatever the permissions say."""
    if os.geteuid():
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def open_base():
    """As `base`, where other users may look."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        add(Path(folder), 1)
        with unprivileged():
            if not os.access(folder, os.X_OK):
                pytest.skip("temporary folders are private here")
        yield Path(folder)


@pytest.mark.parametrize("name", ["2", "2/saved_model.pb", "2/variables"])
def test_permissions(open_base, name):
    base = open_base
    store = open_store({"m": base})
    (add(base, 2) / "variables").mkdir()
    modes = (base / name).stat().st_mode
    (base / name).chmod(0)
    with unprivileged():
        for _ in range(2):
            store.poll()
        assert states(store) == {1: AVAILABLE, 2: BROKEN}
        assert "ermission denied" in store.status("m")[2].error_message
    (base / name).chmod(modes)
    with unprivileged():
        store.poll()
    assert store.newest("m").version == 2


@pytest.mark.parametrize("gone", ["version", "others"])
def test_a_labelled_version_stays(base, gone):
    add(base, 2)
    store = open_store({"m": base}, {("m", "stable"): 1})
    shutil.rmtree(base / "1")
    if gone == "others":
        shutil.rmtree(base / "2")
    for number in (3, 4):
        store.poll()
        assert store.find("m", label="stable").version == 1
        assert store.find("m", version=1).version == 1
        assert store.status("m", label="stable")[1].state == "AVAILABLE"
        add(base, number)
    assert store.newest("m").version == 3
    assert states(store)[2] == ("END", "OK")


def test_what_answers_stays_while_nothing_else_can(base):
    """A label alone is no reason to drop the newest version."""
    add(base, 2)
    store = open_store({"m": base}, {("m", "stable"): 1})
    shutil.rmtree(base / "2")
    (base / "1" / "saved_model.pb").unlink()
    add(base, 3, "broken")
    store.poll()
    assert store.newest("m").version == 2
    assert store.find("m", version=2) is store.newest("m")


def test_what_is_gone_is_forgotten(base):
    store = open_store({"m": base})
    for number in range(2, 102):
        folder = add(base, number, "broken" if number % 2 else "whole")
        store.poll()
        shutil.rmtree(folder)
    store.poll()
    assert store.newest("m").version == 1
    assert len(store.status("m")) < 20
    assert not store._broken["m"]


def test_names_of_one_number(base):
    for name in ("001", "0002", "02"):
        add(base, name)
    store = open_store({"m": base})
    assert store.newest("m").path == base / "02"
    shutil.rmtree(base / "1")
    store = open_store({"m": base}, {("m", "old"): 1})
    assert store.find("m", label="old").path == base / "001"


@pytest.mark.parametrize("name", [2**63, 10**22, "9" * 250, "0" * 250 + "x"])
def test_numbers_that_are_no_int64(base, name):
    add(base, name)
    assert states(open_store({"m": base})) == {1: AVAILABLE}


@pytest.mark.parametrize("exception", [OSError, ZeroDivisionError])
def test_the_thread_survives_what_a_poll_raises(
    base, monkeypatch, capsys, exception
):
    store, stopping = open_store({"m": base}), threading.Event()
    poll, calls = store.poll, []

    def fail_once():
        calls.append(1)
        if len(calls) == 1:
            raise exception("unexpected")
        return poll()

    monkeypatch.setattr(store, "poll", fail_once)
    monkeypatch.setattr(serve, "_POLL", 0.001)
    poll_models = functools.partial(serve._poll, store, None)
    thread = threading.Thread(
        target=serve._repeat, args=(poll_models, stopping)
    )
    thread.start()
    add(base, 2)
    end = time.monotonic() + 20
    while store.newest("m").version != 2 and time.monotonic() < end:
        time.sleep(0.01)
    stopping.set()
    thread.join()
    assert store.newest("m").version == 2
    error = capsys.readouterr().err
    assert f"cannot be polled: {exception.__name__}('unexpected')" in error


def test_readiness(base, disk, monkeypatch, tmp_path):
    now = [1000.0]
    monkeypatch.setattr(model_store.time, "monotonic", lambda: now[0])
    store = ModelStore({"m": base})
    assert store.readiness() == {"m": (None, None, "", False)}
    store.poll()
    assert store.readiness() == {"m": (1, 0.0, "", True)}
    disk.errors[base] = "ESTALE"
    now[0] += 50
    store.poll()
    version, seconds, problem, is_ready = store.readiness()["m"]
    assert (version, seconds, is_ready) == (1, 50.0, True)
    assert "Stale" in problem
    now[0] += 11
    store.poll()
    assert store.readiness()["m"].is_ready is False
    assert store.is_ready
    disk.errors.clear()
    store.poll()
    assert store.readiness() == {"m": (1, 0.0, "", True)}


@pytest.mark.parametrize("is_first", [True, False])
def test_models_that_wait_for_the_loading_of_another(
    base, monkeypatch, tmp_path, is_first
):
    now, found = [1000.0], []
    monkeypatch.setattr(model_store.time, "monotonic", lambda: now[0])
    add(tmp_path / "large", 1)
    models = {"large": tmp_path / "large", "m": base}
    names = sorted(models, reverse=not is_first)
    store = open_store({name: models[name] for name in names})

    class Slow(_Servable):
        def __init__(self, *args):
            now[0] += 100
            found.append(store.readiness())
            super().__init__(*args)

    monkeypatch.setattr(model_store, "Servable", Slow)
    add(tmp_path / "large", 2)
    store.poll()
    [ready] = found
    assert ready["m"] == (1, 100.0, "", True)
    assert ready["large"].is_ready
    for name, version in (("m", 1), ("large", 2)):
        assert store.readiness()[name] == (version, 0.0, "", True)
