// One input, and the answers of one or two models side by side.

import { Column } from "./column.js";
import { element } from "./elements.js";

/**
 * Opens the view of a kind of model whose answers depend on one input.
 *
 * kind: as for a Column, with
 *   input(onValue, targets): makes {root, set(value)}; onValue(null) is no
 *   input.
 * view: {host, targets, value, onValue}.
 */
export function openColumns(kind, { host, targets, value, onValue }) {
  const columns = targets.map((target) => new Column(target, kind));
  const ask = (changed) => {
    onValue(changed);
    for (const column of columns) column.ask(changed);
  };
  const input = kind.input(ask, targets);
  const beside = element("div", { className: "columns" });
  beside.append(...columns.map((column) => column.root));
  host.replaceChildren(input.root, beside);
  if (value !== null) input.set(value);
  return () => columns.forEach((column) => column.abort.abort());
}
