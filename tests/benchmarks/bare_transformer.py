"""A Transformer step in bare TensorFlow, to measure kseq against.

Weights in a list, attention by hand with one product for query, key and
value, dropout, label smoothing, clipping and Adam: what any pre-norm
Transformer must compute, and nothing of Keras.
"""

import tensorflow as tf


class BareTransformer:
    def __init__(self, vocab_size, layers, dim, ffn_dim, heads, dropout, dtype):
        self.vocab_size = vocab_size
        self.dim = dim
        self.heads = heads
        self.dropout = dropout
        self.dtype = dtype
        self.weights = []
        self.embedding = self._weight(vocab_size, dim)
        self.encoder = [
            [self._attention(3), self._ffn(ffn_dim)] for _ in range(layers)
        ]
        self.decoder = [
            [self._attention(3), self._attention(1, 2), self._ffn(ffn_dim)]
            for _ in range(layers)
        ]
        self.norms = [self._norm(), self._norm()]
        self.moments = [
            (tf.Variable(tf.zeros_like(w)), tf.Variable(tf.zeros_like(w)))
            for w in self.weights
        ]
        self.step_count = tf.Variable(0.0)

    @tf.function
    def step(self, source, target, labels, weights):
        with tf.GradientTape() as tape:
            logits = self.logits(source, target)
            smooth = 0.1 / self.vocab_size
            targets = tf.one_hot(labels, self.vocab_size, 0.9 + smooth, smooth)
            losses = tf.nn.softmax_cross_entropy_with_logits(targets, logits)
            loss = tf.reduce_sum(losses * weights) / tf.reduce_sum(weights)
        gradients = [
            tf.convert_to_tensor(g) for g in tape.gradient(loss, self.weights)
        ]
        gradients, _ = tf.clip_by_global_norm(gradients, 1.0)
        count = self.step_count.assign_add(1.0)
        rate = 1e-3 * tf.sqrt(1 - 0.98**count) / (1 - 0.9**count)
        for w, g, (m, v) in zip(
            self.weights, gradients, self.moments, strict=True
        ):
            m.assign_add((g - m) * 0.1)
            v.assign_add((g * g - v) * 0.02)
            w.assign_sub(rate * m / (tf.sqrt(v) + 1e-9))
        return loss

    def logits(self, source, target):
        source_mask = tf.cast(source == 0, tf.float32)[:, None, None] * -1e30
        length = tf.shape(target)[1]
        past = tf.linalg.band_part(tf.ones((length, length)), -1, 0)
        causal = (1 - past) * -1e30
        x = self._embed(source)
        for attention, ffn in self.encoder:
            x += self._attend(attention, x, None, source_mask)
            x += self._feed(ffn, x)
        memory = self._normalize(self.norms[0], x)
        y = self._embed(target)
        for attention, cross, ffn in self.decoder:
            y += self._attend(attention, y, None, causal)
            y += self._attend(cross, y, memory, source_mask)
            y += self._feed(ffn, y)
        y = self._normalize(self.norms[1], y)
        embedding = tf.cast(self.embedding, self.dtype)
        rows = tf.reshape(y, (-1, self.dim))
        logits = tf.matmul(rows, embedding, transpose_b=True)
        shape = (*tf.unstack(tf.shape(target)), self.vocab_size)
        return tf.reshape(tf.cast(logits, tf.float32), shape)

    def _weight(self, *shape):
        scale = shape[-1] ** -0.5
        weight = tf.Variable(tf.random.normal(shape, stddev=scale))
        self.weights.append(weight)
        return weight

    def _bias(self, size):
        bias = tf.Variable(tf.zeros(size))
        self.weights.append(bias)
        return bias

    def _dense(self, inputs, outputs):
        return self._weight(inputs, outputs), self._bias(outputs)

    def _norm(self):
        scale = tf.Variable(tf.ones(self.dim))
        self.weights.append(scale)
        return scale, self._bias(self.dim)

    def _attention(self, *parts):
        projections = [self._dense(self.dim, n * self.dim) for n in parts]
        return self._norm(), projections, self._dense(self.dim, self.dim)

    def _ffn(self, ffn_dim):
        return (
            self._norm(),
            self._dense(self.dim, ffn_dim),
            self._dense(ffn_dim, self.dim),
        )

    def _embed(self, ids):
        x = tf.gather(self.embedding, ids) * self.dim**0.5
        positions = tf.range(tf.shape(ids)[1], dtype=tf.float32)
        rates = 1e4 ** (-tf.range(0.0, 1.0, 2.0 / self.dim))
        angles = positions[:, None] * rates
        x += tf.concat([tf.sin(angles), tf.cos(angles)], axis=-1)
        return self._drop(tf.cast(x, self.dtype))

    def _drop(self, x):
        return tf.nn.dropout(x, self.dropout)

    def _apply(self, dense, x, activation=tf.identity):
        """On rows: so TensorFlow fuses product, bias and activation."""
        kernel, bias = (tf.cast(part, self.dtype) for part in dense)
        rows = tf.reshape(x, (-1, kernel.shape[0]))
        rows = activation(tf.nn.bias_add(tf.matmul(rows, kernel), bias))
        return tf.reshape(
            rows, (*tf.unstack(tf.shape(x))[:-1], kernel.shape[1])
        )

    def _normalize(self, norm, x):
        scale, bias = norm
        x = tf.cast(x, tf.float32)
        mean, variance = tf.nn.moments(x, axes=-1, keepdims=True)
        x = (x - mean) * tf.math.rsqrt(variance + 1e-5) * scale + bias
        return tf.cast(x, self.dtype)

    def _feed(self, ffn, x):
        norm, first, second = ffn
        hidden = self._apply(first, self._normalize(norm, x), tf.nn.relu)
        return self._drop(self._apply(second, hidden))

    def _attend(self, attention, x, memory, mask):
        norm, projections, output = attention
        x = self._normalize(norm, x)
        if memory is None:
            q, k, v = self._heads(self._apply(projections[0], x), 3)
        else:
            (q,) = self._heads(self._apply(projections[0], x), 1)
            k, v = self._heads(self._apply(projections[1], memory), 2)
        q *= tf.cast(q.shape[-1] ** -0.5, self.dtype)
        energies = tf.matmul(q, k, transpose_b=True)
        weights = tf.nn.softmax(tf.cast(energies, tf.float32) + mask)
        context = tf.matmul(tf.cast(weights, self.dtype), v)
        context = tf.reshape(tf.transpose(context, (0, 2, 1, 3)), tf.shape(x))
        return self._drop(self._apply(output, context))

    def _heads(self, x, parts):
        shape = tf.shape(x)
        size = self.dim // self.heads
        x = tf.reshape(x, (shape[0], shape[1], parts, self.heads, size))
        return tf.unstack(tf.transpose(x, (2, 0, 3, 1, 4)))
