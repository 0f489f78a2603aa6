// Small pictures with the words of their rows below them.

import { h, prose } from '../dom';
import { formatCell } from '../data/format';
import type { Gallery } from '../data/report';

export function renderGallery({ table, pictures }: Gallery): HTMLElement {
  const shown = table.rows.map((row, i) => {
    const texts = row.map((cell, column) => [table.columns[column]!.label, formatCell(cell, table.columns[column]!)] as const);
    const [name, ...rest] = texts;
    return h('li', { title: name?.[1] ?? null },
      pictures[i] ? h('img', { src: `data:image/jpeg;base64,${pictures[i]}`, alt: texts.map(([label, text]) => `${label} ${text}`).join(', '), loading: 'lazy' }) : h('div', { class: 'blank' }, name?.[1] ?? ''),
      ...rest.map(([label, text]) => h('span', {}, h('small', {}, `${label} `), text)));
  });
  return h('figure', { class: 'card gallery', id: table.id },
    h('figcaption', {}, h('h3', {}, prose(table.title)), table.definition !== '' && h('p', { class: 'note' }, prose(table.definition))),
    h('ul', {}, ...shown));
}
