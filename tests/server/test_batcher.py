import threading
import time

import numpy as np
import pytest

from kseq.server.batcher import Batcher
from kseq.server.request_error import RequestError


class Lengths:
    """Answers with the length of each text, as a `Servable` does.

    Args:
        held: texts whose calls wait until `release` is set.
        wrong: texts that are refused.
    """

    def __init__(self, held=(), wrong=(), adds_rows=True):
        self.held = held
        self.wrong = wrong
        self.are_added = adds_rows
        self.release = threading.Event()
        self.calls = []

    def adds_rows(self, signature):
        return self.are_added

    def run(self, signature, inputs):
        texts = inputs["text"].tolist()
        self.calls.append(texts)
        if set(texts) & set(self.held):
            assert self.release.wait(20)
        if set(texts) & set(self.wrong):
            raise RequestError("wrong")
        return {"length": np.array([len(text) for text in texts])}


@pytest.fixture
def make():
    made = []

    def make_batcher(queue_size=100, num_threads=2):
        made.append(Batcher(queue_size, num_threads))
        return made[-1]

    yield make_batcher
    for batcher in made:
        batcher.close()


def ask(batcher, servable, *texts, timeout=20.0):
    inputs = {"text": np.array(texts, object)}
    return batcher.submit(servable, "serving_default", inputs, timeout)


def wait_for(condition):
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def occupied(batcher, servable):
    """Both threads answer something that is held."""
    futures = [ask(batcher, servable, text) for text in servable.held]
    wait_for(lambda: len(servable.calls) == len(servable.held))
    return futures


def test_what_waits_is_answered_together(make):
    servable = Lengths(held=[b"one", b"a text of which the length is another"])
    batcher = make()
    first = occupied(batcher, servable)
    waiting = [
        ask(batcher, servable, *texts) for texts in ([b"a"], [b"bb", b"c"])
    ]
    longer = ask(batcher, servable, b"d" * 500)
    servable.release.set()
    assert [f.result(20)["length"].tolist() for f in waiting] == [[1], [2, 1]]
    assert longer.result(20)["length"].tolist() == [500]
    assert [f.result(20)["length"].tolist() for f in first] == [[3], [37]]
    assert [b"a", b"bb", b"c"] in servable.calls
    assert [b"d" * 500] in servable.calls


def test_what_a_batch_would_change_is_answered_alone(make):
    servable = Lengths(held=[b"one", b"two"], adds_rows=False)
    batcher = make()
    occupied(batcher, servable)
    waiting = [ask(batcher, servable, b"a") for _ in range(3)]
    servable.release.set()
    assert [f.result(20)["length"].tolist() for f in waiting] == [[1]] * 3
    assert servable.calls.count([b"a"]) == 3


def test_a_batch_is_bounded(make):
    servable = Lengths(held=[b"one", b"a text of which the length is another"])
    batcher = make()
    occupied(batcher, servable)
    waiting = [ask(batcher, servable, b"a") for _ in range(80)]
    large = ask(batcher, servable, *[b"b"] * 70)
    servable.release.set()
    assert all(f.result(20)["length"].tolist() == [1] for f in waiting)
    assert large.result(20)["length"].tolist() == [1] * 70
    assert sorted(len(call) for call in servable.calls if call[0] == b"a") in (
        [16, 32, 32],
        [8, 8, 32, 32],
    )


def test_one_that_is_wrong_fails_alone(make):
    servable = Lengths(
        held=[b"one", b"a text of which the length is another"], wrong=[b"bad"]
    )
    batcher = make()
    occupied(batcher, servable)
    good, bad = ask(batcher, servable, b"a"), ask(batcher, servable, b"bad")
    servable.release.set()
    assert good.result(20)["length"].tolist() == [1]
    with pytest.raises(RequestError, match="wrong"):
        bad.result(20)


def test_long_ones_leave_a_thread_to_short_ones(make):
    servable = Lengths(held=[b"l" * 10_000, b"m" * 100_000])
    batcher = make()
    long = [ask(batcher, servable, text) for text in servable.held]
    assert ask(batcher, servable, b"short").result(20)["length"] == [5]
    assert not any(future.done() for future in long)
    servable.release.set()
    assert [f.result(20)["length"].tolist() for f in long] == [[10**4], [10**5]]


def test_a_full_queue_refuses_at_once_until_someone_leaves(make):
    servable = Lengths(held=[b"one", b"a text of which the length is another"])
    batcher = make(queue_size=2)
    occupied(batcher, servable)
    waiting = [ask(batcher, servable, b"a") for _ in range(2)]
    with pytest.raises(RequestError, match="full") as error:
        ask(batcher, servable, b"a")
    assert error.value.status == 429
    assert waiting[0].cancel()
    last = ask(batcher, servable, b"bb")
    servable.release.set()
    assert waiting[1].result(20)["length"].tolist() == [1]
    assert last.result(20)["length"].tolist() == [2]


def test_what_has_waited_too_long_is_not_begun(make):
    servable = Lengths(held=[b"one", b"a text of which the length is another"])
    batcher = make()
    occupied(batcher, servable)
    late = ask(batcher, servable, b"a", timeout=0.01)
    time.sleep(0.05)
    servable.release.set()
    with pytest.raises(RequestError) as error:
        late.result(20)
    assert error.value.code == "DEADLINE_EXCEEDED"
    assert [b"a"] not in servable.calls


def test_what_waits_is_answered_before_the_end(make):
    servable = Lengths(held=[b"one", b"a text of which the length is another"])
    batcher = make()
    occupied(batcher, servable)
    waiting = ask(batcher, servable, b"a")
    servable.release.set()
    batcher.close()
    assert waiting.result(0)["length"].tolist() == [1]
    with pytest.raises(RequestError, match="stops"):
        ask(batcher, servable, b"a")
