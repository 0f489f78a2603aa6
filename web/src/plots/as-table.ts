// The figures of a plot as a table: a row for an x or a category, a column for a series.

import type { Axis, Cell, Column, Point, Series, Table } from '../data/report';

const missing: Cell = { text: '–', value: null, low: null, high: null, mark: '', note: '' };
const figure = ({ y, low, high, mark }: Point): Cell => (y === null ? { ...missing, mark } : { ...missing, value: y, low, high, mark });

interface Drawn { id: string; title: string; x: Axis; y: Axis; series: Series[]; categories: string[] | null }

export function plotAsTable(plot: Drawn): Table {
  const { categories } = plot;
  const names = categories && categories.length > 0 ? categories : null;
  const columns: Column[] = [
    { key: 'x', label: plot.x.label, unit: names ? '' : plot.x.unit, format: 'text', group: '' },
    ...plot.series.map(({ name }, k): Column => ({ key: `series${k}`, label: name, unit: plot.y.unit, format: plot.y.unit === 'B' ? 'bytes' : 'rate', group: '' })),
  ];
  const rows = names
    ? names.map((name, i) => [{ ...missing, text: name }, ...plot.series.map(({ points }) => (points[i] ? figure(points[i]) : missing))])
    : rowsOfLines(plot.series);
  return { type: 'table', id: `${plot.id}-figures`, title: plot.title, definition: '', columns, rows, footnotes: [] };
}

/// A series with two figures at one x (measured twice, by two versions) takes two rows.
function rowsOfLines(series: readonly Series[]): Cell[][] {
  const own = series.map(({ points }) => {
    const byX = new Map<number, Point[]>();
    for (const point of points) if (point.x !== null) byX.set(point.x, [...(byX.get(point.x) ?? []), point]);
    return byX;
  });
  const xs = [...new Set(own.flatMap((byX) => [...byX.keys()]))].sort((a, b) => a - b);
  return xs.flatMap((x) => {
    const lists = own.map((byX) => byX.get(x) ?? []);
    return Array.from({ length: Math.max(...lists.map(({ length }) => length)) }, (_, i) =>
      [{ ...missing, value: x }, ...lists.map((points) => (points[i] ? figure(points[i]) : missing))]);
  });
}
