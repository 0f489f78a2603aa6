// Stacked bars: one a category, one segment a series (a phase). Segments are shares of their bar, so that cells a
// hundred times apart can be compared; the bar's own size stands as a figure at its end, and each segment's in the
// tooltip. Upright while the names of the categories fit side by side, lying otherwise.

import * as Plot from '@observablehq/plot';
import type { Colours } from './colours';
import { svg } from './dom';
import { axisLabel, general } from './format';
import type { LegendEntry } from './legend';
import { outline, shapesOf } from './marks';
import type { Drawing } from './drawing';
import type { Plot as PlotBlock } from './schema';
import { taggedAs, textWidth, tipStyle } from './style';
import { roundValues } from './ticks';

interface Segment { category: number; from: number; to: number; series: number }
interface Bar { category: number; end: number; total: string; marks: string[]; title: string }

/// Three digits with the unit; seconds in ms, as in the tables.
const amount = (value: number, unit: string) =>
  `${general(Number((unit === 's' ? 1000 * value : value).toPrecision(3)))}${unit === 's' ? ' ms' : unit && ` ${unit}`}`;
const percent = (share: number) => `${Math.round(100 * share)} %`;

function barsOf(plot: PlotBlock): { segments: Segment[]; bars: Bar[] } {
  const segments: Segment[] = [];
  const bars = plot.categories.map((name, category) => {
    const total = plot.series.reduce((sum, { points }) => sum + (points[category]?.y ?? 0), 0);
    let end = 0;
    for (const [series, { points }] of plot.series.entries()) {
      const share = total > 0 ? (points[category]?.y ?? 0) / total : 0;
      if (share !== 0) segments.push({ category, from: end, to: end + share, series });
      end += share;
    }
    const lines = plot.series.flatMap(({ name: phase, points }) => {
      const value = points[category]?.y ?? null;
      if (value === null) return [];
      const share = total > 0 ? ` (${((100 * value) / total).toFixed(1)} %)` : '';
      return [`${phase}: ${amount(value, plot.y.unit)}${share}`];
    });
    const marks = [...new Set(plot.series.map(({ points }) => points[category]?.mark ?? '').filter((mark) => mark !== ''))];
    const all = amount(total, plot.y.unit);
    return { category, end, total: all, marks, title: [name, ...lines, `all: ${all}`, ...marks].join('\n') };
  });
  return { segments, bars };
}

/// A text in lines of at most `width` pixels, broken between words, inside one only if it alone is wider.
function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && textWidth(`${line} ${word}`) > width) {
      lines.push(line);
      line = '';
    }
    line = line === '' ? word : `${line} ${word}`;
    const letters = Math.max(1, Math.floor(width / textWidth('m')));
    for (; textWidth(line) > width && line.length > letters; line = line.slice(letters)) lines.push(line.slice(0, letters));
  }
  return [...lines, line];
}

export function drawBars(plot: PlotBlock, width: number, colours: Colours): Drawing {
  const { segments, bars } = barsOf(plot);
  const shapes = shapesOf(plot.series);
  const colour = plot.series.map(({ name }) => colours.phase(name));
  const labels = plot.categories;
  const widest = Math.max(0, ...labels.map(textWidth));
  const lying = labels.length * (widest + 14) > width - 60;

  // A name too long for its room takes several lines: cut off, two cells that differ in their last word look the same.
  const lines = labels.map((name) => (lying ? wrap(name, width * 0.38) : [name]));
  const room = lying ? Math.max(0, ...lines.flat().map(textWidth)) : 0;
  const row = Math.max(labels.length > 14 ? 22 : 28, 13 * Math.max(...lines.map(({ length }) => length)) + 9);
  const height = lying ? labels.length * row + 62 : Math.round(Math.min(380, Math.max(260, width * 0.55)));
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
  const totals: Plot.Markish = (_, { x, y }) => svg('g', { class: 'totals' }, ...bars.flatMap((bar) => {
    const text = bar.total;
    const middle = (scale: { bandwidth?: () => number }) => (scale.bandwidth?.() ?? 0) / 2;
    const at = lying
      ? { x: (x!(bar.end) as number) + 6, y: (y!(bar.category) as number) + middle(y as never) }
      : { x: (x!(bar.category) as number) + middle(x as never), y: (y!(bar.end) as number) - 10 };
    const shift = lying ? textWidth(text) : textWidth(text) / 2;
    return [
      svg('text', { ...at, 'dy': '0.32em', 'text-anchor': lying ? 'start' : 'middle' }, text),
      ...bar.marks.map((mark, i) => outline(shapes.get(mark)!, {
        stroke: 'var(--ink)', transform: `translate(${at.x + shift + 9 + 13 * i},${at.y}) scale(0.85)`,
      })),
    ];
  }));
  const domain = labels.map((_, i) => i);
  const tip = { title: 'title', ...tipStyle };

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
          Plot.tip(bars, Plot.pointerY({ y: 'category', x: 'end', ...tip })),
        ]
      : [
          Plot.gridY(ticks, { stroke: 'var(--rule)', strokeOpacity: 1 }),
          Plot.axisY(ticks, { ...value, labelAnchor: 'top' }),
          Plot.axisX(domain, { ...band, label: axisLabel(plot.x), labelArrow: 'none', labelAnchor: 'center', labelOffset: 38 }),
          ...layers, totals,
          Plot.tip(bars, Plot.pointerX({ x: 'category', y: 'end', ...tip })),
        ],
  });
  const legend: LegendEntry[] = [
    ...plot.series.map(({ name }, k): LegendEntry => ({ sign: 'box', colour: colour[k]!, text: name, series: k })),
    ...[...shapes].map(([mark, shape]): LegendEntry => ({ sign: shape, text: mark })),
  ];
  return { image, legend };
}
