// The best answers with their scores, on request.

import { add } from "./column.js";
import { element, foreign, fromTemplate } from "./elements.js";

/** Adds the part "n-best" to a column. */
export function startNBest(column) {
  const details = fromTemplate("n-best");
  column.content.firstElementChild.append(details);
  details.hidden = !column.has("n_best");
  details.addEventListener("toggle", async () => {
    if (column.input === null) return;
    const { signal } = column.abort;
    const { input } = column.kind;
    const request = await input.request(column.input, column.target);
    showNBest(column, request, signal);
  });
}

/** Asks for the best answers if the part is open. */
export async function showNBest(column, input, signal) {
  const details = column.part("n-best");
  const host = column.part("answers");
  if (!details.open || details.hidden) {
    host.replaceChildren();
    return;
  }
  await add(host, signal, async () => {
    const best = await column.predict("n_best", input, signal);
    host.replaceChildren(table(best));
  });
}

function table({ texts, scores }) {
  // Where there are fewer answers, the score is minus infinity.
  const rows = texts
    .map((text, place) => [text, scores[place]])
    .filter(([, score]) => score !== null)
    .map(([text, score]) =>
      element(
        "tr",
        {},
        element("td", {}, score.toFixed(3)),
        foreign("td", text || "(empty)"),
      ),
    );
  return element(
    "table",
    { className: "n-best" },
    element(
      "thead",
      {},
      element(
        "tr",
        {},
        element("th", { scope: "col" }, "Score"),
        element("th", { scope: "col" }, "Answer"),
      ),
    ),
    element("tbody", {}, ...rows),
  );
}
