// Lines: one a series, with whiskers (few points) or a band (many) for intervals, dashed grey ideals, hollow shapes
// for marked points, and names at the line ends where there is room.

import * as Plot from '@observablehq/plot';
import type { Colours } from './colours';
import { svg } from './dom';
import { axisLabel, formatFigure, formatTick, unitAfter } from './format';
import type { LegendEntry } from './legend';
import { outline, shapesOf, type Shape } from './marks';
import type { Drawing } from './drawing';
import type { Plot as PlotBlock, Point, Series } from './schema';
import { spread } from './spread';
import { taggedAs, textWidth, tipStyle, LINE } from './style';
import { isPowerOfTwo, ticksFor } from './ticks';

interface Placed extends Point { x: number; y: number }

/// Above this number of points a band reads better than whiskers, and dots hide the line.
const FEW = 14;

const placed = ({ points }: Series): Placed[] =>
  points.filter((p): p is Placed => p.x !== null && p.y !== null).sort((a, b) => a.x - b.x);
const hasInterval = ({ low, high }: Point) => low !== null && high !== null && high > low;

export function drawLines(plot: PlotBlock, width: number, colours: Colours): Drawing {
  const colour = colours.lines(plot.series);
  const points = plot.series.map(placed);
  const all = points.flat();
  const shapes = shapesOf(plot.series);

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

  const lines = plot.series.flatMap((series, k) => line(series, points[k]!, colour[k]!, k, y.type === 'log'));
  const marked: Plot.Markish = (_, { x, y }) => svg('g', { 'aria-label': 'marked points' },
    ...points.flatMap((list, k) => list.filter(({ mark }) => mark !== '').map((p) =>
      outline(shapes.get(p.mark)!, {
        'stroke': colour[k]!, 'data-series': k,
        'transform': `translate(${x!(p.x)},${y!(p.y)})`,
      }))));
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
    return svg('g', { 'class': 'ends', 'text-anchor': 'start' }, ...last.map((end) => {
      const beside = last.filter((other) => Math.abs(other.x - end.x) < textWidth(names[(other.x < end.x ? other : end).k]!));
      const heights = spread(beside.map((other) => other.y), LINE, marginTop, height - marginBottom);
      const place = end.x === edge || beside.length > 1
        ? { x: end.x + 9, y: heights[beside.indexOf(end)]! }
        : { x: end.x + 7, y: end.y + (isCrowdedAbove(end) ? 13 : -11) };
      return svg('text', { ...place, 'dy': '0.32em', 'fill': colour[end.k]!, 'data-series': end.k }, names[end.k]!);
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
  return { image, legend: legend(plot, points, colour, shapes, labelled, y) };
}

function line({ dashed }: Series, points: Placed[], colour: string, k: number, logY: boolean): Plot.Markish[] {
  const render = taggedAs(k);
  const ranged = points.filter(hasInterval).filter(({ low }) => !logY || low! > 0);
  const few = points.length <= FEW;
  const path = points.length === 1 && dashed
    ? Plot.ruleY(points, { y: 'y', stroke: colour, strokeWidth: 1.5, strokeDasharray: '5 4', render })
    : Plot.lineY(points, {
        x: 'x', y: 'y', stroke: colour, strokeWidth: dashed ? 1.5 : 2.2, strokeLinejoin: 'round',
        strokeDasharray: dashed ? '5 4' : undefined, render,
      });
  if (dashed) return [path];
  return [
    few
      ? Plot.ruleX(ranged, { x: 'x', y1: 'low', y2: 'high', stroke: colour, strokeWidth: 1.6, strokeOpacity: 0.75, marker: 'tick', render })
      : Plot.areaY(ranged, { x: 'x', y1: 'low', y2: 'high', fill: colour, fillOpacity: 0.17, render }),
    path,
    Plot.dot(points.filter(({ mark }) => mark === '' && (few || points.length === 1)), {
      x: 'x', y: 'y', r: 3.4, fill: colour, stroke: 'var(--paper)', strokeWidth: 1, render,
    }),
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
  plot: PlotBlock, points: Placed[][], colour: string[], shapes: Map<string, Shape>, labelled: boolean,
  y: { type: string; domain: [number, number] },
): LegendEntry[] {
  const entries: LegendEntry[] = [];
  if (!labelled) {
    plot.series.forEach(({ name, dashed }, k) => entries.push({ sign: dashed ? 'dashed' : 'line', colour: colour[k]!, text: name, series: k }));
  }
  for (const [mark, shape] of shapes) entries.push({ sign: shape, text: mark });
  const ranged = points.filter((list, k) => !plot.series[k]!.dashed && list.some(hasInterval));
  if (ranged.some((list) => list.length <= FEW)) entries.push({ sign: 'whisker', text: 'interval' });
  if (ranged.some((list) => list.length > FEW)) entries.push({ sign: 'band', text: 'interval' });
  if (y.type === 'linear' && y.domain[0] > 0) entries.push({ sign: 'none', text: 'The vertical axis does not begin at 0.' });
  return entries;
}
