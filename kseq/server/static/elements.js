// Elements of the page. Text becomes text nodes, never markup.

/** An element; names with a hyphen are attributes, others properties. */
export function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key.includes("-")) made.setAttribute(key, value);
    else made[key] = value;
  }
  made.append(...children);
  return made;
}

/** The first element of a template of index.html, copied. */
export function fromTemplate(id) {
  const { content } = document.getElementById(id);
  return content.firstElementChild.cloneNode(true);
}

/** The element of a template that has this data-part. */
export function part(root, name) {
  return root.querySelector(`[data-part="${name}"]`);
}

/** Text of a server: in its own direction and of an unknown language. */
export function foreign(name, text, properties = {}) {
  return element(name, { dir: "auto", lang: "", ...properties }, text);
}

const percents = [0, 1].map(
  (digits) =>
    new Intl.NumberFormat("en", {
      style: "percent",
      maximumFractionDigits: digits,
    }),
);

/** 0.5 is "50%", and 0.012 is "1.2%". */
export function percent(share) {
  return percents[share > 0 && share < 0.1 ? 1 : 0].format(share);
}
