// How a model draws its answers at random.

import { fromTemplate } from "./elements.js";

/**
 * Adds the controls to an element, for a model that has them.
 *
 * Returns a function that gives the signature that answers, and its inputs
 * beside the source.
 */
export function addSampling(host, model) {
  if (!model.signatures.includes("sample")) {
    return () => ["serving_default", {}];
  }
  const root = fromTemplate("sampling");
  host.append(root);
  const at = (id) => root.querySelector(`#${id}`);
  const number = (id) => {
    const { valueAsNumber, defaultValue } = at(id);
    return Number.isFinite(valueAsNumber)
      ? valueAsNumber
      : Number(defaultValue);
  };
  return () => {
    if (!at("sample").checked) return ["serving_default", {}];
    const draws = {
      temperature: number("temperature"),
      top_p: number("top-p"),
      seed: Math.floor(Math.random() * 2 ** 31),
    };
    return ["sample", draws];
  };
}
