// How one time becomes another: a bar for each change, which begins where the one above ended, from zero, so that a
// change is as long as it is beside the step. Above it, where there are several numbers of workers, what each loses
// (loss-bars.ts).

import { h, prose, svg } from '../dom';
import { formatTime, formatValue, timeUnit, type TimeUnit } from '../data/format';
import type { Table, Waterfall } from '../data/report';
import { renderCard } from './card';
import type { Drawing, Spot } from './drawing';
import type { Context } from './figure';
import { drawLosses, heightOfLosses, keysOfLosses, lossTable } from './loss-bars';
import { textWidth, wrap } from './style';
import { roundValues } from './ticks';

const ROW = 32;
const FOOT = 46;
const heightOf = (waterfall: Waterfall, width: number) => heightOfLosses(waterfall, width) + (waterfall.changes.length + 2) * ROW + FOOT;

interface Row { name: string; from: number; to: number; text: string; isWhole: boolean; colour: string; said: [string, string][] }

const signed = (seconds: number, { factor }: TimeUnit) => `${seconds < 0 ? '-' : '+'}${formatValue(Math.abs(seconds) * factor, 'rate')}`;

function rowsOf({ from, to, changes }: Waterfall, unit: TimeUnit, colours: Context['colours']): Row[] {
  let run = from.seconds;
  const whole = ({ name, seconds }: Waterfall['from']): Row =>
    ({ name, from: seconds, to: seconds, text: formatTime(seconds, unit), isWhole: true, colour: 'var(--ink)', said: [] });
  const between = changes.map(({ name, seconds, hint, low, high, noise }): Row => {
    const begin = run;
    run += seconds;
    const said: Row['said'] = [];
    if (low !== null && high !== null) said.push(['95 %', `${signed(low, unit)} to ${signed(high, unit)} ${unit.unit}${noise ? ', within noise' : ''}`]);
    if (hint !== '') said.push(['hint', hint]);
    return { name, from: begin, to: run, text: signed(seconds, unit), isWhole: false, colour: noise ? 'var(--other)' : colours.change(name, seconds), said };
  });
  return [whole(from), ...between, whole(to)];
}

function draw(waterfall: Waterfall, width: number, colours: Context['colours']): Drawing {
  const unit = timeUnit(Math.max(waterfall.from.seconds, waterfall.to.seconds));
  const rows = rowsOf(waterfall, unit, colours);
  const texts = rows.map(({ name }) => wrap(name, Math.min(width * 0.36, 190)));
  const left = Math.max(...texts.flat().map((text) => textWidth(text, true))) + 14;
  const right = width - Math.max(...rows.map(({ text }) => textWidth(text, true))) - 14;
  const values = rows.flatMap(({ from, to }) => [from, to]);
  const least = Math.min(0, ...values);
  const most = Math.max(...values) || 1;
  const x = (seconds: number) => left + ((seconds - least) / (most - least)) * (right - left);
  const height = heightOf(waterfall, width);
  const above = heightOfLosses(waterfall, width);
  const first = above + 4;
  const bottom = rows.length * ROW + first;

  const ticks = roundValues(least * unit.factor, most * unit.factor, Math.max(3, Math.floor((right - left) / 80)));
  const image = svg('svg', { class: 'drawing', viewBox: `0 0 ${width} ${height}`, width, height });
  image.append(...ticks.flatMap((tick) => [
    svg('path', { class: 'grid', d: `M${x(tick / unit.factor)},${above}V${bottom}` }),
    svg('text', { 'x': x(tick / unit.factor), 'y': bottom + 14, 'text-anchor': 'middle' }, formatValue(tick, 'rate')),
  ]), svg('text', { 'x': (left + right) / 2, 'y': height - 6, 'text-anchor': 'middle', 'class': 'axis' }, `time [${unit.unit}]`));

  const spots = rows.map((row, i): Spot => {
    const top = i * ROW + first;
    const from = Math.min(x(row.from), x(row.to));
    const to = Math.max(x(row.from), x(row.to));
    const lines = texts[i]!;
    image.append(...lines.map((line, j) => svg('text', {
      'x': left - 10, 'y': top + ROW / 2 - 3 + (j - (lines.length - 1) / 2) * 14, 'dy': '0.32em', 'text-anchor': 'end', 'class': row.isWhole ? 'strong' : null,
    }, line)));
    image.append(row.isWhole
      ? svg('rect', { class: 'total', x: left, y: top + 2, width: Math.max(2, to - left), height: ROW - 10, fill: 'var(--tint)' })
      : svg('rect', { 'class': 'change', 'x': from, 'y': top + 4, 'width': Math.max(2, to - from), 'height': ROW - 14, 'rx': 1.5, 'fill': row.colour }));
    if (row.isWhole) image.append(svg('path', { 'd': `M${to},${top + 1}v${ROW - 8}`, 'stroke': row.colour, 'stroke-width': 3 }));
    if (i < rows.length - 1) image.append(svg('path', { class: 'step', d: `M${x(row.to)},${top + ROW - 8}v${ROW - 18}` }));
    image.append(svg('text', { 'x': to + 7, 'y': top + ROW / 2 - 3, 'dy': '0.32em', 'class': 'strong' }, row.text));
    const ratio = waterfall.from.seconds > 0 && !row.isWhole ? ` (${signed(((row.to - row.from) / waterfall.from.seconds) * 100, { unit: '', factor: 1 })} %)` : '';
    return {
      key: String(i), x: to, y: top + ROW / 2 - 3, lane: waterfall.bars.length + i, box: { left: 0, right: width, top, bottom: top + ROW - 6 }, title: row.name, record: '',
      rows: [[row.isWhole ? 'time' : 'change', (row.isWhole ? row.text : `${row.text} ${unit.unit}`) + ratio], ...row.said],
    };
  });
  const losses = drawLosses(waterfall, image, width, colours);
  return { image, spots: [...losses, ...spots], keys: keysOfLosses(waterfall, colours) };
}

function table(waterfall: Waterfall): Table {
  const { id, finding, from, to, changes } = waterfall;
  if (waterfall.bars.length > 0) return lossTable(waterfall);
  const cell = (value: number | null, text = '') => ({ text, value, low: null, high: null, mark: '', note: '' });
  const rows = [from, ...changes, to];
  return {
    type: 'table', id: `${id}-figures`, title: finding, definition: '', footnotes: [],
    columns: [{ key: 'change', label: 'change', unit: '', format: 'text', group: '' }, { key: 'time', label: 'time', unit: 's', format: 'milliseconds', group: '' }],
    rows: rows.map(({ name, seconds }) => [cell(null, name), cell(seconds)]),
  };
}

export function renderWaterfall(waterfall: Waterfall, context: Context): HTMLElement {
  const { figure, canvas } = renderCard(waterfall, 'waterfall', {
    draw: (width) => draw(waterfall, width, context.colours), height: (width) => heightOf(waterfall, width), keys: () => keysOfLosses(waterfall, context.colours), table: () => table(waterfall),
  }, context);
  const hints = waterfall.changes.filter(({ hint }) => hint !== '');
  if (hints.length > 0) canvas.after(h('dl', { class: 'hints' }, ...hints.flatMap(({ name, hint }) => [h('dt', {}, name), h('dd', {}, prose(hint))])));
  return figure;
}
