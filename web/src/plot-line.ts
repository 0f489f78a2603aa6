// Lines: one a series, with whiskers (few points) or a band (many) for intervals, a sign of its own (all points, or
// some of many), dashed grey ideals, hollow shapes for marked points, and names at the line ends where there is room.

import * as Plot from '@observablehq/plot';
import { readable, type Colours, type Look } from './colours';
import { svg } from './dom';
import { axisLabel, formatFigure, formatTick, unitAfter } from './format';
import type { LegendEntry } from './legend';
import { outline, shapesOf, signOf, type Shape } from './marks';
import type { Drawing } from './drawing';
import type { Plot as PlotBlock, Point, Series } from './schema';
import { spread } from './spread';
import { dashesOf, taggedAs, textWidth, tipStyle, IDEAL, LINE } from './style';
import { isPowerOfTwo, ticksFor } from './ticks';

interface Placed extends Point { x: number; y: number }

/// Above this number of points a band reads better than whiskers, and signs on all points hide the line: then some
/// of them have one, about so many.
const FEW = 14;
const SIGNS = 6;

const placed = ({ points }: Series): Placed[] =>
  points.filter((p): p is Placed => p.x !== null && p.y !== null).sort((a, b) => a.x - b.x);
const hasInterval = ({ low, high }: Point) => low !== null && high !== null && high > low;

export function drawLines(plot: PlotBlock, width: number, colours: Colours): Drawing {
  const looks = colours.lines(plot.series);
  const colour = looks.map((look) => look.colour);
  const points = plot.series.map(placed);
  const all = points.flat();
  const shapes = shapesOf(plot.series);
  const areSeveral = plot.series.filter(({ dashed }) => !dashed).length > 1;

  const names = plot.series.map(({ name }) => name);
  const labelled = width >= 460 && names.length <= 8 && Math.max(...names.map(textWidth)) < width * 0.28;
  const height = Math.round(Math.min(400, Math.max(250, width * 0.58)));
  const marginRight = labelled ? Math.max(...names.map(textWidth)) + 18 : 16;
  const marginTop = 30;
  const marginBottom = 44;

  const ys = all.flatMap(({ y, low, high }) => [y, low ?? y, high ?? y]);
  const xs = all.map((p) => p.x);
  // Ratios over powers of two (speedup against workers) are read in powers of two as well.
  const binary = plot.x.log && plot.y.unit === '' && xs.every(isPowerOfTwo);
  const y = ticksFor(ys, plot.y, height - marginTop - marginBottom, { gap: 42, measured: false, binary });
  const marginLeft = Math.max(28, ...y.values.map((value) => textWidth(formatTick(value, plot.y.unit)))) + 12;
  const x = ticksFor(xs, plot.x, width - marginLeft - marginRight, { gap: 40, measured: true });

  const lines = plot.series.flatMap((series, k) => line(series, points[k]!, looks[k]!, k, y.type === 'log', areSeveral));
  const marked: Plot.Markish = (_, { x, y }) => svg('g', { 'aria-label': 'marked points' },
    ...points.flatMap((list, k) => list.filter(({ mark }) => mark !== '').map((p) =>
      outline(shapes.get(p.mark)!, {
        'stroke': colour[k]!, 'data-series': k,
        'transform': `translate(${x!(p.x)},${y!(p.y)})`,
      }))));
  const crowded = new Set<number>();  // series whose name found no place at the end of its line
  const ends: Plot.Markish = (_, { x, y }) => {
    const last = points.flatMap((list, k) => {
      const end = list[list.length - 1];
      return end ? [{ k, x: x!(end.x) as number, y: y!(end.y) as number }] : [];
    });
    // Names that stand side by side are moved apart: at the right edge, and where several lines end together
    // before it. One that ends early by itself stands on the side of its end that other lines leave free.
    const edge = Math.max(...last.map((end) => end.x));
    const isCrowdedAbove = (end: { k: number; x: number; y: number }) => points.some((list, k) => k !== end.k &&
      list.some((p) => x!(p.x) === end.x && (y!(p.y) as number) < end.y && (y!(p.y) as number) > end.y - 3 * LINE));
    const paths = points.map((list) => list.map((p): Spot => ({ x: x!(p.x) as number, y: y!(p.y) as number })));
    return svg('g', { 'class': 'ends', 'text-anchor': 'start' }, ...last.flatMap((end) => {
      const beside = last.filter((other) => Math.abs(other.x - end.x) < textWidth(names[(other.x < end.x ? other : end).k]!));
      const heights = spread(beside.map((other) => other.y), LINE, marginTop, height - marginBottom);
      const place = end.x === edge || beside.length > 1
        ? { x: end.x + 9, y: heights[beside.indexOf(end)]! }
        : { x: end.x + 7, y: end.y + (isCrowdedAbove(end) ? 13 : -11) };
      // A name that another line strikes through is not read: the legend has it.
      const box = { left: place.x, right: place.x + textWidth(names[end.k]!), top: place.y - 6, bottom: place.y + 6 };
      if (paths.some((path, k) => k !== end.k && crosses(path, box))) {
        crowded.add(end.k);
        return [];
      }
      return [svg('text', { ...place, 'dy': '0.32em', 'fill': readable(colour[end.k]!), 'data-series': end.k }, names[end.k]!)];
    }));
  };
  const tipped = points.flatMap((list, k) => list.map((p) => ({ ...p, title: describe(plot, names[k]!, p) })));

  const image = Plot.plot({
    width, height, marginTop, marginRight, marginBottom, marginLeft,
    className: 'drawing',
    x: { type: x.type, domain: x.domain, ...(x.type === 'log' && { base: x.base }) },
    y: { type: y.type, domain: y.domain, ...(y.type === 'log' && { base: y.base }) },
    marks: [
      // Not tickFormat: on log axes the library would leave out every text that it finds too much.
      Plot.gridY(y.values, { stroke: 'var(--rule)', strokeOpacity: 1 }),
      Plot.axisY(y.values, {
        label: axisLabel(plot.y), labelArrow: 'none', labelAnchor: 'top', tickSize: 0,
        text: (value: number) => formatTick(value, plot.y.unit),
      }),
      Plot.axisX(x.values, {
        label: axisLabel(plot.x), labelArrow: 'none', labelAnchor: 'center', labelOffset: 38, tickSize: 5,
        text: (value: number) => formatTick(value, plot.x.unit),
      }),
      ...lines,
      marked,
      ...(labelled ? [ends] : []),
      Plot.tip(tipped, Plot.pointer({ x: 'x', y: 'y', title: 'title', maxRadius: 36, ...tipStyle })),
    ],
  });
  const inLegend = plot.series.map((_, k) => !labelled || crowded.has(k));
  return { image, legend: legend(plot, points, looks, shapes, inLegend, y) };
}

interface Spot { x: number; y: number }
interface Box { left: number; right: number; top: number; bottom: number }

/// Whether a line goes through a box, looked at every two pixels.
function crosses(path: readonly Spot[], { left, right, top, bottom }: Box): boolean {
  return path.some((to, i) => {
    const from = path[i - 1] ?? to;
    const steps = Math.max(1, Math.ceil(Math.hypot(to.x - from.x, to.y - from.y) / 2));
    return Array.from({ length: steps + 1 }, (_, s) => s / steps).some((part) => {
      const x = from.x + part * (to.x - from.x);
      const y = from.y + part * (to.y - from.y);
      return x >= left && x <= right && y >= top && y <= bottom;
    });
  });
}

function line(
  { dashed, points: given }: Series, points: Placed[], { colour, slot, round }: Look, k: number, logY: boolean, areSeveral: boolean,
): Plot.Markish[] {
  const render = taggedAs(k);
  const ranged = points.filter(hasInterval).filter(({ low }) => !logY || low! > 0);
  const few = points.length <= FEW;
  // With the missing ones, at which the line breaks; a figure between two of them is a dot.
  const stations = given.filter(({ x }) => x !== null).sort((a, b) => a.x! - b.x!);
  const isAlone = (p: Point) => {
    const i = stations.indexOf(p);
    return (stations[i - 1]?.y ?? null) === null && (stations[i + 1]?.y ?? null) === null;
  };
  const path = points.length === 1 && dashed
    ? Plot.ruleY(points, { y: 'y', stroke: colour, strokeWidth: 1.5, strokeDasharray: IDEAL, render })
    : Plot.lineY(stations, {
        x: 'x', y: (p: Point) => p.y ?? NaN, stroke: colour, strokeWidth: dashed ? 1.5 : 2.2, strokeLinejoin: 'round',
        strokeDasharray: dashed ? IDEAL : dashesOf(round), strokeLinecap: round > 0 ? 'round' : undefined, render,
      });
  if (dashed) return [path];
  // Of many points some have the sign, at other places on each line, and the last; a line alone needs none.
  const step = Math.ceil(points.length / SIGNS);
  const isSampled = (i: number) => areSeveral && ((i + k * Math.ceil(step / 3)) % step === 0 || i === points.length - 1);
  const signed = points.filter((p, i) => p.mark === '' && (few || isAlone(p) || isSampled(i)));
  const signs: Plot.Markish = (_, { x, y }) => svg('g', { 'class': 'signs', 'data-series': k }, ...signed.map((p) =>
    signOf(slot, colour, { transform: `translate(${x!(p.x)},${y!(p.y)})` })));
  return [
    few
      ? Plot.ruleX(ranged, { x: 'x', y1: 'low', y2: 'high', stroke: colour, strokeWidth: 1.6, strokeOpacity: 0.75, marker: 'tick', render })
      : Plot.areaY(ranged, { x: 'x', y1: 'low', y2: 'high', fill: colour, fillOpacity: 0.17, render }),
    path,
    signs,
  ];
}

function describe({ x, y }: PlotBlock, name: string, p: Placed): string {
  const interval = hasInterval(p) ? ` (${formatFigure(p.low!, y.unit)} to ${formatFigure(p.high!, y.unit)})` : '';
  const lines = [name, `${x.label}: ${formatTick(p.x, x.unit)}${unitAfter(x.unit)}`,
    `${y.label}: ${formatFigure(p.y, y.unit)}${unitAfter(y.unit)}${interval}`];
  return [...lines, ...(p.mark ? [p.mark] : [])].join('\n');
}

/// What the drawing does not say by itself.
function legend(
  plot: PlotBlock, points: Placed[][], looks: Look[], shapes: Map<string, Shape>, inLegend: boolean[],
  y: { type: string; domain: [number, number] },
): LegendEntry[] {
  const entries: LegendEntry[] = [];
  plot.series.forEach(({ name, dashed }, k) => {
    const look = looks[k]!;
    if (inLegend[k]) entries.push(dashed ? { sign: 'dashed', colour: look.colour, text: name, series: k } : { sign: 'line', look, text: name, series: k });
  });
  for (const [mark, shape] of shapes) entries.push({ sign: shape, text: mark });
  const ranged = points.filter((list, k) => !plot.series[k]!.dashed && list.some(hasInterval));
  if (ranged.some((list) => list.length <= FEW)) entries.push({ sign: 'whisker', text: 'interval' });
  if (ranged.some((list) => list.length > FEW)) entries.push({ sign: 'band', text: 'interval' });
  if (y.type === 'linear' && y.domain[0] > 0) entries.push({ sign: 'none', text: 'The vertical axis does not begin at 0.' });
  return entries;
}
