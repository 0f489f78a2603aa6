// Two studies, pair by pair: the ratio of each with its interval against the line at 1, sorted, with a word that says
// what it means. Pairs that cannot be compared are listed below with the reason.

import { h, prose, svg } from '../dom';
import { fixed } from '../data/format';
import type { Comparison, Pair, Table, Word } from '../data/report';
import { renderCard } from './card';
import type { Drawing, Spot } from './drawing';
import type { Context } from './figure';
import { textWidth, wrap } from './style';
import { ticksFor } from './ticks';

const ROW = 28;
const FOOT = 46;

const colours: Record<Word, string> = {
  improved: 'var(--good)', regressed: 'var(--warn)', no_change: 'var(--ink-soft)', within_noise: 'var(--ink-soft)', not_decided: 'var(--ink-soft)', not_compared: 'var(--ink-soft)',
};
const say = (word: Word) => word.replaceAll('_', ' ');
const percent = (ratio: number) => `${ratio < 1 ? '' : '+'}${fixed(100 * (ratio - 1), 1)} %`;

type Compared = Pair & { ratio: number };
const compared = ({ rows }: Comparison): Compared[] =>
  rows.filter((row): row is Compared => row.ratio !== null && row.word !== 'not_compared').sort((a, b) => b.ratio - a.ratio);

/// The lines of each name, and how high its row is.
function linesOf(rows: readonly Compared[], width: number): { texts: string[][]; tall: number[]; bottom: number } {
  const texts = rows.map(({ name }) => wrap(name, Math.min(width * 0.34, 260)));
  const tall = texts.map(({ length }) => Math.max(ROW, length * 14 + 10));
  return { texts, tall, bottom: tall.reduce((a, b) => a + b, 4) };
}

function draw(comparison: Comparison, width: number): Drawing {
  const rows = compared(comparison);
  const { texts, tall, bottom } = linesOf(rows, width);
  const left = Math.max(0, ...texts.flat().map((text) => textWidth(text))) + 16;
  const ends = rows.map(({ ratio, word }) => (width < 520 ? percent(ratio) : `${percent(ratio)}  ${say(word)}`));
  const right = width - Math.max(0, ...ends.map((text) => textWidth(text, true))) - 16;
  const height = bottom + FOOT;
  const axis = { label: comparison.name_of_ratio, unit: '', log: true };
  const ticks = ticksFor([1, ...rows.flatMap(({ ratio, low, high }) => [ratio, low ?? ratio, high ?? ratio])], axis, right - left, { gap: 56, measured: false });
  const [least, most] = ticks.domain;
  const x = (ratio: number) => left + (Math.log(ratio / least) / Math.log(most / least)) * (right - left);
  const image = svg('svg', { class: 'drawing', viewBox: `0 0 ${width} ${height}`, width, height });
  image.append(...ticks.values.flatMap((tick) => [
    svg('path', { class: 'grid', d: `M${x(tick)},0V${bottom}` }), svg('text', { 'x': x(tick), 'y': bottom + 14, 'text-anchor': 'middle' }, String(tick))]),
    svg('path', { class: 'level', d: `M${x(1)},0V${bottom}` }),
    svg('text', { 'x': (left + right) / 2, 'y': height - 6, 'text-anchor': 'middle', 'class': 'axis' }, comparison.name_of_ratio));
  let y = 4;
  const spots = rows.map((row, i): Spot => {
    const middle = y + tall[i]! / 2;
    const box = { left: 0, right: width, top: y, bottom: y + tall[i]! };
    y = box.bottom;
    const colour = colours[row.word];
    image.append(...texts[i]!.map((line, j) => svg('text', { 'x': left - 12, 'y': middle + (j - (texts[i]!.length - 1) / 2) * 14, 'dy': '0.32em', 'text-anchor': 'end' }, line)));
    if (row.low !== null && row.high !== null) image.append(svg('path', { 'd': `M${x(row.low)},${middle - 4}v8m0,-4H${x(row.high)}m0,-4v8`, 'stroke': colour, 'stroke-width': 1.6, 'fill': 'none' }));
    image.append(svg('circle', { 'cx': x(row.ratio), 'cy': middle, 'r': 4, 'fill': row.mark ? 'var(--card)' : colour, 'stroke': colour, 'stroke-width': 1.6 }), svg('text', { 'x': right + 10, 'y': middle, 'dy': '0.32em', 'class': 'strong' }, ends[i]!));
    const interval: Spot['rows'] = row.low !== null && row.high !== null ? [['interval', `${percent(row.low)} to ${percent(row.high)}`]] : [];
    return {
      key: String(i), x: x(row.ratio), y: middle, lane: i, box, title: row.name, record: '',
      rows: [[comparison.name_of_ratio, percent(row.ratio)], ...interval, ['A', row.before], ['B', row.after], ['word', say(row.word)], ...(row.mark ? [['careful', row.mark] as [string, string]] : [])],
    };
  });
  return { image, spots, keys: [{ sign: 'whisker', text: 'interval' }, ...(rows.some(({ mark }) => mark !== '') ? [{ sign: 'hollow', text: 'maybe disturbed' } as const] : [])] };
}

function table({ id, finding, name_of_ratio, rows }: Comparison): Table {
  const words = (text: string) => ({ text, value: null, low: null, high: null, mark: '', note: '' });
  const column = (key: string, label: string, format: 'text' | 'fixed3') => ({ key, label, unit: '', format, group: '' });
  return {
    type: 'table', id: `${id}-figures`, title: finding, definition: '', footnotes: [],
    columns: [column('name', 'pair', 'text'), column('ratio', name_of_ratio, 'fixed3'), column('before', 'A', 'text'), column('after', 'B', 'text'), column('word', 'word', 'text')],
    rows: rows.map((row) => [words(row.name), { ...words('-'), value: row.ratio, low: row.low, high: row.high }, words(row.before), words(row.after), words(row.why || say(row.word))]),
  };
}

/// Where nothing is compared there is no axis: the reasons stand in a list.
export function renderComparison(comparison: Comparison, context: Context): HTMLElement {
  if (compared(comparison).length === 0) {
    return h('figure', { class: 'card', id: comparison.id }, h('figcaption', {}, h('h3', {}, prose(comparison.finding))), renderRefused(comparison));
  }
  const { figure, canvas } = renderCard(comparison, 'comparison', {
    draw: (width) => draw(comparison, width), height: (width) => linesOf(compared(comparison), width).bottom + FOOT, table: () => table(comparison),
  }, context);
  if (comparison.rows.some(({ word }) => word === 'not_compared')) canvas.after(renderRefused(comparison));
  return figure;
}

/// Cells with one reason are named together.
function renderRefused({ rows }: Comparison): HTMLElement {
  const byReason = new Map<string, string[]>();
  for (const { name, word, why } of rows) if (word === 'not_compared') byReason.set(why, [...(byReason.get(why) ?? []), name]);
  return h('dl', { class: 'hints' }, ...[...byReason].flatMap(([why, names]) => [h('dt', {}, names.join('; ')), h('dd', {}, prose(why))]));
}
