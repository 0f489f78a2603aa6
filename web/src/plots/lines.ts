// Lines: one a series, with whiskers (few points) or a band (many) for intervals, a sign of its own (all points, or
// some of many), dashed grey ideals, hollow signs for special points, a ring on the best one, names at the right where
// there is room. Observable Plot gives scales, axes, grid and lines; texts and signs are placed here.

import * as Plot from '@observablehq/plot';
import { svg } from '../dom';
import { axisLabel, fixed, formatTick } from '../data/format';
import type { Mark, Point, Series, View } from '../data/report';
import { readable, type Look } from './colours';
import type { Drawing, Key, Spot } from './drawing';
import { Labels, type Dot } from './labels';
import { BEST, doubtOf, isBest, shapesOf, signOf, type Shape } from './marks';
import { dodgesOf, hasInterval, placed, type Placed } from './placed';
import { spread } from './spread';
import { dashesOf, taggedAs, textWidth, unlabel, IDEAL, LINE } from './style';
import { isPowerOfTwo, ticksFor, type Ticks } from './ticks';
import { sayInterval, sayX, sayY } from './words';

/// Above this number of points a band reads better than whiskers, and signs on all points hide the line: then some
/// of them have one, about so many.
export const FEW = 14;
const SIGNS = 6;

export interface Given {
  width: number;
  height: number;
  looks: readonly Look[];
  shown: readonly boolean[];  ///< a series that the reader switched off is not drawn, and its axis has no room for it
}

interface Frame { left: number; right: number; top: number; bottom: number }
interface Drawn { k: number; series: Series; points: Placed[]; look: Look; dodge: number }

const TOP = 32;
const BOTTOM = 46;

export function drawLines(view: View, given: Given): Drawing {
  const { width, height, looks, shown } = given;
  const own = view.series.flatMap((series, k) => (shown[k] ? [{ k, series, points: placed(series), look: looks[k]! }] : [])).filter(({ points }) => points.length > 0);
  const bands = view.marks.filter(({ axis }) => axis === 'y');
  const all = own.flatMap(({ points }) => points);

  const names = own.map(({ series }) => series.name);
  const widest = Math.max(0, ...names.map((name) => textWidth(name, true)));
  const labelled = width >= 520 && own.length > 1 && own.length <= 8 && widest < width * 0.34;
  const ys = [...all.flatMap(({ y, low, high }) => [y, low ?? y, high ?? y]), ...bands.flatMap(({ low, high }) => [low, high ?? low])];
  const xs = all.map(({ x }) => x);
  // Ratios over powers of two (speedup against workers) are read in powers of two as well.
  const binary = view.x.log && view.y.unit === '' && xs.every(isPowerOfTwo);
  const y = ticksFor(ys, view.y, height - TOP - BOTTOM, { gap: 40, measured: false, binary, least: 4 });
  const frame: Frame = {
    left: Math.max(28, ...y.values.map((value) => textWidth(formatTick(value, view.y.unit)))) + 12,
    right: width - (labelled ? widest + 26 : 18), top: TOP, bottom: height - BOTTOM,
  };
  const gap = Math.max(40, ...[Math.min(...xs), Math.max(...xs)].filter(Number.isFinite).map((value) => textWidth(formatTick(value, view.x.unit)) + 10));
  // Many workers are asked about at powers of two and halfway between them.
  const halfway = view.x.log && xs.length > FEW && xs.some((value) => !isPowerOfTwo(value)) && xs.every((value) => isPowerOfTwo(value) || isPowerOfTwo(value / 3));
  const x = ticksFor(xs, view.x, frame.right - frame.left, halfway ? { gap, measured: false, binary: true } : { gap, measured: true });
  const dodges = dodgesOf(own.map(({ series, points }) => ({ points, isSingle: series.dashed || points.length > FEW })),
    (value) => placeOn(x, value, frame.left, frame.right));
  const drawn: Drawn[] = own.map((one, i) => ({ ...one, dodge: dodges[i]! }));

  const image = plotOf(view, drawn, { x, y, width, height, frame }) as unknown as SVGSVGElement;
  const shapes = shapesOf(view.series);
  const at = placerOf(image);
  const paths = drawn.map(({ points, dodge }) => points.map((p): Dot => ({ x: at.x(p.x) + dodge, y: at.y(p.y) })));
  const whiskers = drawn.flatMap(({ series, points, dodge }) => (series.dashed || points.length > FEW ? [] : points.filter(hasInterval).map((p): Dot[] =>
    [{ x: at.x(p.x) + dodge, y: at.y(y.type === 'log' && p.low! <= 0 ? y.domain[0] : p.low!) }, { x: at.x(p.x) + dodge, y: at.y(p.high!) }])));
  const labels = new Labels({ ...frame, top: 14, right: frame.right + 14 }, [...paths, ...whiskers]);
  image.append(drawSigns(drawn, paths, shapes));
  const keys: Key[] = [...drawMarks(image, view.marks, at, frame, labels)];
  keys.push(...nameBest(image, view, drawn, paths, labels), ...nameSpecial(image, drawn, paths, shapes, labels));
  if (labelled) image.append(nameLines(drawn, paths, frame, labels));
  unlabel(image);

  const isShort = (list: Placed[]) => list.length <= FEW;
  const ranged = drawn.filter(({ series, points }) => !series.dashed && points.some(hasInterval));
  if (ranged.some(({ points }) => isShort(points))) keys.push({ sign: 'whisker', text: 'interval' });
  if (ranged.some(({ points }) => !isShort(points))) keys.push({ sign: 'band', text: 'interval' });
  if (y.type === 'linear' && y.domain[0] > 0) keys.push({ sign: 'none', text: `${view.y.label} from ${formatTick(y.values[0] ?? y.domain[0], view.y.unit)} on` });
  if (y.type === 'log') keys.push({ sign: 'none', text: `${view.y.label}: log scale` });
  return { image, spots: spotsOf(view, drawn, paths), keys };
}

const placeOn = ({ type, domain: [from, to] }: Ticks, value: number, start: number, end: number) =>
  start + (end - start) * (type === 'log' ? Math.log(value / from) / Math.log(to / from) : (value - from) / (to - from));

interface Scaled { scale(name: 'x' | 'y'): { apply(value: number): number } }
function placerOf(image: SVGSVGElement) {
  const scaled = image as unknown as Scaled;
  const x = scaled.scale('x');
  const y = scaled.scale('y');
  return { x: (value: number) => x.apply(value), y: (value: number) => y.apply(value) };
}
type Placer = ReturnType<typeof placerOf>;

function plotOf(view: View, drawn: readonly Drawn[], { x, y, width, height, frame }: { x: Ticks; y: Ticks; width: number; height: number; frame: Frame }) {
  return Plot.plot({
    width, height, marginTop: frame.top, marginRight: width - frame.right, marginBottom: BOTTOM, marginLeft: frame.left,
    className: 'drawing',
    x: { type: x.type, domain: x.domain, ...(x.type === 'log' && { base: x.base }) },
    y: { type: y.type, domain: y.domain, ...(y.type === 'log' && { base: y.base }) },
    marks: [
      // Not tickFormat: on log axes the library would leave out every text that it finds too much.
      Plot.gridY(y.values, { stroke: 'var(--rule)', strokeOpacity: 1 }),
      Plot.axisY(y.values, {
        label: axisLabel(view.y), labelArrow: 'none', labelAnchor: 'top', tickSize: 0, text: (value: number) => formatTick(value, view.y.unit),
      }),
      Plot.axisX(x.values, {
        label: axisLabel(view.x), labelArrow: 'none', labelAnchor: 'center', labelOffset: 40, tickSize: 5, text: (value: number) => formatTick(value, view.x.unit),
      }),
      ...drawn.flatMap((one) => line(one, y.type === 'log')),
    ],
  });
}

const isOver = ({ mark }: Point) => mark === 'oversubscribed';

function line({ k, series: { dashed, points: given }, points, look: { colour, round }, dodge }: Drawn, logY: boolean): Plot.Markish[] {
  const common = { render: taggedAs(k), dx: dodge };
  const ranged = points.filter(hasInterval).filter(({ low }) => !logY || low! > 0);
  // With the missing ones, at which the line breaks; so it does before points with more threads than cores, for it
  // does not go on to them.
  const stations = given.filter(({ x }) => x !== null).sort((a, b) => a.x! - b.x!)
    .flatMap((p, i, all) => (i > 0 && isOver(p) && !isOver(all[i - 1]!) ? [{ ...p, y: null }, p] : [p]));
  const path = points.length === 1 && dashed
    ? Plot.ruleY(points, { y: 'y', stroke: colour, strokeWidth: 1.5, strokeDasharray: IDEAL, render: taggedAs(k) })
    : Plot.lineY(stations, {
        x: 'x', y: (p: Point) => p.y ?? NaN, stroke: colour, strokeWidth: dashed ? 1.6 : 2.2, strokeLinejoin: 'round',
        strokeDasharray: dashed ? IDEAL : dashesOf(round), strokeLinecap: round > 0 ? 'round' : undefined, ...common,
      });
  if (dashed) return [path];
  return [
    points.length <= FEW
      ? Plot.ruleX(ranged, { x: 'x', y1: 'low', y2: 'high', stroke: colour, strokeWidth: 1.6, strokeOpacity: 0.8, marker: 'tick', ...common })
      : Plot.areaY(ranged, { x: 'x', y1: 'low', y2: 'high', fill: colour, fillOpacity: 0.17, ...common }),
    path,
  ];
}

/// Of many points some have the sign, at other places on each line, and the last; so has one alone between two gaps.
function drawSigns(drawn: readonly Drawn[], paths: readonly Dot[][], shapes: Map<string, Shape>): SVGGElement {
  const areSeveral = drawn.filter(({ series }) => !series.dashed).length > 1;
  return svg('g', { class: 'signs' }, ...drawn.flatMap(({ k, series, points, look }, i) => {
    if (series.dashed) return [];
    const step = Math.ceil(points.length / SIGNS);
    const stations = series.points.filter(({ x }) => x !== null).sort((a, b) => a.x! - b.x!);
    const isAlone = (p: Placed) => {
      const at = stations.indexOf(p);
      return (stations[at - 1]?.y ?? null) === null && (stations[at + 1]?.y ?? null) === null;
    };
    const isSampled = (at: number) => areSeveral && ((at + k * Math.ceil(step / 3)) % step === 0 || at === points.length - 1);
    return points.flatMap((p, at) => {
      const shape = shapes.get(doubtOf(p.mark));
      if (!(shape || p.mark !== '' || points.length <= FEW || isAlone(p) || isSampled(at))) return [];
      const { x, y } = paths[i]![at]!;
      return [signOf(look.slot + 3 * look.round, look.colour, shape, { 'transform': `translate(${x},${y})`, 'data-series': k })];
    });
  }));
}

/// Bands, levels and the region that says nothing; the keys of those whose name found no place.
function drawMarks(image: SVGSVGElement, marks: readonly Mark[], at: Placer, frame: Frame, labels: Labels): Key[] {
  const keys: Key[] = [];
  const under: Element[] = [];
  const pattern = `hatch-${Math.random().toString(36).slice(2)}`;  // ids are of the whole page
  for (const { axis, low, high, label } of marks) {
    if (axis === 'x') {
      const from = Math.max(frame.left, at.x(low));
      if (!(from < frame.right - 4)) continue;
      under.push(svg('rect', { 'class': 'hatch', 'x': from, 'y': frame.top, 'width': frame.right - from, 'height': frame.bottom - frame.top, 'fill': `url(#${pattern})` }));
      const middle = (from + frame.right) / 2;
      const text = label && labels.place(label, [frame.bottom - 12, frame.top + 12, (frame.top + frame.bottom) / 2].map((y) => ({ x: middle, y, anchor: 'middle' })));
      if (text) image.append(text);
      else if (label) keys.push({ sign: 'hatch', text: label });
      continue;
    }
    const top = at.y(high ?? low);
    const bottom = at.y(low);
    under.push(high === null
      ? svg('path', { 'class': 'level', 'd': `M${frame.left},${top}H${frame.right}` })
      : svg('rect', { 'class': 'tie', 'x': frame.left, 'y': top, 'width': frame.right - frame.left, 'height': Math.max(3, bottom - top) }));
    const rows = [top - LINE / 2 - 1, bottom + LINE / 2 + 2];
    const text = label && labels.place(label, rows.flatMap((y) => [
      { x: frame.right - 4, y, anchor: 'end' } as const, { x: frame.left + 6, y, anchor: 'start' } as const]), { class: 'soft' });
    if (text) image.append(text);
    else if (label) keys.push({ sign: high === null ? 'none' : 'band', text: label, colour: 'var(--best)' });
  }
  if (under.length > 0) image.prepend(svg('defs', {}, hatch(pattern)), ...under);
  return keys;
}

const hatch = (id: string) => svg('pattern', { id, width: 7, height: 7, patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(45)' },
  svg('rect', { width: 7, height: 7, fill: 'var(--tint)' }), svg('path', { 'd': 'M0,0V7', 'stroke': 'var(--rule-strong)', 'stroke-width': 1.5, 'stroke-opacity': 0.6 }));

const around = ({ x, y }: Dot, dx: number, dy: number) => ([
  { x: x + dx, y: y - dy, anchor: 'start' }, { x, y: y - dy - 4, anchor: 'middle' }, { x: x - dx, y: y - dy, anchor: 'end' },
  { x: x + dx, y: y + dy, anchor: 'start' }, { x: x - dx, y: y + dy, anchor: 'end' }, { x, y: y + dy + 4, anchor: 'middle' },
  { x: x + dx + 4, y, anchor: 'start' }, { x: x - dx - 4, y, anchor: 'end' },
] as const);

function nameBest(image: SVGSVGElement, view: View, drawn: readonly Drawn[], paths: readonly Dot[][], labels: Labels): Key[] {
  const keys: Key[] = [];
  drawn.forEach(({ points, look: { colour } }, i) => points.forEach((p, j) => {
    if (!isBest(p.mark)) return;
    const dot = paths[i]![j]!;
    image.append(svg('circle', { 'class': 'ring', 'cx': dot.x, 'cy': dot.y, 'r': 9, 'stroke': colour }));
    // Farther off where lines and their intervals lie close together: the ring is easily found.
    const far = [-36, 40, -54, 58].map((dy) => ({ x: dot.x, y: dot.y + dy, anchor: 'middle' as const }));
    const text = labels.place(`${BEST}: ${sayY(p.y, view.y)}`, [...around(dot, 13, 15), ...far], { class: 'strong', fill: readable(colour) }, true);
    if (text) image.append(text);
    else keys.push({ sign: 'ring', text: BEST, colour });
  }));
  return keys;
}

/// A few special points are named where they are; the legend says what is hollow in any case.
function nameSpecial(image: SVGSVGElement, drawn: readonly Drawn[], paths: readonly Dot[][], shapes: Map<string, Shape>, labels: Labels): Key[] {
  const special = drawn.flatMap(({ points }, i) => points.flatMap((point, j) => { const mark = doubtOf(point.mark); return shapes.has(mark) ? [{ mark, dot: paths[i]![j]! }] : []; }));
  const seen = new Set(special.map(({ mark }) => mark));
  if (special.length <= 3) {
    for (const mark of seen) {
      const { dot } = special.find((one) => one.mark === mark)!;
      const text = labels.place(mark, around(dot, 10, 13), { class: 'soft' });
      if (text) image.append(text);
    }
  }
  return [...shapes].filter(([mark]) => seen.has(mark)).map(([text, sign]) => ({ sign, text }));
}

/// Names in the margin, each at the height where its line ends, moved apart; a thin line leads to one that ends before.
/// An ideal that ends before is named where it ends: a thin line would read as its going on.
function nameLines(all: readonly Drawn[], pathsOfAll: readonly Dot[][], frame: Frame, labels: Labels): SVGGElement {
  const endsBefore = (i: number) => all[i]!.series.dashed && frame.right - pathsOfAll[i]!.at(-1)!.x > 34;
  const drawn = all.filter((_, i) => !endsBefore(i));
  const paths = pathsOfAll.filter((_, i) => !endsBefore(i));
  const named = all.flatMap(({ k, series, look }, i) => (endsBefore(i) ? [labels.place(series.name, around(pathsOfAll[i]!.at(-1)!, 8, 12), { 'fill': readable(look.colour), 'data-series': String(k) })] : []));
  const ends = drawn.map((_, i) => paths[i]![paths[i]!.length - 1]!);
  const heights = spread(ends.map(({ y }) => y), LINE, frame.top + LINE / 2, frame.bottom - LINE / 2);
  const x = frame.right + 22;
  return svg('g', { 'class': 'ends', 'text-anchor': 'start' }, ...named.filter((text) => text !== null), ...drawn.flatMap(({ k, series, look }, i) => {
    const end = ends[i]!;
    const y = heights[i]!;
    const far = x - end.x > 34 || Math.abs(y - end.y) > 6;
    return [
      far ? svg('path', { 'class': 'lead', 'd': `M${end.x + 9},${end.y}L${x - 4},${y}`, 'stroke': look.colour, 'data-series': k }) : null,
      svg('text', { 'x': x, 'y': y, 'dy': '0.32em', 'fill': readable(look.colour), 'data-series': k }, series.name),
    ].filter((part) => part !== null);
  }));
}

function spotsOf(view: View, drawn: readonly Drawn[], paths: readonly Dot[][]): Spot[] {
  const best = view.series.flatMap(({ points }) => points).find(({ mark }) => isBest(mark))?.y ?? null;
  return drawn.flatMap(({ k, series, points }, i) => points.map((p, j): Spot => {
    const { x, y } = paths[i]![j]!;
    return {
      key: `${k}:${j}`, x, y, lane: i, title: series.name, record: p.record,
      // Only when it is shown: thousands of points would make five texts each.
      get rows() { return rowsOf(p, view, best); },
    };
  }));
}

function rowsOf(p: Placed, view: View, best: number | null): Spot['rows'] {
  const rows: Spot['rows'] = [[view.x.label, sayX(p.x, view.x)], [view.y.label, sayY(p.y, view.y)]];
  const interval = sayInterval(p, view.y);
  if (interval) rows.push(['interval', interval]);
  if (p.n > 0) rows.push(['n', String(p.n)]);
  if (best !== null && best !== p.y && p.record) {
    const gap = 100 * (p.y / best - 1);
    rows.push(['against the best', `${gap < 0 ? '' : '+'}${fixed(gap, Math.abs(gap) < 9.95 ? 1 : 0)} %`]);
  }
  if (doubtOf(p.mark)) rows.push(['careful', doubtOf(p.mark)]);
  if (p.record) rows.push(['record', p.record]);
  return rows;
}
