"""Versions that come, go and are broken, while clients send requests."""

import os
import shutil
import sys
import threading
import time

import pytest

PREDICT = "/v1/models/m:predict"
HELLO = {"instances": ["hello"]}


@pytest.fixture
def base(tmp_path):
    return tmp_path / "served" / "m"


def served(client, path=PREDICT):
    """The version that answers."""
    answer = client.post(path, json=HELLO)
    assert answer.status_code == 200, answer.text
    (prediction,) = answer.json()["predictions"]
    assert prediction["version"] == prediction["again"]
    return prediction["version"]


def states(client):
    """State and error code of each version."""
    answer = client.get("/v1/models/m")
    assert answer.status_code == 200, answer.text
    return {
        int(row["version"]): (row["state"], row["status"]["error_code"])
        for row in answer.json()["model_version_status"]
    }


AVAILABLE = ("AVAILABLE", "OK")
END = ("END", "OK")


def is_broken(state):
    name, error_code = state
    return name != "AVAILABLE" and error_code != "OK"


def poll_until(store, condition):
    """For what a store may wait some polls with."""
    for _ in range(30):
        store.poll()
        if condition():
            return True
        time.sleep(0.1)
    return False


@pytest.fixture
def store(base, numbered, install, open_store):
    """Serves version 1."""
    install(numbered(1), base / "1")
    return open_store({"m": base})


def test_new_version(store, client, base, numbered, install):
    assert served(client) == 1
    assert states(client) == {1: AVAILABLE}
    install(numbered(2), base / "2")
    store.poll()
    assert served(client) == 2
    assert served(client, "/v1/models/m/versions/2:predict") == 2
    assert states(client) == {1: END, 2: AVAILABLE}
    old = client.post("/v1/models/m/versions/1:predict", json=HELLO)
    assert old.status_code == 404
    assert "Specific(m, 1)" in old.json()["error"]
    store.poll()  # nothing is new
    assert states(client) == {1: END, 2: AVAILABLE}


def test_the_newest_is_the_largest_number(
    base, numbered, install, open_store, open_client
):
    for number in (9, 10, 2):
        install(numbered(number), base / str(number))
    store = open_store({"m": base})
    assert served(open_client(store)) == 10


def test_older_version_that_comes_later(
    base, numbered, install, open_store, open_client
):
    install(numbered(2), base / "2")
    store = open_store({"m": base})
    client = open_client(store)
    install(numbered(1), base / "1")
    store.poll()
    assert served(client) == 2
    assert states(client)[2] == AVAILABLE


def test_deleted_version_gives_way_to_the_one_before(
    store, client, base, numbered, install
):
    install(numbered(2), base / "2")
    store.poll()
    assert served(client) == 2
    shutil.rmtree(base / "2")
    store.poll()
    assert served(client) == 1
    assert states(client) == {1: AVAILABLE, 2: END}


def test_deleted_old_version(store, client, base, numbered, install):
    install(numbered(2), base / "2")
    store.poll()
    shutil.rmtree(base / "1")
    store.poll()
    assert served(client) == 2
    assert states(client) == {1: END, 2: AVAILABLE}


def _garbage(path):
    (path / "saved_model.pb").write_bytes(b"garbage" * 100)
    (path / "fingerprint.pb").unlink(missing_ok=True)


def _truncated(path):
    file = path / "saved_model.pb"
    file.write_bytes(file.read_bytes()[:-200])


def _empty_file(path):
    (path / "saved_model.pb").write_bytes(b"")


def _no_variables(path):
    shutil.rmtree(path / "variables")


def _truncated_variables(path):
    for file in (path / "variables").iterdir():
        file.write_bytes(file.read_bytes()[:3])


BREAKS = [
    _garbage,
    _truncated,
    _empty_file,
    _no_variables,
    _truncated_variables,
]


@pytest.mark.parametrize("damage", BREAKS)
def test_broken_version(store, client, base, numbered, install, damage):
    broken = base.parent.parent / "broken"
    shutil.copytree(numbered(2), broken)
    damage(broken)
    install(broken, base / "2")
    for _ in range(3):
        store.poll()
        assert served(client) == 1
        assert states(client)[1] == AVAILABLE
        assert is_broken(states(client)[2])
    answer = client.get("/v1/models/m/versions/2").json()
    (row,) = answer["model_version_status"]
    assert row["status"]["error_message"]
    answer = client.post("/v1/models/m/versions/2:predict", json=HELLO)
    assert answer.status_code == 404

    # Whole again, in the same place.
    shutil.rmtree(base / "2")
    install(numbered(2), base / "2")
    assert poll_until(store, lambda: served(client) == 2)
    assert states(client) == {1: END, 2: AVAILABLE}


def test_broken_version_is_followed_by_a_whole_one(
    store, client, base, numbered, install
):
    install(numbered(2), base / "2")
    _garbage(base / "2")
    store.poll()
    install(numbered(3), base / "3")
    store.poll()
    assert served(client) == 3
    assert states(client)[1] == END
    assert states(client)[3] == AVAILABLE


def test_files_of_a_broken_version_are_repaired(
    store, client, base, numbered, install
):
    """As by a copy that takes a while."""
    install(numbered(2), base / "2")
    _garbage(base / "2")
    store.poll()
    assert served(client) == 1
    whole = (numbered(2) / "saved_model.pb").read_bytes()
    (base / "2" / "saved_model.pb").write_bytes(whole)
    assert poll_until(store, lambda: served(client) == 2)


def test_first_version_is_broken(
    base, numbered, install, open_store, open_client
):
    install(numbered(1), base / "1")
    _garbage(base / "1")
    store = open_store({"m": base})
    client = open_client(store)
    answer = client.post(PREDICT, json=HELLO)
    assert answer.status_code == 404
    assert "Latest(m)" in answer.json()["error"]
    assert is_broken(states(client)[1])
    install(numbered(2), base / "2")
    store.poll()
    assert served(client) == 2


def test_folder_that_is_not_a_model(store, client, base):
    (base / "2").mkdir()
    store.poll()
    assert served(client) == 1
    assert states(client)[1] == AVAILABLE
    assert states(client).get(2) != AVAILABLE


@pytest.mark.parametrize(
    "name",
    ["abc", "1.5", "-2", "2a", ".3.partial", ".3", "1_0", "0x9", "٣", "²"],
)
def test_names_that_are_no_version(
    store, client, base, numbered, install, name
):
    install(numbered(9), base / name)
    store.poll()
    assert served(client) == 1
    assert states(client) == {1: AVAILABLE}


def test_files_are_no_version(store, client, base):
    (base / "7").write_text("a file")
    (base / ".versions").write_text("1\n8\n")
    store.poll()
    assert served(client) == 1
    assert states(client) == {1: AVAILABLE}


def test_leading_zeros(store, client, base, numbered, install):
    install(numbered(12), base / "0012")
    store.poll()
    assert served(client, "/v1/models/m/versions/12:predict") == 12
    assert served(client) == 12


def test_base_path_is_gone_for_a_moment(store, client, base, numbered, install):
    away = base.with_name("away")
    os.rename(base, away)
    for _ in range(3):
        store.poll()
        assert served(client) == 1
        assert states(client) == {1: AVAILABLE}
    install(numbered(2), away / "2")
    os.rename(away, base)
    store.poll()
    assert served(client) == 2
    assert states(client) == {1: END, 2: AVAILABLE}


def test_base_path_appears_later(
    base, numbered, install, open_store, open_client
):
    store = open_store({"m": base})
    client = open_client(store)
    assert client.post(PREDICT, json=HELLO).status_code == 404
    assert client.get("/v1/models/m").status_code == 404
    install(numbered(1), base / "1")
    store.poll()
    assert served(client) == 1


def test_models_are_independent(
    tmp_path, numbered, install, open_store, open_client
):
    models = {name: tmp_path / name for name in ("m", "n")}
    install(numbered(1), models["m"] / "1")
    install(numbered(2), models["n"] / "2")
    _garbage(models["n"] / "2")
    store = open_store(models)
    client = open_client(store)
    assert served(client) == 1
    assert client.post("/v1/models/n:predict", json=HELLO).status_code == 404
    install(numbered(3), models["n"] / "3")
    store.poll()
    assert served(client, "/v1/models/n:predict") == 3
    assert states(client) == {1: AVAILABLE}


def test_label_keeps_a_version(
    base, numbered, install, open_store, open_client
):
    install(numbered(1), base / "1")
    store = open_store({"m": base}, labels={("m", "stable"): 1})
    client = open_client(store)
    for number in (2, 3):
        install(numbered(number), base / str(number))
        store.poll()
        assert served(client) == number
        assert served(client, "/v1/models/m/labels/stable:predict") == 1
        assert served(client, "/v1/models/m/versions/1:predict") == 1
    assert states(client) == {1: AVAILABLE, 2: END, 3: AVAILABLE}


@pytest.mark.parametrize("name", ["2", "2/variables", "2/saved_model.pb"])
def test_a_link_out_of_the_folder(store, client, base, numbered, install, name):
    outside = base.parent / "outside"
    install(numbered(2), base / "2")
    os.rename(base / name, outside)
    (base / name).symlink_to(outside)
    for _ in range(2):
        store.poll()
        assert served(client) == 1
        assert is_broken(states(client)[2])
    (row,) = client.get("/v1/models/m/versions/2").json()[
        "model_version_status"
    ]
    message = row["status"]["error_message"]
    assert f"{base / name} is a link to a file outside {base}" in message


def test_links_within_the_folder_and_to_it(
    base, numbered, install, open_store, open_client
):
    install(numbered(2), base / "first")
    (base / "2").symlink_to("first")
    link = base.parent / "link"
    link.symlink_to(base)
    assert served(open_client(open_store({"m": link}))) == 2


def test_unsafe_graph(store, client, base, install, unsafe):
    install(unsafe, base / "2")
    for _ in range(2):
        store.poll()
        assert served(client) == 1
        assert states(client)[1] == AVAILABLE
        assert is_broken(states(client)[2])


def test_uncallable_signature(
    store, client, base, numbered, install, uncallable
):
    """Served or broken, but polls go on."""
    install(uncallable, base / "2")
    store.poll()
    assert states(client)[2] == AVAILABLE or is_broken(states(client)[2])
    answer = client.post(PREDICT, json=HELLO)
    assert answer.status_code in {200, 400, 501}
    install(numbered(3), base / "3")
    store.poll()
    assert served(client) == 3


@pytest.mark.parametrize("delete", [False, True], ids=["kept", "deleted"])
def test_requests_while_versions_come_and_go(
    store, client, base, numbered, install, delete
):
    last = 6
    for number in range(1, last + 1):
        numbered(number)  # made before, so that the swaps follow quickly
    answers, errors = [], []
    stop = threading.Event()

    def send(size):
        body = {"instances": ["a" * n for n in range(size)]}
        while not stop.is_set():
            try:
                answer = client.post(PREDICT, json=body)
                assert answer.status_code == 200, answer.text
                rows = answer.json()["predictions"]
                assert len(rows) == size
                (version,) = {n for row in rows for n in row.values()}
                answers.append(version)
            except Exception as error:
                errors.append(error)
                return

    threads = [threading.Thread(target=send, args=(n,)) for n in range(1, 7)]
    for thread in threads:
        thread.start()
    try:
        for number in range(2, last + 1):
            install(numbered(number), base / str(number))
            store.poll()
            assert served(client) == number
            if delete:
                shutil.rmtree(base / str(number - 1))
            time.sleep(0.1)
    finally:
        stop.set()
        for thread in threads:
            thread.join(10)
    assert not errors
    assert {1, last} <= set(answers) <= set(range(1, last + 1))
    assert states(client)[last] == AVAILABLE


def test_a_version_is_found_at_any_moment_of_a_swap(
    store, base, numbered, install
):
    install(numbered(2), base / "2")
    store.poll()
    errors = []
    stop = threading.Event()

    def look():
        while not stop.is_set():
            try:
                store.find("m")
            except Exception as error:
                errors.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # seconds; threads interrupt each other often
    threads = [threading.Thread(target=look) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(5):
            os.rename(base / "2", base / ".2")
            store.poll()
            os.rename(base / ".2", base / "2")
            store.poll()
    finally:
        stop.set()
        for thread in threads:
            thread.join(10)
        sys.setswitchinterval(interval)
    assert not errors
