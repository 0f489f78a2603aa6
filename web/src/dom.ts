// Elements in one expression: h('p', { class: 'note' }, 'text', child). Text is always text, never markup: a
// report's words can hold any character.

export type Child = Node | string | null | undefined | false;
type Attributes = Record<string, string | number | boolean | null | undefined>;

const SVG = 'http://www.w3.org/2000/svg';

function fill<E extends Element>(element: E, attributes: Attributes, children: readonly Child[]): E {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    // An empty aria attribute says nothing; another one is there or not.
    element.setAttribute(name, value === true && !name.startsWith('aria-') ? '' : String(value));
  }
  for (const child of children) if (child) element.append(child);
  return element;
}

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K, attributes: Attributes = {}, ...children: Child[]
): HTMLElementTagNameMap[K] {
  return fill(document.createElement(tag), attributes, children);
}

export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K, attributes: Attributes = {}, ...children: Child[]
): SVGElementTagNameMap[K] {
  return fill(document.createElementNS(SVG, tag) as SVGElementTagNameMap[K], attributes, children);
}

/// A figure and its unit stay on one line.
const keepUnits = (text: string) =>
  text.replace(/(\d) (%|[mµ]?s|[kMGT]B(?:\/s)?|images\/s)(?=[\s,.;:)\]]|$)/g, '$1\u00a0$2');

/// The text of a report: `code` between backticks, line breaks kept by the style sheet.
export function prose(words: string): DocumentFragment {
  const fragment = document.createDocumentFragment();
  const text = keepUnits(words);
  text.split(/`([^`]+)`/).forEach((part, i) => {
    if (part) fragment.append(i % 2 ? h('code', {}, part) : part);
  });
  return fragment;
}
