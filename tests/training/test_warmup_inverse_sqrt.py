import keras
import numpy as np
import pytest

from kseq.training import WarmupInverseSqrt


def test_the_paper_has_the_peak_that_follows_from_its_size():
    """The optimizer's first step is 0, that of equation 3 is 1."""
    schedule = WarmupInverseSqrt(peak=(512 * 4000) ** -0.5, warmup_steps=4000)
    for step in (1, 10, 3999, 4000, 4001, 100_000):
        expected = 512**-0.5 * min(step**-0.5, step * 4000**-1.5)
        assert float(schedule(step - 1)) == pytest.approx(expected, rel=1e-5)


def test_the_peak_is_at_the_end_of_the_warm_up():
    schedule = WarmupInverseSqrt(peak=0.3, warmup_steps=7)
    rates = [float(schedule(step)) for step in range(100)]
    assert np.argmax(rates) == 6
    assert rates[6] == pytest.approx(0.3)


def test_round_trip():
    schedule = WarmupInverseSqrt(peak=0.3, warmup_steps=7)
    optimizer = keras.optimizers.Adam(schedule)
    again = keras.optimizers.Adam.from_config(optimizer.get_config())
    config = again.get_config()["learning_rate"]["config"]
    assert config == {"peak": 0.3, "warmup_steps": 7}


@pytest.mark.parametrize(
    ("arguments", "received"),
    [
        ((0.0, 5), "peak=0.0"),
        ((0.1, 0), "warmup_steps=0"),
        ((-1.0, 5), "peak=-1.0"),
        ((float("nan"), 5), "peak=nan"),
        ((0.1, float("inf")), "warmup_steps=inf"),
    ],
)
def test_arguments_must_be_positive(arguments, received):
    with pytest.raises(ValueError, match=f"Received: {received}"):
        WarmupInverseSqrt(*arguments)
