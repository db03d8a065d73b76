// What the page asks the server: its models, and predictions.

/** An error with a message for the user. */
export class ServerError extends Error {
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

/** The answer to any body of `:predict`. */
export function post({ name, version }, body, signal) {
  const model = `v1/models/${encodeURIComponent(name)}`;
  const number = version === null ? "" : `/versions/${version}`;
  const options = { method: "POST", body, signal };
  return send(`${model}${number}:predict`, options);
}

async function send(path, options) {
  let response, text;
  try {
    response = await fetch(path, options);
    text = await response.text();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServerError("The server does not answer. Is it still running?");
  }
  options.signal?.throwIfAborted();
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
