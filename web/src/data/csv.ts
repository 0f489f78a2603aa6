// A table as CSV, in the form of report::to_csv: header `key [unit]`, then rows; a column with intervals takes
// three (key, key_low, key_high); marks and notes of a row stand in a last column. Figures are the full ones in the
// column's unit, not the rounded texts, and empty where missing.

import type { Axis, Cell, Series, Table } from './report';

const quote = (text: string) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

/** Twelve figures as C++ writes them ({:.12g}): 5e-05 and 1e+12, where JavaScript alone would write 0.00005 and 1000000000000. */
function figure(value: number | null): string {
  if (value === null) return '';
  const [mantissa = '', exponent = '0'] = value.toExponential(11).split('e');
  const power = Number(exponent);
  if (power >= -4 && power < 12) return Object.is(value, -0) ? '-0' : String(Number(value.toPrecision(12)));
  const sign = power < 0 ? '-' : '+';
  return `${mantissa.replace(/\.?0+$/, '')}e${sign}${String(Math.abs(power)).padStart(2, '0')}`;
}

/** What a row's marks (each by itself) and notes say, each once: first the marks. */
const remarks = (row: Cell[]) =>
  [...new Set([...row.flatMap(({ mark }) => mark.split(/\s+/)), ...row.map(({ note }) => note)])]
    .filter((text) => text !== '').join('; ');

export function toCsv({ columns, rows }: Table): string {
  const ranged = columns.map((_, i) => rows.some((row) => row[i]?.low != null && row[i]?.high != null));
  const remarked = rows.some((row) => remarks(row) !== '');
  const head = columns.flatMap(({ key, unit }, i) =>
    (ranged[i] ? [key, `${key}_low`, `${key}_high`] : [key]).map((name) => (unit ? `${name} [${unit}]` : name)));
  const body = rows.map((row) => [
    ...row.flatMap((cell, i) => {
      const value = columns[i]?.format === 'text' && cell.value === null ? cell.text : figure(cell.value);
      return ranged[i] ? [value, figure(cell.low), figure(cell.high)] : [value];
    }),
    ...(remarked ? [remarks(row)] : []),
  ]);
  return [[...head, ...(remarked ? ['remarks'] : [])], ...body].map((line) => line.map(quote).join(',')).join('\n') + '\n';
}

/// The points of a figure, a row each, in the form of report::to_csv(Plot), with record and samples behind. Of bars x
/// is the category.
export function csvOfSeries({ x, y, series }: { x: Axis; y: Axis; series: readonly Series[] }, categories: readonly string[] = []): string {
  const name = ({ label, unit }: Axis) => (unit ? `${label} [${unit}]` : label);
  const lines = series.flatMap((one) => one.points.map((p, i) => [
    one.name, categories[i] ?? figure(p.x), figure(p.y), figure(p.low), figure(p.high), p.mark, p.record, p.n > 0 ? String(p.n) : '',
  ]));
  return [['series', name(x), name(y), 'low', 'high', 'mark', 'record', 'n'], ...lines].map((line) => line.map(quote).join(',')).join('\n') + '\n';
}
