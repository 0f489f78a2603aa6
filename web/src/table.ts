// A table: figures with their interval below, marks behind, notes and definitions underneath; columns sort, and the
// whole can be copied as CSV.

import { toCsv } from './csv';
import { h, prose } from './dom';
import { formatCell, formatInterval, headUnit } from './format';
import { Notes } from './notes';
import { nextOrder, sortRows, type Order } from './sort';
import type { Cell, Column, Table } from './schema';

const numeric = ({ format }: Column) => format !== 'text';

export function renderTable(table: Table): HTMLElement {
  const notes = new Notes(table.rows);
  return h('figure', { class: table.columns.length > WIDE ? 'table wide' : 'table', id: table.id },
    h('figcaption', { class: 'bar' }, h('h3', {}, table.title), copyButton(table)),
    renderGrid(table, notes),
    footer(table, notes));
}

/// The grid alone, for tables inside other blocks. Sorting moves rows; it never makes new ones.
export function renderGrid(table: Table, notes = new Notes(table.rows)): HTMLElement {
  const body = h('tbody');
  const rooms = table.columns.map((_, i) => roomOf(table, i));
  const rows = table.rows.map((cells) => ({ cells, element: renderRow(table, cells, rooms, notes) }));
  let order: Order | null = null;

  const heads = table.columns.map((column, i) => {
    const unit = headUnit(column);
    const button = h('button', { type: 'button', class: 'sort' },
      column.label || h('span', { class: 'unseen' }, column.key), unit && ' ', unit && h('span', { class: 'unit' }, `[${unit}]`));
    const head = h('th', { 'scope': 'col', 'class': numeric(column) ? 'figure' : 'words', 'aria-sort': 'none' }, button);
    button.addEventListener('click', () => {
      order = nextOrder(order, i);
      heads.forEach((other, j) => other.setAttribute('aria-sort', order?.column === j ? order.direction : 'none'));
      show();
    });
    return head;
  });

  // Rows of one group (same local batch) stand together: a rule above each group, its name said once.
  const first = (cells: Cell[]) => (table.columns[0] && cells[0] ? formatCell(cells[0], table.columns[0]) : '');
  const repeats = new Set(table.rows.map(first)).size < table.rows.length && table.columns.length > 2;
  function show() {
    const sorted = sortRows(rows, order);
    const grouped = repeats && (order === null || order.column === 0);
    sorted.forEach(({ cells, element }, i) => {
      const before = sorted[i - 1];
      const same = grouped && before !== undefined && first(before.cells) === first(cells);
      element.classList.toggle('group', grouped && before !== undefined && !same);
      element.classList.toggle('again', same);
    });
    body.replaceChildren(...sorted.map(({ element }) => element));
  }
  show();

  return h('div', { 'class': 'scroll', 'tabindex': 0, 'role': 'region', 'aria-label': `Table: ${table.title}` },
    h('table', {},
      h('caption', { class: 'unseen' }, `${table.title}; the heads of the columns sort`),
      h('thead', {}, h('tr', {}, ...heads)),
      body));
}

function renderRow({ columns }: Table, cells: Cell[], rooms: readonly Room[], notes: Notes): HTMLTableRowElement {
  return h('tr', {}, ...cells.map((cell, i) => renderCell(cell, columns[i]!, i === 0, rooms[i]!, notes)));
}

/// What all cells of a column keep free, so that their figures stay aligned whether or not one has a mark or a note.
interface Room {
  mark: number;      ///< letters of the longest mark beside a figure
  below: boolean;    ///< marks so long ("* emulated") that beside the figures they would push columns off the screen
  letter: boolean;   ///< some cell has a note
  longest: number;   ///< letters of the longest text: long ones make a narrow column very tall
}

function roomOf({ columns, rows }: Table, i: number): Room {
  const most = (text: (cell: Cell) => string) => rows.reduce((length, row) => Math.max(length, text(row[i]!).length), 0);
  const mark = most((cell) => cell.mark);
  const isFigure = numeric(columns[i]!);
  const below = isFigure && mark > BESIDE;
  return {
    mark: isFigure && !below ? mark : 0, below, letter: isFigure && most((cell) => cell.note) > 0,
    longest: most((cell) => cell.text),
  };
}

/// The longest mark that stands beside a figure: "est. *".
const BESIDE = 6;
const SENTENCE = 60;
const NAME = 16;

function renderCell(cell: Cell, column: Column, isHead: boolean, room: Room, notes: Notes): HTMLElement {
  const interval = formatInterval(cell, column);
  const letter = notes.letterOf(cell);
  const kind = [numeric(column) ? 'figure' : 'words', cell.value === null && numeric(column) && 'missing', room.longest > SENTENCE ? 'long' : room.longest > NAME && 'name'];
  return h(isHead ? 'th' : 'td', {
    scope: isHead && 'row', class: kind.filter(Boolean).join(' '), title: cell.note || null,
  },
    h('span', { class: 'value' }, formatCell(cell, column)),
    (letter || room.letter) && h('sup', {}, letter),
    room.mark > 0 && h('span', { class: 'mark', style: `min-width:${room.mark * 0.5}em` }, cell.mark),
    room.mark === 0 && !room.below && cell.mark && h('span', { class: 'mark' }, cell.mark),
    interval && h('span', { class: 'interval', style: room.mark > 0 && `padding-right:${room.mark * 0.5 + 0.3}em` }, interval),
    room.below && cell.mark && h('span', { class: 'mark below' }, cell.mark));
}

function footer(table: Table, notes: Notes): HTMLElement | null {
  const hasIntervals = table.rows.some((row) => row.some(({ low, high }) => low !== null && high !== null));
  const lines = [
    ...table.footnotes.map((text) => h('li', {}, prose(text))),
    ...notes.list.map(({ letter, text }) => h('li', {}, h('sup', {}, letter), ' ', prose(text))),
    ...(hasIntervals ? [h('li', {}, 'Small figures: interval of the figure above; none where there was one sample.')] : []),
  ];
  if (lines.length === 0 && table.definition === '') return null;
  return h('div', { class: 'under' },
    table.definition !== '' && h('details', { class: 'definition', open: true },
      h('summary', {}, 'Definitions'), h('p', {}, prose(table.definition))),
    ...noteLists(lines));
}

/// Many notes stand in columns; very many fold away behind the first.
function noteLists(lines: HTMLElement[]): HTMLElement[] {
  const list = (some: HTMLElement[]) => h('ul', { class: lines.length > MANY ? 'notes columns' : 'notes' }, ...some);
  if (lines.length <= 3 * MANY) return lines.length > 0 ? [list(lines)] : [];
  const more = lines.splice(2 * MANY);
  return [list(lines), h('details', {}, h('summary', {}, `${more.length} more notes`), list(more))];
}

const MANY = 5;

/// Tables of more columns are set closer, to show their last one on a screen of 1280 pixels.
const WIDE = 10;

function copyButton(table: Table): HTMLElement {
  const button = h('button', { 'type': 'button', 'class': 'tool', 'aria-label': `Copy as CSV: ${table.title}` }, 'Copy CSV');
  button.addEventListener('click', () => {
    void copy(toCsv(table)).then((done) => {
      button.textContent = done ? 'Copied' : 'Not copied';
      setTimeout(() => { button.textContent = 'Copy CSV'; }, 1600);
    });
  });
  return button;
}

/// The clipboard's interface is closed to some pages opened from a file: then the old way through a selection.
async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = h('textarea', { class: 'unseen' });
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand('copy');
    area.remove();
    return done;
  }
}
