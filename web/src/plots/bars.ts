// Stacked bars: one a category, one segment a series (a phase). Segments are shares of their bar, so that cells a
// hundred times apart can be compared; the bar's own size stands as a figure at its end, and each segment's in its tip. Upright while the names of the categories fit side by side, lying otherwise.

import * as Plot from '@observablehq/plot';
import { svg } from '../dom';
import { axisLabel, fixed, formatFigure, formatTime } from '../data/format';
import type { Plot as PlotBlock } from '../data/report';
import type { Colours } from './colours';
import type { Drawing, Key, Spot } from './drawing';
import { taggedAs, textWidth, unlabel, wrap } from './style';
import { roundValues } from './ticks';

interface Segment { category: number; from: number; to: number; series: number }
interface Bar { category: number; end: number; total: string; rows: Spot['rows'] }

/// With the unit; seconds in the one that reads best.
const amount = (value: number, unit: string) => (unit === 's' ? formatTime(value) : formatFigure(value, unit));
const percent = (share: number) => `${Math.round(100 * share)} %`;

function barsOf(plot: PlotBlock): { segments: Segment[]; bars: Bar[] } {
  const segments: Segment[] = [];
  const bars = plot.categories.map((_, category) => {
    const total = plot.series.reduce((sum, { points }) => sum + (points[category]?.y ?? 0), 0);
    let end = 0;
    for (const [series, { points }] of plot.series.entries()) {
      const share = total > 0 ? (points[category]?.y ?? 0) / total : 0;
      if (share !== 0) segments.push({ category, from: end, to: end + share, series });
      end += share;
    }
    const parts = plot.series.flatMap(({ name: phase, points }): Spot['rows'] => {
      const value = points[category]?.y ?? null;
      if (value === null) return [];
      return [[phase, amount(value, plot.y.unit) + (total > 0 ? ` (${fixed((100 * value) / total, 1)} %)` : '')]];
    });
    const marks = [...new Set(plot.series.map(({ points }) => points[category]?.mark ?? '').filter((mark) => mark !== ''))];
    const all = amount(total, plot.y.unit);
    return { category, end, total: `${all}${marks.length > 0 ? ' *' : ''}`, rows: [...parts, ['all', all] as [string, string], ...marks.map((mark): [string, string] => ['careful', mark])] };
  });
  return { segments, bars };
}

interface Layout { lying: boolean; lines: string[][]; height: number }

/// Upright while the names of the categories fit side by side. A name too long for its room takes several lines: cut
/// off, two cells that differ in their last word look the same.
function layoutOf({ categories: labels }: PlotBlock, width: number): Layout {
  const widest = Math.max(0, ...labels.map((name) => textWidth(name)));
  const lying = labels.length * (widest + 14) > width - 60;
  const lines = labels.map((name) => (lying ? wrap(name, width * 0.38) : [name]));
  const row = Math.max(labels.length > 14 ? 22 : 28, 14 * Math.max(...lines.map(({ length }) => length)) + 9);
  return { lying, lines, height: lying ? labels.length * row + 62 : Math.round(Math.min(380, Math.max(260, width * 0.55))) };
}
export const keysOfBars = ({ series }: PlotBlock, colours: Colours): Key[] => series.map(({ name }) => ({ sign: 'box', colour: colours.phase(name), text: name }));
export const heightOfBars = (plot: PlotBlock, width: number): number => layoutOf(plot, width).height;

export function drawBars(plot: PlotBlock, width: number, colours: Colours): Drawing {
  const { segments, bars } = barsOf(plot);
  const colour = plot.series.map(({ name }) => colours.phase(name));
  const labels = plot.categories;
  const { lying, lines, height } = layoutOf(plot, width);
  const room = lying ? Math.max(0, ...lines.flat().map((text) => textWidth(text))) : 0;
  const ticks = roundValues(0, 1, lying ? Math.max(2, Math.floor((width - room) / 90)) : 6);
  const marginLeft = lying ? room + 12 : textWidth(percent(1)) + 12;
  const marginRight = lying ? Math.max(...bars.map(({ total }) => textWidth(total))) + 26 : 12;

  // The two directions differ only in which axis is which.
  const value = { label: `share of the ${plot.y.label}`, labelArrow: 'none', tickSize: 0, text: percent } as const;
  const band = { tickSize: 0, text: (i: number) => lines[i]?.join('\n') ?? '' } as const;
  const paint = (segment: Segment) => colour[segment.series]!;
  const style = { fill: paint, stroke: 'var(--paper)', strokeWidth: 0.6 };
  const layers = plot.series.map((_, k) => {
    const own = segments.filter(({ series }) => series === k);
    const options = { ...style, render: taggedAs(k) };
    return lying
      ? Plot.barX(own, { y: 'category', x1: 'from', x2: 'to', ...options })
      : Plot.barY(own, { x: 'category', y1: 'from', y2: 'to', ...options });
  });
  const totals: Plot.Markish = (_, { x, y }) => svg('g', { class: 'totals' }, ...bars.map((bar) => {
    const middle = (scale: { bandwidth?: () => number }) => (scale.bandwidth?.() ?? 0) / 2;
    const at = lying
      ? { x: (x!(bar.end) as number) + 6, y: (y!(bar.category) as number) + middle(y as never) }
      : { x: (x!(bar.category) as number) + middle(x as never), y: (y!(bar.end) as number) - 10 };
    return svg('text', { ...at, 'dy': '0.32em', 'text-anchor': lying ? 'start' : 'middle' }, bar.total);
  }));
  const domain = labels.map((_, i) => i);

  const image = Plot.plot({
    width, height, marginLeft, marginRight, marginTop: lying ? 10 : 46, marginBottom: lying ? 46 : 44,
    className: 'drawing',
    ...(lying
      ? { x: { domain: [0, 1] }, y: { type: 'band', domain, padding: 0.22 } }
      : { y: { domain: [0, 1] }, x: { type: 'band', domain, padding: labels.length <= 3 ? 0.5 : 0.28 } }),
    marks: lying
      ? [
          Plot.gridX(ticks, { stroke: 'var(--rule)', strokeOpacity: 1 }),
          Plot.axisX(ticks, { ...value, labelAnchor: 'center', labelOffset: 40 }),
          Plot.axisY(domain, { ...band, label: null }),
          ...layers, totals,
        ]
      : [
          Plot.gridY(ticks, { stroke: 'var(--rule)', strokeOpacity: 1 }),
          Plot.axisY(ticks, { ...value, labelAnchor: 'top' }),
          Plot.axisX(domain, { ...band, label: axisLabel(plot.x), labelArrow: 'none', labelAnchor: 'center', labelOffset: 38 }),
          ...layers, totals,
        ],
  });
  unlabel(image as unknown as Element);
  const x = image.scale('x')!;
  const y = image.scale('y')!;
  const spots = bars.map((bar, lane): Spot => {
    const from = (lying ? y : x).apply(bar.category) as number;
    const size = (lying ? y : x).bandwidth ?? 0;
    const ends = [0, bar.end].map((share) => (lying ? x : y).apply(share) as number) as [number, number];
    const box = lying
      ? { left: 0, right: width, top: from, bottom: from + size }
      : { left: from, right: from + size, top: ends[1], bottom: ends[0] };
    return { key: String(lane), x: lying ? (ends[0] + ends[1]) / 2 : from + size / 2, y: lying ? from + size / 2 : ends[1], lane, box, title: labels[bar.category]!, rows: bar.rows, record: '' };
  });
  return {
    image: image as unknown as SVGSVGElement, spots,
    keys: keysOfBars(plot, colours),
  };
}
