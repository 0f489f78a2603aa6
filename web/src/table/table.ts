// A table as a card: its controls, the grid, and below it notes and definitions. A table whose columns have groups is
// the one of all cells: groups are switched, rows filtered, and what is the same in every row is said once above.

import { h, prose } from '../dom';
import { toCsv } from '../data/csv';
import { formatCell, headUnit } from '../data/format';
import type { Table } from '../data/report';
import type { Later } from '../later';
import { copyButton, saveText } from '../page/save';
import type { Links } from '../plots/links';
import { rove, toolbar } from '../roving';
import { renderGrid, type Grid, type Row } from './grid';
import { Notes } from './notes';

export function renderTable(table: Table, { links, later }: { links: Links; later: Later }): HTMLElement {
  const notes = new Notes(table.rows);
  const grid = renderGrid(table, later, notes);
  link(table, grid, links);
  const save = h('button', { type: 'button', class: 'tool' }, 'CSV');
  save.addEventListener('click', () => saveText(`${table.id}.csv`, 'text/csv', toCsv(table)));
  const isLarge = table.columns.some(({ group }) => group !== '') || table.rows.length > MANY_ROWS;
  const controls = isLarge ? controlsOf(table, grid) : null;
  if (!isLarge) grid.show();
  return h('figure', { class: 'card table', id: table.id },
    h('figcaption', { class: 'head' }, h('h3', {}, table.title), toolbar(table.title, 'tools', copyButton('Copy', () => toCsv(table), 'this table as CSV'), save)),
    controls, grid.element, footer(table, notes));
}

const MANY_ROWS = 24;

/// Columns in which all rows say the same; the first one names the row.
export function constantColumns({ columns, rows }: Table): number[] {
  if (rows.length < 3) return [];
  return columns.flatMap((column, i) => {
    const said = (row: Table['rows'][number]) => [formatCell(row[i]!, column), row[i]!.low, row[i]!.high, row[i]!.mark, row[i]!.note].join('|');
    return i > 0 && rows.every((row) => said(row) === said(rows[0]!)) ? [i] : [];
  });
}

const COLUMN = 110;  // pixels that one takes, about

/// As many groups, in their order, as the window has room for; the first in any case.
function firstGroups({ columns }: Table, groups: readonly string[]): Set<string> {
  const shown = new Set(groups.slice(0, 1));
  const size = (wanted: ReadonlySet<string>) => columns.filter(({ group }) => group === '' || wanted.has(group)).length;
  for (const group of groups.slice(1)) {
    if (size(new Set([...shown, group])) * COLUMN > window.innerWidth) break;
    shown.add(group);
  }
  return shown;
}

function controlsOf(table: Table, grid: Grid): HTMLElement {
  const groups = [...new Set(table.columns.map(({ group }) => group).filter((group) => group !== ''))];
  const constant = groups.length > 0 ? constantColumns(table) : [];
  const shown = firstGroups(table, groups);
  const count = h('span', { 'class': 'count', 'role': 'status' });
  const filter = h('input', { 'type': 'search', 'placeholder': 'Filter rows', 'aria-label': `Filter rows: ${table.title}`, 'autocomplete': 'off', 'spellcheck': 'false' });
  let texts: string[] | null = null;
  const textsOf = () => table.rows.map((cells) => cells.map((cell, i) => formatCell(cell, table.columns[i]!)).join(' ').toLowerCase());
  function update() {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    if (words.length > 0) texts ??= textsOf();
    const kept = grid.show(
      table.columns.flatMap(({ group }, i) => ((group === '' || shown.has(group)) && !constant.includes(i) ? [i] : [])),
      ({ index }: Row) => words.every((word) => texts![index]!.includes(word)));
    count.textContent = words.length > 0 ? `${kept} of ${table.rows.length}` : '';
  }
  filter.addEventListener('input', update);
  const switches = h('div', { 'class': 'views', 'role': 'group', 'aria-label': 'Columns' }, ...groups.map((group) => {
    const button = h('button', { 'type': 'button', 'aria-pressed': shown.has(group) ? 'true' : 'false' }, group);
    button.addEventListener('click', () => {
      if (!shown.delete(group)) shown.add(group);
      button.setAttribute('aria-pressed', shown.has(group) ? 'true' : 'false');
      update();
    });
    return button;
  }));
  rove(switches);
  update();
  const said = constant.map((i) => {
    const column = table.columns[i]!;
    const unit = headUnit(column);
    return `${column.label} ${formatCell(table.rows[0]![i]!, column)}${unit ? ` ${unit}` : ''}`;
  });
  return h('div', { class: 'controls' },
    h('div', { class: 'row' }, groups.length > 0 && switches, filter, count),
    said.length > 0 && h('p', { class: 'constant' }, h('b', {}, 'In every row: '), said.join(' · ')));
}

/// A row belongs to the records that a column "record" or "records" names.
function link(table: Table, grid: Grid, links: Links): void {
  const column = table.columns.findIndex(({ key }) => key === 'record' || key === 'records');
  if (column < 0) return;
  const rowOf = new Map<string, HTMLElement>();
  const recordsOf = ({ cells }: Row) => cells[column]!.text.split(/[\s,;]+/).filter(Boolean);
  grid.onRow = (row, element) => {
    const records = recordsOf(row);
    for (const record of records) rowOf.set(record, element);
    const [record = ''] = records;
    element.addEventListener('pointerenter', () => links.light(record));
    element.addEventListener('pointerleave', () => links.light(''));
  };
  let lit: HTMLElement | undefined;
  links.add((record) => {
    lit?.classList.remove('lit');
    lit = rowOf.get(record);
    lit?.classList.add('lit');
  });
}

function footer(table: Table, notes: Notes): HTMLElement | null {
  const lines = [
    ...table.footnotes.map((text) => h('li', {}, prose(text))),
    ...notes.list.map(({ letter, text }) => h('li', {}, h('sup', {}, letter), ' ', prose(text))),
  ];
  if (lines.length === 0 && table.definition === '') return null;
  return h('div', { class: 'under' },
    ...noteLists(lines),
    table.definition !== '' && h('details', { class: 'definition' }, h('summary', {}, 'Definitions'), h('p', {}, prose(table.definition))));
}

/// Many notes stand in columns; very many fold away behind the first.
function noteLists(lines: HTMLElement[]): HTMLElement[] {
  const list = (some: HTMLElement[]) => h('ul', { class: lines.length > MANY ? 'notes many' : 'notes' }, ...some);
  if (lines.length <= 3 * MANY) return lines.length > 0 ? [list(lines)] : [];
  const more = lines.splice(2 * MANY);
  return [list(lines), h('details', {}, h('summary', {}, `${more.length} more notes`), list(more))];
}

const MANY = 5;
