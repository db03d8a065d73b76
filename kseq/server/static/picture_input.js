// A picture that is chosen or dropped, and what a model looked at in it.

import { element, percent } from "./elements.js";
import { base64, fileInput } from "./file_input.js";

const DARKEST = 200; // of 255, how dark a cell is that gets no attention

/** An input of {file, bytes}, see columns.js. */
export const input = {
  ask: "Choose a picture",
  open: (onValue) =>
    fileInput(
      "Choose a JPEG or PNG picture, or drop it here",
      "image/jpeg,image/png",
      onValue,
    ),

  request: async ({ bytes }) => ({ image: base64(bytes) }),

  /** The picture, dark where the weights of one answer are small. */
  async showAttention(host, { file }, { source_tokens, attention: [weights] }) {
    const image = element("img", { alt: "The picture that you chose" });
    const url = URL.createObjectURL(file);
    image.addEventListener("load", () => URL.revokeObjectURL(url));
    image.src = url;
    const overlay = element("canvas", { "aria-hidden": "true" });
    const cells = cellsOf(source_tokens);
    cover(overlay, cells, weights);
    const frame = element("div", { className: "picture" }, image, overlay);
    host.replaceChildren(frame, element("p", {}, strongest(cells, weights)));
  },
};

/** Rows and columns of cells, from their names. */
export function cellsOf(names) {
  return names.map((cell) => cell.split(",").map(Number));
}

/**
 * Darkens what gets no attention: draws a pixel for each cell, which the page
 * stretches over the picture.
 */
export function cover(overlay, cells, weights) {
  const rows = Math.max(...cells.map(([row]) => row));
  const columns = Math.max(...cells.map(([, column]) => column));
  const most = Math.max(...weights) || 1;
  const pixels = new ImageData(columns, rows);
  cells.forEach(([row, column], cell) => {
    const dark = Math.round(DARKEST * (1 - weights[cell] / most));
    const start = 4 * ((row - 1) * columns + column - 1);
    pixels.data.set([0, 0, 0, dark], start);
  });
  overlay.width = columns;
  overlay.height = rows;
  overlay.getContext("2d").putImageData(pixels, 0, 0);
}

export function strongest(cells, weights) {
  const place = weights.indexOf(Math.max(...weights));
  const [row, column] = cells[place];
  const rows = Math.max(...cells.map(([last]) => last));
  const columns = Math.max(...cells.map(([, last]) => last));
  return (
    `Strongest at row ${row} of ${rows}, column ${column} of ${columns}: ` +
    percent(weights[place])
  );
}
