// What the page asks the server: its models, and predictions.

/** An error with a message for the user. */
class ServerError extends Error {
  constructor(message, status = 0) {
    super(message);
    this.status = status;
  }
}

const REASONS = {
  404: "The model or its version is no longer served.",
  429: "The server is busy. Try again in a moment.",
  503: "The server is not ready. Try again in a moment.",
  504: "The model took too long.",
};

/** The models that are served, see kseq/server/page.py. */
export async function listModels() {
  const { models } = await send("page/models.json", { cache: "no-store" });
  return models;
}

/**
 * The prediction for one input.
 *
 * target: {name, version}, version null for the newest.
 * input: object of the signature's inputs.
 */
export async function predict(target, signature, input, signal) {
  const body = { signature_name: signature, instances: [input] };
  const { predictions } = await post(target, JSON.stringify(body), signal);
  return predictions[0];
}

/**
 * The same prediction, whose text is shown while it is being found.
 *
 * onText: function of the text so far; not called for a signature whose answers
 * come at once.
 */
export async function predictWords(target, signature, input, signal, onText) {
  if (target.model.streams !== signature) {
    return predict(target, signature, input, signal);
  }
  const body = { signature_name: signature, instances: [input], stream: true };
  const response = await reached(() =>
    fetch(pathOf(target), {
      method: "POST",
      body: JSON.stringify(body),
      signal,
    }),
  );
  if (!response.ok) return read(response, signal);
  let text = "";
  let last = null;
  for await (const content of events(response.body)) {
    signal?.throwIfAborted();
    if (content?.error) {
      const message = `The answer broke off. The server said: ${content.error}`;
      throw new ServerError(message);
    }
    if (content?.predictions) [last] = content.predictions;
    else onText((text += content?.text ?? ""));
  }
  signal?.throwIfAborted();
  if (last === null) throw new ServerError("The answer broke off.");
  return last;
}

/** The JSON of server-sent events, each of one line. */
async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reached(() => reader.read());
    if (done) return;
    const found = (rest + value).split("\n\n");
    rest = found.pop();
    for (const event of found) yield parse(event.replace(/^data: /, ""));
  }
}

/** The answer to any body of `:predict`. */
export function post(target, body, signal) {
  return send(pathOf(target), { method: "POST", body, signal });
}

function pathOf({ name, version }) {
  const model = `v1/models/${encodeURIComponent(name)}`;
  const number = version === null ? "" : `/versions/${version}`;
  return `${model}${number}:predict`;
}

async function send(path, options) {
  const response = await reached(() => fetch(path, options));
  return read(response, options.signal);
}

/** What an action gives that needs the server. */
async function reached(action) {
  try {
    return await action();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServerError("The server does not answer. Is it still running?");
  }
}

async function read(response, signal) {
  const text = await reached(() => response.text());
  signal?.throwIfAborted();
  const content = parse(text);
  if (response.ok && content) return content;
  const said = content?.error ? ` It said: ${content.error}` : "";
  const reason =
    REASONS[response.status] ?? "The server did not answer this request.";
  throw new ServerError(reason + said, response.status);
}

const STRINGS_AND_NUMBERS = /"(?:[^"\\]|\\.)*"|-?\bInfinity\b|\bNaN\b/g;

/** JSON, in which infinities and NaN may be bare: they become null. */
function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    const strict = text.replace(STRINGS_AND_NUMBERS, (found) =>
      found.startsWith('"') ? found : "null",
    );
    try {
      return JSON.parse(strict);
    } catch {
      return null;
    }
  }
}
