// A value for each pair of a row and a column, by the shade of its cell, as wide as the card: nothing scrolls. Where a
// cell is too small for its number, pointing at it says it. Of confused classes what is right has a colour of its own.

import { svg } from '../dom';
import { formatCell, formatInterval, formatValue, unitAfter } from '../data/format';
import type { Cell, Heatmap, Table } from '../data/report';
import { renderCard } from './card';
import type { Drawing, Key, Spot } from './drawing';
import type { Context } from './figure';
import { BEST } from './marks';
import { textWidth } from './style';

const GAP = 1;
const HEAD = 24;    // the label of the columns and the gap below their names
const LOWEST = 14;
const TALLEST = 34;
const LIGHT = 55;   // per cent of colour above which letters on it are white

/// As much of a name as there is room for.
function cut(name: string, width: number): string {
  if (textWidth(name) <= width) return name;
  let length = name.length - 1;
  while (length > 1 && textWidth(`${name.slice(0, length)}…`) > width) --length;
  return `${name.slice(0, length).trimEnd()}…`;
}

interface Frame { left: number; top: number; cell: number; tall: number; bottom: number; names: string[]; heads: string[]; upright: boolean }

function frameOf({ rows, columns }: Heatmap, width: number): Frame {
  const names = rows.map((name) => cut(name, Math.min(width * 0.28, 170)));
  const left = Math.max(...names.map((name) => textWidth(name))) + 26;
  const cell = (width - left - 2) / columns.length;
  // Names that are wider than their cell stand on end.
  const upright = columns.some((name) => textWidth(name) > cell - 4);
  const heads = columns.map((name) => cut(name, upright ? 96 : cell));
  const top = HEAD + (upright ? Math.max(...heads.map((name) => textWidth(name))) : 14);
  const tall = Math.max(LOWEST, Math.min(TALLEST, cell));
  return { left, top, cell, tall, bottom: top + tall * rows.length, names, heads, upright };
}

/// From 0 to 1, for each cell; null where there is no value.
export function shadesOf({ rows, columns, cells, confusion }: Heatmap): (number | null)[] {
  const values = cells.flatMap(({ value }) => (value === null ? [] : [value]));
  const [least, most] = [Math.min(...values), Math.max(...values)];
  if (!confusion) return cells.map(({ value }) => (value === null ? null : most > least ? 0.08 + (0.92 * (value - least)) / (most - least) : 0.5));
  const sums = rows.map((_, row) => columns.reduce((sum, __, column) => sum + (cells[row * columns.length + column]!.value ?? 0), 0));
  const share = ({ value }: Cell, i: number) => (value ?? 0) / (sums[Math.floor(i / columns.length)]! || 1);
  const isRight = (i: number) => rows[Math.floor(i / columns.length)] === columns[i % columns.length];
  const mostWrong = Math.max(0, ...cells.map((cell, i) => (isRight(i) ? 0 : share(cell, i))));
  // What is wrong is rare: the largest confusion has the full colour, and one image is still seen.
  return cells.map((cell, i) => {
    const part = share(cell, i);
    return part === 0 ? 0 : isRight(i) ? 0.1 + 0.9 * part : 0.15 + 0.85 * (part / mostWrong);
  });
}

function draw(heatmap: Heatmap, width: number): Drawing {
  const { rows, columns, cells, value: what, row_label, column_label, confusion } = heatmap;
  const { left, top, cell, tall, bottom, names, heads, upright } = frameOf(heatmap, width);
  const shades = shadesOf(heatmap);
  const image = svg('svg', { class: 'drawing heatmap', viewBox: `0 0 ${width} ${bottom + 4}`, width, height: bottom + 4 });
  image.append(svg('text', { 'x': left + (cell * columns.length) / 2, 'y': 11, 'text-anchor': 'middle', 'class': 'axis' }, column_label),
    svg('text', { 'transform': `translate(9,${(top + bottom) / 2}) rotate(-90)`, 'text-anchor': 'middle', 'class': 'axis' }, row_label));
  image.append(...heads.map((name, i) => {
    const x = left + (i + 0.5) * cell;
    return upright ? svg('text', { 'transform': `translate(${x},${top - 5}) rotate(-90)`, 'dy': '0.32em' }, name)
      : svg('text', { 'x': x, 'y': top - 6, 'text-anchor': 'middle' }, name);
  }), ...names.map((name, i) => svg('text', { 'x': left - 6, 'y': top + (i + 0.5) * tall, 'dy': '0.32em', 'text-anchor': 'end' }, name)));
  const spots = cells.map((one, i): Spot => {
    const [row, column] = [Math.floor(i / columns.length), i % columns.length];
    const [x, y] = [left + column * cell, top + row * tall];
    const isRight = confusion && rows[row] === columns[column];
    const shade = shades[i];
    const per = Math.round(100 * (shade ?? 0));
    const colour = confusion && !isRight ? 'var(--transfer)' : 'var(--backward)';
    image.append(svg('rect', {
      'class': shade === null ? 'none' : 'cell', x, y, 'width': cell - GAP, 'height': tall - GAP,
      'style': shade !== null && `fill:color-mix(in srgb, ${colour} ${per}%, var(--tint))`,
    }));
    const text = one.value === null ? '–' : confusion && one.value === 0 ? '' : formatValue(one.value, what.format);
    if (text !== '' && textWidth(text) <= cell - 5) {
      image.append(svg('text', { 'class': 'inside', 'x': x + (cell - GAP) / 2, 'y': y + (tall - GAP) / 2, 'dy': '0.32em', 'text-anchor': 'middle', 'fill': per > LIGHT ? 'var(--on-dark)' : 'var(--ink)' }, text));
    }
    if (one.mark === BEST) image.append(svg('rect', { 'class': 'ring', 'x': x + 1, 'y': y + 1, 'width': cell - GAP - 2, 'height': tall - GAP - 2, 'stroke': 'var(--ink)' }));
    const interval = formatInterval(one, what);
    return {
      key: String(i), x: x + cell / 2, y: y + tall / 2, lane: row, box: { left: x, right: x + cell, top: y, bottom: y + tall },
      title: `${row_label} ${rows[row]}, ${column_label} ${columns[column]}`, record: '',
      rows: [[what.label, formatCell(one, what) + (one.value === null ? '' : unitAfter(what.unit))], ...(interval ? [['interval', interval] as [string, string]] : []),
        ...[one.mark, one.note].filter((said) => said !== '').map((said): [string, string] => ['note', said])],
    };
  });
  return { image, spots, keys: keysOf(heatmap) };
}

function keysOf({ confusion, cells, value }: Heatmap): Key[] {
  if (confusion) return [{ sign: 'box', text: 'right', colour: 'var(--backward)' }, { sign: 'box', text: 'wrong; darker: a larger part of the row', colour: 'var(--transfer)' }];
  const best: Key[] = cells.some(({ mark }) => mark === BEST) ? [{ sign: 'ring', text: BEST }] : [];
  return [{ sign: 'box', text: `darker: more ${value.label}`, colour: 'var(--backward)' }, ...best];
}

const table = ({ id, finding, row_label, column_label, value, rows, columns, cells }: Heatmap): Table => ({
  type: 'table', id: `${id}-figures`, title: finding, definition: '', footnotes: [],
  columns: [{ key: 'row', label: `${row_label} \\ ${column_label}`, unit: '', format: 'text', group: '' }, ...columns.map((name) => ({ ...value, key: name, label: name }))],
  rows: rows.map((name, row) => [{ text: name, value: null, low: null, high: null, mark: '', note: '' }, ...columns.map((_, column) => cells[row * columns.length + column]!)]),
});

export function renderHeatmap(heatmap: Heatmap, context: Context): HTMLElement {
  return renderCard(heatmap, 'heatmap', {
    draw: (width) => draw(heatmap, width), height: (width) => frameOf(heatmap, width).bottom + 4, keys: () => keysOf(heatmap), table: () => table(heatmap),
  }, context).figure;
}
