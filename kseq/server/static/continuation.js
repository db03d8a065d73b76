// The beginning of a text in, its continuation by a language model out.

import { predictWords } from "./client.js";
import { element, fromTemplate, part } from "./elements.js";
import { addSampling } from "./sampling.js";

export const view = {
  isText: true,

  open({ host, targets: [target], value, onValue }) {
    const root = fromTemplate("continuation");
    const area = root.querySelector("textarea");
    const button = part(root, "continue");
    const message = part(root, "message");
    const written = part(root, "written");
    const abort = new AbortController();
    const drawn = addSampling(part(root, "sampling"), target.model);
    area.value = value ?? "";
    area.addEventListener("input", () => onValue(area.value));
    button.addEventListener("click", async () => {
      if (button.getAttribute("aria-disabled") === "true") return;
      button.setAttribute("aria-disabled", "true");
      root.dataset.state = "waiting";
      message.textContent = "Waiting for the answer…";
      const prompt = area.value;
      const write = (words) => {
        written.replaceChildren(prompt, element("mark", {}, words));
      };
      written.setAttribute("aria-busy", "true");
      try {
        const [signature, draws] = drawn();
        const best = await predictWords(
          target,
          signature,
          { prompt, ...draws },
          abort.signal,
          write,
        );
        // What was typed meanwhile is kept.
        if (area.value === prompt) area.value += best.text;
        onValue(area.value);
        write(best.text);
        root.dataset.state = "answered";
        message.textContent = state(best);
      } catch (error) {
        if (abort.signal.aborted) return;
        root.dataset.state = "failed";
        message.textContent = error.message;
      }
      written.removeAttribute("aria-busy");
      button.removeAttribute("aria-disabled");
    });
    host.replaceChildren(root);
    return () => abort.abort();
  },
};

function state({ text, truncated }) {
  if (!text) return "The model ends the text here.";
  return truncated
    ? "The beginning of the text was not read: it is longer than the model's " +
        "limit."
    : "";
}
