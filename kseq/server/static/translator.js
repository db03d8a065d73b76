// Text in, text out: translators, and models that find an answer.

import { predict, predictWords } from "./client.js";
import { add } from "./column.js";
import { oneSpaced, showLinkedWords, spelled } from "./linked_words.js";
import { showNBest, startNBest } from "./n_best.js";
import { input } from "./text_input.js";

export const view = {
  template: "translator",
  shows: "the answer",
  input,

  start(column) {
    column.part("attention").hidden = !column.has("explain");
    startNBest(column, (text) => ({ text }));
  },

  async answer(column, text, signal) {
    const request = { text };
    const answer = column.part("answer");
    const best = await predictWords(
      column.target,
      "serving_default",
      request,
      signal,
      (words) => {
        answer.textContent = words;
        column.show(false);
      },
    );
    answer.textContent = best.text || "(an empty answer)";
    column.part("spoken").textContent = best.text;
    column.part("note").replaceChildren();
    column.show(best.truncated);
    if (column.has("explain")) await explain(column, request, best.text, signal);
    await showNBest(column, request, signal);
  },
};

async function explain(column, request, text, signal) {
  const table = column.part("heat-map");
  await add(table, signal, async () => {
    const explained = await predict(column.target, "explain", request, signal);
    // A search that draws its answers draws a new one.
    const isOther = spelled(explained.target_tokens) !== oneSpaced(text);
    const answer = column.part("answer");
    const hosts = {
      answer: isOther && text ? other(answer) : answer,
      source: column.part("source"),
      note: column.part("note"),
      table,
    };
    showLinkedWords(hosts, explained);
    if (!text) answer.textContent = "(an empty answer)";
  });
}

/** A line for the answer that was drawn for `explain`. */
function other(answer) {
  const line = document.createElement("span");
  line.className = "other";
  answer.append(document.createElement("br"), "Also: ", line);
  return line;
}
