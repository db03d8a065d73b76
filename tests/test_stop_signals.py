import os
import signal

import pytest

from kseq import process
from kseq.process import discard_lost_output, stop_in_order, take_over

SIGNALS = [
    pytest.param(signal.SIGTERM, SystemExit, id="SIGTERM"),
    pytest.param(signal.SIGINT, KeyboardInterrupt, id="Ctrl-C"),
    pytest.param(signal.SIGHUP, SystemExit, id="SIGHUP"),
]


def of_library(text):
    """The function `call` of a module of Keras, defined by text."""
    names = {"__name__": "keras.src.module"}
    exec(text, names)
    return names["call"]


def send(*numbers):
    for number in numbers:
        os.kill(os.getpid(), number)


@pytest.fixture(autouse=True)
def handlers():
    before = {
        number: signal.signal(number, default)
        for number, default in (
            (signal.SIGTERM, signal.SIG_DFL),
            (signal.SIGINT, signal.default_int_handler),
            (signal.SIGHUP, signal.SIG_DFL),
        )
    }
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def opened():
    """A context; the list of what happened to it."""
    events = []

    class Context:
        def __enter__(self):
            events.append("opened")

        def __exit__(self, *_):
            events.append("closed")

    return Context(), events


@pytest.mark.parametrize("number, error", SIGNALS)
def test_outside_libraries_it_is_raised_where_it_comes(number, error):
    reached = False
    with pytest.raises(error) as stopped, stop_in_order():
        send(number)
        reached = True
    assert not reached
    assert number == signal.SIGINT or stopped.value.code == 128 + number


@pytest.mark.parametrize("number, error", SIGNALS)
@pytest.mark.parametrize(
    "library",
    [
        # What TensorFlow's C code does with an exception of a callback.
        "def call(f):\n  try: f(); done()\n  except BaseException: pass",
        "def call(f):\n  f(); done(); raise TypeError('got None')",
        "def call(f):\n  class A:\n    def __del__(self): f()\n  A(); done()",
    ],
    ids=["swallows", "another error", "__del__"],
)
def test_in_a_library_it_is_raised_when_that_returns(
    number, error, library, opened
):
    call = of_library(library)
    context, events = opened
    call.__globals__["done"] = lambda: events.append("done")

    def work():
        with context:
            call(lambda: send(number))
        events.append("more work")

    with pytest.raises(error) as stopped, stop_in_order():
        work()
    assert events == ["opened", "done", "closed"]
    assert number == signal.SIGINT or stopped.value.code == 128 + number


def test_the_code_that_called_the_outermost_library_is_left(opened):
    """Code of ours that a library calls is not."""
    context, events = opened
    call = of_library("def call(f): f()")

    def ours():
        call(lambda: send(signal.SIGTERM))
        events.append("the library goes on")

    with pytest.raises(SystemExit), stop_in_order(), context:
        call(ours)
    assert events == ["opened", "the library goes on", "closed"]


def test_a_callback_takes_it_over():
    taken = []
    call = of_library("def call(f, g): f(); g()")
    with stop_in_order():
        call(
            lambda: send(signal.SIGTERM),
            lambda: taken.extend([take_over(), take_over()]),
        )
        taken.append("more work")
    assert taken == [signal.SIGTERM, None, "more work"]


@pytest.mark.parametrize("number, error", SIGNALS)
def test_a_call_that_does_not_return_is_left(
    number, error, opened, monkeypatch
):
    """As `fit` without a callback that takes over."""
    monkeypatch.setattr(process, "_PATIENCE", 0.1)
    context, events = opened
    call = of_library("def call(f, g):\n  f()\n  while True: g()")
    with pytest.raises(error), stop_in_order(), context:
        call(lambda: send(number), lambda: None)
    assert events == ["opened", "closed"]


def test_a_second_signal_is_answered_at_once():
    reached = []
    call = of_library("def call(f, g): f(); g()")
    with pytest.raises(KeyboardInterrupt), stop_in_order():
        call(
            lambda: send(signal.SIGINT, signal.SIGINT),
            lambda: reached.append(1),
        )
    assert not reached


def test_after_the_first_sigterm_a_second_one_ends_the_process():
    found = []
    call = of_library("def call(f, g): f(); g()")
    with pytest.raises(SystemExit), stop_in_order():
        call(
            lambda: send(signal.SIGTERM),
            lambda: found.append(signal.getsignal(signal.SIGTERM)),
        )
    assert found == [signal.SIG_DFL]


@pytest.mark.parametrize("first", [signal.SIGHUP, signal.SIGTERM])
def test_sighup_is_never_the_second_one(first):
    """A terminal that is closed may send it twice."""
    reached = []
    call = of_library("def call(f, g): f(); g()")
    with pytest.raises(SystemExit) as stopped, stop_in_order():
        call(
            lambda: send(first, signal.SIGHUP),
            lambda: reached.append(1),
        )
    assert reached
    assert stopped.value.code == 128 + first
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_DFL


@pytest.fixture
def output():
    """Puts standard output and standard error back."""
    kept = [os.dup(number) for number in (1, 2)]
    yield
    for number, copy in zip((1, 2), kept, strict=True):
        os.dup2(copy, number)
        os.close(copy)


@pytest.mark.parametrize("open_pair", [os.pipe, os.openpty])
def test_output_that_nobody_reads_is_discarded(open_pair, output):
    """Of a pipe whose reader has ended, or of a terminal that is closed."""
    ours, theirs = open_pair()
    os.dup2(theirs, 2)
    os.close(theirs)
    discard_lost_output()
    assert os.fstat(2).st_rdev != os.stat(os.devnull).st_rdev
    os.write(2, b"read")
    assert os.read(ours, 10) == b"read"
    os.close(ours)
    with pytest.raises(OSError):
        os.write(2, b"lost")
    discard_lost_output()
    os.write(2, b"discarded")


def test_handlers_are_put_back():
    with stop_in_order():
        assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_DFL
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]
)
def test_a_signal_that_is_ignored_stays_ignored(number):
    signal.signal(number, signal.SIG_IGN)
    with stop_in_order():
        send(number)
