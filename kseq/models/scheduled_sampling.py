"""Scheduled sampling: training on the model's own predictions."""

import math
import operator

from keras import ops

from kseq.models.arguments import set_rates, set_sizes
from kseq.models.row_hashes import random_of_rows
from kseq.ops import padding_mask, scan_time
from kseq.ops.masks import start_mask
from kseq.user_error import check_choice, check_integers

SCHEDULES = ("linear", "exponential", "inverse_sigmoid")


def set_sampling(model, schedule, rate, steps, seed):
    """Sets the arguments of scheduled sampling, attributes `sampling_...`.

    Raises:
        ArgumentError: if one is wrong.
    """
    check_choice("sampling_schedule", schedule, (None, *SCHEDULES))
    set_rates(model, sampling_rate=rate)
    set_sizes(model, sampling_steps=steps)
    check_integers(sampling_seed=seed, minimum=0)
    model.sampling_schedule = schedule
    model.sampling_seed = int(seed)


def feed_predictions(model, inputs):
    """Inputs with some target tokens replaced by predictions of the model.

    Each token after START is replaced at the rate of this update by the most
    likely one, given the source and the tokens that are fed before it. The
    model predicts as it does in a search, without dropout. A call of the model
    with these inputs is a step of scheduled sampling, and the gradient does
    not pass through the predictions.

    Args:
        model: `LSTMSeq2Seq`, compiled.
        inputs: dict of its inputs.

    Returns:
        The same, with other `target_ids`.

    Reference:
        Bengio et al. 2015, arXiv:1506.03099, section 2.3.
    """
    import tensorflow as tf  # which alone trains; on a GPU it has no int32

    target = ops.cast(inputs["target_ids"], "int64")
    step = model.optimizer.iterations
    rate = sampling_rate(
        model.sampling_schedule, model.sampling_rate, model.sampling_steps, step
    )
    draws = random_of_rows(target, model.sampling_seed, step)
    is_token = padding_mask(target) & ~start_mask(target)
    is_replaced = (draws < rate) & is_token
    state = {**model.encode(inputs), "constants": model.decoding_constants()}

    def advance(before, at_step):
        fed = ops.where(
            at_step["is_replaced"], before["predicted"], at_step["target"]
        )
        logits, after = model.decode_step(
            fed, {**state, "decoder": before["decoder"]}
        )
        return {
            "decoder": after["decoder"],
            "predicted": tf.argmax(logits, axis=-1),
            "fed": fed,
        }

    first = target[:, 0]
    fed = scan_time(
        advance,
        {"decoder": state["decoder"], "predicted": first, "fed": first},
        {"target": target, "is_replaced": is_replaced},
        read=operator.itemgetter("fed"),
    )
    return {**inputs, "target_ids": fed}


def sampling_rate(schedule, rate, steps, step):
    """The rate at which predictions are fed, after `step` updates.

    With i the number of updates and N `steps`, it is `rate` times

        linear            min(i / 2 N, 1)
        exponential       1 - 2 ** (-i / N)
        inverse_sigmoid   1 - k / (k + exp(i / k)), where k log(k) = N

    which are all 1/2 after N updates. The paper has the rate at which the
    tokens of the target are fed, without a limit.

    Args:
        schedule: one of `SCHEDULES`.
        rate: float, the limit.
        steps: int, updates until half of it.
        step: () int, updates.

    Returns:
        () float32.

    Reference:
        Bengio et al. 2015, arXiv:1506.03099, section 2.4.
    """
    step = ops.cast(step, "float32")
    if schedule == "linear":
        share = ops.minimum(step / (2 * steps), 1.0)
    elif schedule == "exponential":
        share = 1 - ops.exp(-math.log(2) / steps * step)
    else:
        share = ops.sigmoid((step - steps) / _inverse_sigmoid_k(steps))
    return rate * share


def _inverse_sigmoid_k(steps):
    """The k of k log(k) = steps, by Newton's method from above."""
    k = steps + 1.0
    for _ in range(20):
        k -= (k * math.log(k) - steps) / (math.log(k) + 1)
    return k
