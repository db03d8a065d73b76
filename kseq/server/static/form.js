// Any other model: a request in JSON, and the answer.

import { post } from "./client.js";
import { element, fromTemplate, part } from "./elements.js";

export const view = {
  open({ host, targets: [target] }) {
    const root = fromTemplate("form");
    const select = root.querySelector("select");
    const area = root.querySelector("textarea");
    const message = part(root, "message");
    let abort = new AbortController();
    const { signatures, inputs } = target.model;
    select.append(
      ...signatures.map((name) => element("option", { value: name }, name)),
    );
    const fill = () => {
      area.value = example(select.value, inputs[select.value]);
    };
    if (signatures.includes("serving_default")) {
      select.value = "serving_default";
    }
    fill();
    select.addEventListener("change", fill);
    part(root, "send").addEventListener("click", async () => {
      abort.abort();
      abort = new AbortController();
      const { signal } = abort;
      root.dataset.state = "waiting";
      message.textContent = "Waiting for the answer…";
      try {
        const answer = await post(target, area.value, signal);
        part(root, "answer").textContent = JSON.stringify(answer, null, 1);
        root.dataset.state = "answered";
        message.textContent = "";
      } catch (error) {
        if (signal.aborted) return;
        root.dataset.state = "failed";
        message.textContent = error.message;
      }
    });
    host.replaceChildren(root);
    return () => abort.abort();
  },
};

function example(signature, names) {
  const inputs = Object.fromEntries(names.map((name) => [name, []]));
  return JSON.stringify({ signature_name: signature, inputs }, null, 1);
}
