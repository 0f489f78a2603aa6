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
        .flatMap((x) => {
          // A series with two figures at one x (measured twice, by two versions) takes two rows.
          const own = plot.series.map(({ points }) => points.filter((p) => p.x === x));
          return Array.from({ length: Math.max(...own.map(({ length }) => length)) }, (_, i) =>
            [{ ...missing, value: x }, ...own.map((points) => (points[i] ? figure(points[i]) : missing))]);
        });
  return { type: 'table', id: `${plot.id}-figures`, title: plot.title, definition: '', columns, rows, footnotes: [] };
}
