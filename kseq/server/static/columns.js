// One input, and the answers of one or two models side by side.

import { Column } from "./column.js";
import { element } from "./elements.js";

/**
 * Opens the view of a kind of model whose answers depend on one input.
 *
 * kind: as for a Column, with
 *   input: an object with
 *     ask: what to do, in words,
 *     isText: whether a value is a string, which a link can keep,
 *     open(onValue, targets): makes {root, set(value)}, perhaps with close();
 *     onValue(null) is no input,
 *     request(value, target): a promise of what signatures take,
 *     showAttention(host, value, explained, target): shows what decided, if it
 *     is not a text.
 * view: {host, targets, value, onValue}.
 */
export function openColumns(kind, { host, targets, value, onValue }) {
  const columns = targets.map((target) => new Column(target, kind));
  const ask = (changed) => {
    onValue(changed);
    for (const column of columns) column.ask(changed);
  };
  const input = kind.input.open(ask, targets);
  const beside = element("div", { className: "columns" });
  beside.append(...columns.map((column) => column.root));
  host.replaceChildren(input.root, beside);
  if (value !== null) input.set(value);
  return () => {
    input.close?.();
    for (const column of columns) column.close();
  };
}
