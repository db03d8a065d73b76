import contextlib

import pytest

from kseq.server.body_memory import BodyMemory, request_memory
from kseq.server.request_error import RequestError

MIB = 2**20


@pytest.fixture
def memory():
    return BodyMemory(64 * MIB)


@pytest.fixture
def hold(memory):
    """Function that holds bytes for a client until the end of the test."""
    with contextlib.ExitStack() as stack:

        def add(client, *sizes):
            function = stack.enter_context(memory.hold(client))
            for size in sizes:
                function(size)
            return function

        yield add


def test_bytes_are_held_until_the_end(memory):
    with memory.hold("a") as add:
        add(MIB)
        add(10)
        assert memory.held == MIB + 10
    assert memory.held == 0
    with pytest.raises(ZeroDivisionError), memory.hold() as add:
        add(5)
        raise ZeroDivisionError
    assert memory.held == 0


def test_a_quarter_is_kept_for_small_requests(memory, hold):
    for client in "abc":
        hold(client, 16 * MIB)
    with pytest.raises(RequestError, match="no room") as error:
        hold("d", MIB)
    assert error.value.status == 429
    for _ in range(100):
        hold("d", 60_000)
    assert memory.refused == MIB


def test_the_large_requests_of_one_client_have_a_quarter(hold):
    hold("a", 10 * MIB)
    hold("a", 60_000)
    with pytest.raises(RequestError, match="no room"):
        hold("a", 7 * MIB)
    hold("a", 6 * MIB)
    hold("b", 10 * MIB)


def test_one_request_alone_may_have_more(memory, hold):
    add = hold("a", 20 * MIB, 20 * MIB)
    with pytest.raises(RequestError):
        add(20 * MIB)
    assert memory.held == 40 * MIB


def test_a_client_has_its_share_again(memory):
    for _ in range(3):
        with memory.hold("a") as add, memory.hold("a") as other:
            add(10 * MIB)
            with pytest.raises(RequestError):
                other(10 * MIB)
    assert memory.held == 0
    assert not memory._of_clients


def test_the_largest_body_has_room():
    for limit in (MIB, 64 * MIB, 1000 * MIB):
        with BodyMemory(request_memory(limit)).hold("a") as add:
            add(4 * limit)
