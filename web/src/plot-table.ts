// The figures of a plot as a table: a row for an x or a category, a column for a series.

import type { Cell, Column, Plot, Point, Table } from './schema';

const missing: Cell = { text: '–', value: null, low: null, high: null, mark: '', note: '' };
const figure = ({ y, low, high, mark }: Point): Cell => (y === null ? { ...missing, mark } : { ...missing, value: y, low, high, mark });

export function plotAsTable(plot: Plot): Table {
  const bars = plot.kind === 'stacked_bar';
  const columns: Column[] = [
    { key: 'x', label: plot.x.label, unit: bars ? '' : plot.x.unit, format: 'text' },
    ...plot.series.map(({ name }, k): Column => ({ key: `series${k}`, label: name, unit: plot.y.unit, format: plot.y.unit === 'B' ? 'bytes' : 'rate' })),
  ];
  const rows = bars
    ? plot.categories.map((name, i) => [
        { ...missing, text: name },
        ...plot.series.map(({ points }) => (points[i] ? figure(points[i]) : missing)),
      ])
    : [...new Set(plot.series.flatMap(({ points }) => points.map(({ x }) => x)))]
        .filter((x): x is number => x !== null)
        .sort((a, b) => a - b)
        .map((x) => [
          { ...missing, value: x },
          ...plot.series.map(({ points }) => {
            const point = points.find((p) => p.x === x);
            return point ? figure(point) : missing;
          }),
        ]);
  return { type: 'table', id: `${plot.id}-figures`, title: plot.title, definition: '', columns, rows, footnotes: [] };
}
