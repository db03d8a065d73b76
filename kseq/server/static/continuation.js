// The beginning of a text in, its continuation by a language model out.

import { predict } from "./client.js";
import { element, fromTemplate, part } from "./elements.js";

export const view = {
  isText: true,

  open({ host, targets: [target], value, onValue }) {
    const root = fromTemplate("continuation");
    const area = root.querySelector("textarea");
    const button = part(root, "continue");
    const message = part(root, "message");
    const written = part(root, "written");
    const abort = new AbortController();
    area.value = value ?? "";
    area.addEventListener("input", () => onValue(area.value));
    button.addEventListener("click", async () => {
      if (button.getAttribute("aria-disabled") === "true") return;
      button.setAttribute("aria-disabled", "true");
      root.dataset.state = "waiting";
      message.textContent = "Waiting for the answer…";
      const prompt = area.value;
      try {
        const best = await predict(
          target,
          "serving_default",
          { prompt },
          abort.signal,
        );
        // What was typed meanwhile is kept.
        if (area.value === prompt) area.value += best.text;
        onValue(area.value);
        written.replaceChildren(prompt, element("mark", {}, best.text));
        root.dataset.state = "answered";
        message.textContent = state(best);
      } catch (error) {
        if (abort.signal.aborted) return;
        root.dataset.state = "failed";
        message.textContent = error.message;
      }
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
