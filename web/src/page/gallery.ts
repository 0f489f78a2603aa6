// Small pictures with the words of their rows below them.

import { h, prose } from '../dom';
import { formatCell } from '../data/format';
import type { Gallery } from '../data/report';
import type { Context } from '../plots/figure';
import { renderTable } from '../table/table';

/// Rows without a picture stand in the table below; of all rows without one that is the whole.
export function renderGallery({ table, pictures }: Gallery, context: Context): HTMLElement {
  const rest = table.rows.filter((_, i) => pictures[i] === '');
  if (rest.length === table.rows.length) return renderTable(table, context);
  const shown = table.rows.flatMap((row, i) => {
    if (pictures[i] === '') return [];
    const texts = row.map((cell, column) => [table.columns[column]!.label, formatCell(cell, table.columns[column]!)] as const);
    const [name, ...rest] = texts;
    return h('li', { title: name?.[1] ?? null },
      h('img', { src: `data:image/jpeg;base64,${pictures[i]}`, alt: texts.map(([label, text]) => `${label} ${text}`).join(', ') }),
      ...rest.map(([label, text]) => h('span', {}, h('small', {}, `${label} `), text)));
  });
  return h('figure', { class: 'card gallery', id: table.id },
    h('figcaption', {}, h('h3', {}, prose(table.title)), table.definition !== '' && h('p', { class: 'note' }, prose(table.definition))),
    h('ul', {}, ...shown),
    rest.length > 0 && h('details', { class: 'figures' }, h('summary', {}, `${rest.length} more`), renderTable({ ...table, id: `${table.id}-more`, rows: rest }, context)));
}
