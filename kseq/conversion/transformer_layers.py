"""The layers of a Transformer, by the names of another toolkit."""

import operator

import numpy as np


def transformer_layers(model, prefix, names):
    """The names that layers of a model have in a file of weights.

    Args:
        model: `kseq.models.Transformer`.
        prefix: str, of the names of a block, formatted with "encoder" or
            "decoder" and its number.
        names: dict, the path of a layer in a decoder block -> list of its
            names: several for a projection that is several in the file.

    Yields:
        (layer, names), of a normalization or a projection.
    """
    for stack in ("encoder", "decoder"):
        for number, block in enumerate(getattr(model, f"{stack}_blocks")):
            start = prefix.format(stack, number)
            for path, parts in names.items():
                if stack == "encoder":
                    if path.startswith("cross_attention"):
                        continue
                    path = path.removeprefix("self_")
                layer = operator.attrgetter(path)(block)
                yield layer, [f"{start}{part}" for part in parts]


def assign_layers(layers, projection, normalization):
    """Gives layers their weights.

    Args:
        layers: see `transformer_layers`.
        projection: function of a name and the numbers of inputs and outputs;
            returns the kernel (inputs, outputs) and the bias (outputs,).
        normalization: function of a name and a size; returns gamma and beta,
            each (size,).
    """
    for layer, names in layers:
        if hasattr(layer, "gamma"):
            [name] = names
            gamma, beta = normalization(name, *layer.gamma.shape)
            layer.gamma.assign(gamma)
            layer.beta.assign(beta)
            continue
        inputs, outputs = layer.kernel.shape
        size = outputs // len(names)
        both = [projection(name, inputs, size) for name in names]
        kernels, biases = zip(*both, strict=True)
        layer.kernel.assign(np.concatenate(kernels, axis=1))
        layer.bias.assign(np.concatenate(biases))
