// A figure in which all points share one x: nothing goes along that axis, so each point has a row, and its figure with
// the interval lies on the axis below.

import { svg } from '../dom';
import { axisLabel, formatTick } from '../data/format';
import type { Point, View } from '../data/report';
import { PALETTE, readable, type Look } from './colours';
import type { Drawing, Spot } from './drawing';
import { doubtOf, isBest, shapesOf, signOf } from './marks';
import { textWidth, wrap } from './style';
import { ticksFor } from './ticks';
import { sayInterval, sayX, sayY } from './words';

const ROW = 26;
const TOP = 6;
const FOOT = 48;

type Placed = Point & { x: number; y: number };
const isPlaced = (p: Point): p is Placed => p.x !== null && p.y !== null;

/// Whether all measured points of a view stand at one x.
export function isOneColumn({ series }: View): boolean {
  const xs = new Set(series.flatMap(({ points }) => points.filter(isPlaced).map(({ x }) => x)));
  return xs.size === 1;
}

/// A record by its set-up: the repeat is no part of what a point is.
const setUp = (record: string) => record.replace(/-(r\d+|spare.*)$/, '').replaceAll('-', ' ');

interface Given { width: number; looks: readonly Look[]; shown: readonly boolean[] }

/// The points that are shown, a row each: the lines of its name, and how high it is.
function rowsOf(view: View, { width, shown }: Omit<Given, 'looks'>) {
  const rows = view.series.flatMap(({ name, points }, k) => (shown[k] ? points.filter(isPlaced).map((p) => ({ k, name, p, isOne: points.length === 1 })) : []));
  const names = rows.map(({ name, p, isOne }) => wrap(isOne || p.record === '' ? name : setUp(p.record), Math.min(width * 0.36, 260)));
  const tall = names.map(({ length }) => Math.max(ROW, length * 14 + 8));
  return { rows, names, tall, bottom: tall.reduce((a, b) => a + b, TOP) };
}
export const heightOfDots = (view: View, given: Omit<Given, 'looks'>): number => rowsOf(view, given).bottom + FOOT;

export function drawDots(view: View, given: Given): Drawing {
  const { width, looks } = given;
  const { rows, names, tall, bottom } = rowsOf(view, given);
  const left = Math.max(0, ...names.flat().map((text) => textWidth(text))) + 16;
  const ends = rows.map(({ p }) => sayY(p.y, view.y));
  const right = width - Math.max(0, ...ends.map((text) => textWidth(text, true))) - 20;
  const height = bottom + FOOT;
  const levels = view.marks.filter(({ axis }) => axis === 'y');
  // From zero: lengths are compared here, and no line asks for a closer look.
  const ticks = ticksFor([0, ...rows.flatMap(({ p }) => [p.y, p.low ?? p.y, p.high ?? p.y]), ...levels.map(({ low, high }) => high ?? low)], { ...view.y, log: false }, right - left, { gap: 56, measured: false });
  const [from, to] = ticks.domain;
  const x = (value: number) => left + ((value - from) / (to - from)) * (right - left);
  const image = svg('svg', { class: 'drawing', viewBox: `0 0 ${width} ${height}`, width, height });
  const shapes = shapesOf(view.series);
  const [one] = rows;
  image.append(...ticks.values.flatMap((tick) => [
    svg('path', { class: 'grid', d: `M${x(tick)},${TOP}V${bottom}` }), svg('text', { 'x': x(tick), 'y': bottom + 15, 'text-anchor': 'middle' }, formatTick(tick, view.y.unit))]),
    ...levels.map(({ low }) => svg('path', { class: 'level', d: `M${x(low)},${TOP}V${bottom}` })),
    svg('text', { 'x': (left + right) / 2, 'y': height - 8, 'text-anchor': 'middle', 'class': 'axis' }, `${axisLabel(view.y)}${one && view.x.label !== '' ? `, ${view.x.label} ${sayX(one.p.x, view.x)}` : ''}`));
  let y = TOP;
  const spots = rows.map(({ k, name, p }, i): Spot => {
    const look = rows.length > PALETTE ? looks[0]! : looks[k]!;
    const middle = y + tall[i]! / 2;
    const box = { left: 0, right: width, top: y, bottom: y + tall[i]! };
    y = box.bottom;
    image.append(...names[i]!.map((line, j) => svg('text', { 'x': left - 12, 'y': middle + (j - (names[i]!.length - 1) / 2) * 14, 'dy': '0.32em', 'text-anchor': 'end' }, line)));
    image.append(svg('path', { 'd': `M${x(Math.max(0, from))},${middle}H${x(p.y)}`, 'stroke': look.colour, 'stroke-width': 1.4, 'stroke-opacity': 0.35, 'data-series': k }));
    if (p.low !== null && p.high !== null) image.append(svg('path', { 'd': `M${x(p.low)},${middle - 4}v8m0,-4H${x(p.high)}m0,-4v8`, 'stroke': look.colour, 'stroke-width': 1.6, 'fill': 'none', 'data-series': k }));
    if (isBest(p.mark)) image.append(svg('circle', { 'class': 'ring', 'cx': x(p.y), 'cy': middle, 'r': 8, 'stroke': look.colour }));
    image.append(signOf(look.slot, look.colour, shapes.get(doubtOf(p.mark)), { 'transform': `translate(${x(p.y)},${middle})`, 'data-series': k }),
      svg('text', { 'x': right + 12, 'y': middle, 'dy': '0.32em', 'class': 'strong', 'fill': readable(look.colour) }, ends[i]!));
    const interval = sayInterval(p, view.y);
    return {
      key: `${k}:${i}`, x: x(p.y), y: middle, lane: i, box, title: name, record: p.record,
      rows: [[view.x.label, sayX(p.x, view.x)], [view.y.label, sayY(p.y, view.y)], ...(interval ? [['interval', interval] as [string, string]] : []),
        ...(p.n > 0 ? [['n', String(p.n)] as [string, string]] : []), ...(doubtOf(p.mark) ? [['careful', doubtOf(p.mark)] as [string, string]] : []), ...(p.record ? [['record', p.record] as [string, string]] : [])],
    };
  });
  const keys: Drawing['keys'] = rows.some(({ p }) => p.low !== null) ? [{ sign: 'whisker', text: 'interval' }] : [];
  for (const { low, label } of levels) keys.push({ sign: 'none', text: `${label}: ${sayY(low, view.y)}` });
  return { image, spots, keys };
}
