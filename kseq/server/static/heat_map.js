// The attention of words to words, as a table.

import { element, foreign, percent } from "./elements.js";

const MOST = 100; // rows and columns

/**
 * Makes the table: a row for each word of the answer.
 *
 * onChoose: called with the numbers of row and column, or null.
 * Returns its element, with a note if it is not whole.
 */
export function heatMap(answers, sources, weights, onChoose) {
  const columns = sources.slice(0, MOST);
  const head = element("tr", {}, element("td"));
  for (const source of columns) head.append(header(source, "col"));
  const rows = answers.slice(0, MOST).map((answer, row) => {
    const cells = columns.map((_, column) => cell(weights[row][column]));
    return element("tr", {}, header(answer, "row"), ...cells);
  });
  const table = element(
    "table",
    { className: "heat-map" },
    element("caption", { className: "hidden" }, "Attention of each word"),
    element("thead", {}, head),
    element("tbody", {}, ...rows),
  );
  table.addEventListener("mouseover", (event) => {
    const td = event.target.closest("tbody td");
    onChoose(td && [td.parentNode.sectionRowIndex, td.cellIndex - 1]);
  });
  table.addEventListener("mouseleave", () => onChoose(null));
  const scrolled = element(
    "div",
    {
      className: "scroll",
      tabIndex: 0,
      role: "region",
      "aria-label": "Attention, a row for each word of the answer",
    },
    table,
  );
  if (Math.max(answers.length, sources.length) <= MOST) return scrolled;
  const note = `Only the first ${MOST} words of each side are shown.`;
  return element("div", {}, scrolled, element("p", {}, note));
}

function header({ text, control }, scope) {
  const th = element("th", { scope });
  const className = control ? "control" : "";
  th.append(foreign("span", text.trim() || "␣", { className }));
  return th;
}

function cell(weight) {
  const number = percent(weight);
  const hidden = element("span", { className: "hidden" }, number);
  const td = element("td", { title: number }, hidden);
  td.style.setProperty("--weight", weight.toFixed(4));
  return td;
}
