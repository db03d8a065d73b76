"""A neural Turing machine in float64 and loops, as the paper has it."""

import numpy as np

from tests.layers.numpy_recurrence import sigmoid


def softplus(x):
    return np.log1p(np.exp(x))


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def cosine(u, v):
    norm = np.sqrt(u @ u) * np.sqrt(v @ v)
    return u @ v / norm if norm > 1e-5 else 0.0


def address(memory, key, strength, gate, shifts, power, last):
    """Equations 5 to 9, for one head of one sequence."""
    content = softmax(np.array([strength * cosine(key, m) for m in memory]))
    gated = gate * content + (1 - gate) * last
    slots, furthest = len(memory), len(shifts) // 2
    shifted = np.zeros(slots)
    for i in range(slots):
        for j in range(slots):
            for place, share in enumerate(shifts):
                if (j + place - furthest) % slots == i:
                    shifted[i] += gated[j] * share
    sharp = shifted**power
    return sharp / sharp.sum()


def write(memory, weights, erase, add):
    """Equations 3 and 4: every head erases, then every head adds."""
    memory = memory.copy()
    for w, e in zip(weights, erase, strict=True):
        for i in range(len(memory)):
            memory[i] = memory[i] * (1 - w[i] * e)
    for w, a in zip(weights, add, strict=True):
        for i in range(len(memory)):
            memory[i] = memory[i] + w[i] * a
    return memory


def turing_machine(cell, sequence):
    """Outputs, weightings and memories of one sequence, (T, F) float."""
    names = {w.path.split("/", 1)[-1]: np.array(w, float) for w in cell.weights}

    def weight(name):
        [value] = [v for k, v in names.items() if k.endswith(name)]
        return value

    def dense(name, x):
        return x @ weight(f"{name}/kernel") + weight(f"{name}/bias")

    heads, size = cell.heads, cell.slot_dim
    memory = np.full((cell.slots, size), 1e-6)
    if cell.initial_memory == "random":
        memory = weight("first_memory").reshape(memory.shape)
    reads = np.tanh(weight("first_reads"))
    weights = np.array([softmax(row) for row in weight("first_weights")])
    hidden = state = np.zeros(cell.controller_units)
    outputs, weightings, memories = [], [], []
    for x in sequence:
        projected = dense("projection", np.concatenate([x, reads]))
        if cell.controller == "lstm":
            gates = projected + dense("recurrence_0", hidden)
            admit, keep, candidate, emit = np.split(gates, 4)
            state = sigmoid(keep + 1) * state
            state = state + sigmoid(admit) * np.tanh(candidate)
            hidden = sigmoid(emit) * np.tanh(state)
        else:
            hidden = np.tanh(projected)
        of_heads = dense("addressing", hidden).reshape(heads, -1)
        new = []
        for values, last in zip(of_heads, weights, strict=True):
            key, (strength, gate, power) = values[:size], values[size:][:3]
            new.append(
                address(
                    memory,
                    np.tanh(key),
                    softplus(strength),
                    sigmoid(gate),
                    softmax(values[size + 3 :]),
                    1 + softplus(power),
                    last,
                )
            )
        weights = np.array(new)
        erase, add = np.split(dense("writing", hidden), 2)
        memory = write(
            memory,
            weights[cell.read_heads :],
            sigmoid(erase).reshape(-1, size),
            np.tanh(add).reshape(-1, size),
        )
        reads = (weights[: cell.read_heads] @ memory).reshape(-1)
        outputs.append(dense("outputs", np.concatenate([hidden, reads])))
        weightings.append(weights)
        memories.append(memory)
    return np.array(outputs), np.array(weightings), np.array(memories)
