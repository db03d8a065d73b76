// One model's answers, beside those of another.

import { predict } from "./client.js";
import { element, fromTemplate, part } from "./elements.js";

const CUT =
  "The end of the text was not read: it is longer than the model's limit.";
const SLOW = 1000; // milliseconds until the page says that it waits

/**
 * Shows what a model answers to the newest input, and drops older answers.
 *
 * kind: an object with
 *   template: id of the content,
 *   shows: what an input is needed to see, in words,
 *   input: see columns.js,
 *   start(column): called once,
 *   answer(column, input, signal): shows the answer.
 */
export class Column {
  constructor(target, kind) {
    this.target = target;
    this.kind = kind;
    this.root = fromTemplate("column");
    this.content = part(this.root, "content");
    this.content.append(fromTemplate(kind.template));
    this.abort = new AbortController();
    this.input = null;
    part(this.root, "title").textContent = title(target);
    kind.start(this);
    this.clear();
  }

  part(name) {
    return part(this.root, name);
  }

  has(signature) {
    return this.target.model.signatures.includes(signature);
  }

  /** The prediction of a signature for one input. */
  predict(signature, input, signal) {
    return predict(this.target, signature, input, signal);
  }

  say(message, state) {
    this.root.dataset.state = state;
    const shown = this.part("message");
    if (shown.textContent !== message) shown.textContent = message;
  }

  clear() {
    this.abort.abort();
    this.root.removeAttribute("aria-busy");
    this.input = null;
    this.content.hidden = true;
    const { input, shows } = this.kind;
    this.say(`${input.ask} to see ${shows}.`, "empty");
  }

  /** Asks for the answer to an input; null is none. */
  async ask(input) {
    if (input === null) {
      this.clear();
      return;
    }
    this.input = input;
    this.abort.abort();
    this.abort = new AbortController();
    const { signal } = this.abort;
    const slow = setTimeout(() => {
      if (!signal.aborted) this.say("Waiting for the answer…", "waiting");
    }, SLOW);
    this.root.setAttribute("aria-busy", "true");
    try {
      await this.kind.answer(this, input, signal);
    } catch (error) {
      if (!signal.aborted) this.fail(error);
    } finally {
      clearTimeout(slow);
      if (!signal.aborted) this.root.removeAttribute("aria-busy");
    }
  }

  /** Ends what is asked for, and frees the files that are shown. */
  close() {
    this.abort.abort();
    for (const { src } of this.root.querySelectorAll("img, audio")) {
      URL.revokeObjectURL(src);
    }
  }

  fail(error) {
    this.content.hidden = true;
    this.say(error.message, "failed");
  }

  /** Shows the content, and whether the input was cut. */
  show(truncated) {
    this.content.hidden = false;
    this.say(truncated ? CUT : "", truncated ? "truncated" : "answered");
  }
}

/** Runs what adds to an answer: its error is a note, and hides no answer. */
export async function add(host, signal, action) {
  try {
    await action();
  } catch (error) {
    if (signal.aborted) return;
    const note = `This cannot be shown. ${error.message}`;
    host.replaceChildren(element("p", { className: "message" }, note));
  }
}

function title({ name, version, model }) {
  return `${name}, version ${version ?? model.versions[0]}`;
}
