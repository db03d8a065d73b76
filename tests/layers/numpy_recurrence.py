"""Recurrent layers and attention pooling, written from their papers."""

import numpy as np


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gru(inputs, kernel, recurrent, bias):
    """States (T, U) of a GRU whose reset gate comes after the product."""
    hidden, states = np.zeros(len(recurrent)), []
    for x in inputs:
        read, kept = x @ kernel + bias[0], hidden @ recurrent + bias[1]
        (xz, xr, xh), (hz, hr, hh) = np.split(read, 3), np.split(kept, 3)
        z, r = sigmoid(xz + hz), sigmoid(xr + hr)
        hidden = z * hidden + (1 - z) * np.tanh(xh + r * hh)
        states.append(hidden)
    return np.array(states)


def recurrent_pooling(inputs, weights):
    """Output and weights of `RecurrentPooling`, (T, D) -> (2 U,), (T,)."""
    forward, backward, (kernel, bias, query) = (
        weights[:3],
        weights[3:6],
        weights[6:],
    )
    hidden = np.concatenate(
        [gru(inputs, *forward), gru(inputs[::-1], *backward)[::-1]], axis=-1
    )
    powers = np.exp(np.tanh(hidden @ kernel + bias) @ query[:, 0])
    shares = powers / powers.sum()
    return shares @ hidden, shares
