// The grid of a table: figures with their interval below and marks behind, heads that sort and stay in sight, as does
// the first column. Which columns and rows are shown can change.

import { h } from '../dom';
import type { Later } from '../later';
import { formatCell, formatInterval, headUnit } from '../data/format';
import type { Cell, Column, Table } from '../data/report';
import { rove } from '../roving';
import { Notes } from './notes';
import { nextOrder, sortRows, type Order } from './sort';

export interface Row { cells: Cell[]; index: number }

export interface Grid {
  element: HTMLElement;
  /// Shows these columns (all of them) and the rows for which `keep` says so; gives back how many those are. Until the
  /// first call the grid is empty.
  show(columns?: readonly number[], keep?: (row: Row) => boolean): number;
  /// Called for each row that is made, to tie it to other things: set before the first `show`.
  onRow: (row: Row, element: HTMLTableRowElement) => void;
}

/// So many rows are there at once, more than the frame of a table shows; the rest of a long one follows.
const FIRST = 40;
const MANY = 60;

const numeric = ({ format }: Column) => format !== 'text';
const all = (table: Table) => table.columns.map((_, i) => i);

export function renderGrid(table: Table, later: Later, notes = new Notes(table.rows)): Grid {
  const head = h('tr');
  const body = h('tbody');
  const rooms = table.columns.map((_, i) => roomOf(table, i));
  const rows = table.rows.map((cells, index): Row => ({ cells, index }));
  let order: Order | null = null;
  let columns: readonly number[] = [];
  let keep: (row: Row) => boolean = () => true;

  // Of very many rows the frame scrolls: a page of thousands of pixels of them hides what follows.
  const element = h('div', { class: table.rows.length > MANY ? 'scroll tall' : 'scroll' },
    h('table', {}, h('caption', { class: 'unseen' }, `${table.title}; the heads of the columns sort`), h('thead', {}, head), body));
  const grid: Grid = {
    element,
    onRow: () => {},
    show(chosen = all(table), wanted = () => true) {
      columns = chosen;
      keep = wanted;
      head.replaceChildren(...columns.map(headOf));
      rove(head);
      return fill();
    },
  };

  function headOf(i: number): HTMLElement {
    const column = table.columns[i]!;
    const unit = headUnit(column);
    const button = h('button', { type: 'button', class: 'sort' },
      column.label || h('span', { class: 'unseen' }, column.key), unit && ' ', unit && h('span', { class: 'unit' }, `[${unit}]`));
    const cell = h('th', { 'scope': 'col', 'class': numeric(column) ? 'figure' : 'words', 'aria-sort': order?.column === i ? order.direction : 'none' }, button);
    button.addEventListener('click', () => {
      order = nextOrder(order, i);
      [...head.children].forEach((other, j) => other.setAttribute('aria-sort', order?.column === columns[j] ? order!.direction : 'none'));
      fill();
    });
    return cell;
  }

  // Rows of one group (same local batch) stand together: a rule above each group, its name said once.
  const first = ({ cells }: Row) => (table.columns[0] && cells[0] ? formatCell(cells[0], table.columns[0]) : '');
  const repeats = new Set(rows.map(first)).size < rows.length && table.columns.length > 2;
  function fill(): number {
    const shown = sortRows(rows, order).filter(keep);
    const grouped = repeats && (order === null || order.column === 0);
    const rowOf = (row: Row, i: number) => {
      const line = h('tr', {}, ...columns.map((c, j) => renderCell(row.cells[c]!, table.columns[c]!, j === 0, rooms[c]!, notes)));
      const before = shown[i - 1];
      const same = grouped && before !== undefined && first(before) === first(row);
      if (grouped && before !== undefined && !same) line.classList.add('group');
      if (same) line.classList.add('again');
      grid.onRow(row, line);
      return line;
    };
    body.replaceChildren(...shown.slice(0, FIRST).map(rowOf));
    // One order or filter may follow the other before the rest is there.
    if (shown.length > FIRST) later.add(element, () => body.append(...shown.slice(FIRST).map((row, i) => rowOf(row, i + FIRST))));
    else later.drop(element);
    return shown.length;
  }
  return grid;
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
    room.mark > 0 && h('span', { class: 'mark', style: `min-width:${room.mark * 0.6}em` }, cell.mark),
    room.mark === 0 && !room.below && cell.mark && h('span', { class: 'mark' }, cell.mark),
    interval && h('span', { class: 'interval', style: room.mark > 0 && `padding-right:${room.mark * 0.6 + 0.3}em` }, interval),
    room.below && cell.mark && h('span', { class: 'mark below' }, cell.mark));
}
