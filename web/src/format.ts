// Numbers as people read them, by the rules of src/report/text.cc (a test compares both on the golden report).
// Values stay in their unit; only the text is rounded, and scaled where the format says so (a column of
// milliseconds holds seconds, one of bytes is shown in MB). A minus is the keyboard's, as in the sentences and formulas
// around: one that looks otherwise is not found by searching, and no number where it is pasted.

import type { Cell, Column, Format } from './schema';

/// Fixed decimals with thousands separators: 50,000.0. A rounded zero has no sign. (toFixed rounds the exact binary
/// value, as C++ does; the formatters of Intl round its shortest decimal text and are 50 times as slow.)
export function fixed(value: number, decimals: number): string {
  const [whole = '', fraction] = Math.abs(value).toFixed(decimals).split('.');
  const text = whole.replace(/\B(?=(\d{3})+$)/g, ',') + (fraction === undefined ? '' : `.${fraction}`);
  return value < 0 && /[1-9]/.test(text) ? `-${text}` : text;
}

/// Decimals that a size deserves: 1,235 · 123.5 · 12.3 · 1.23 · 0.123 · 0.0123 · 0.0012 · 0.00012.
function decimalsFor(value: number): number {
  const size = Math.abs(value);
  if (size === 0 || size >= 999.5) return 0;
  if (size >= 9.995) return 1;
  if (size >= 0.9995) return 2;
  if (size >= 0.09995) return 3;
  if (size >= 0.00095) return 4;
  return Math.min(1 - Math.floor(Math.log10(size)), 12);
}

function scientific(value: number, decimals = 2): string {
  if (value === 0) return '0';
  const [mantissa = '', exponent = '0'] = value.toExponential(decimals).split('e');
  const raised = [...String(Number(exponent))].map((c) => (c === '-' ? '⁻' : '⁰¹²³⁴⁵⁶⁷⁸⁹'[Number(c)])).join('');
  return `${mantissa} × 10${raised}`;
}

/// Without zeros that say nothing: 1 × 10⁻⁶.
const short = (value: number) => scientific(value).replace(/\.?0+(?= ×)/, '');

const BINARY = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

/// 44.7 MB (GB = 1e9). `like` fixes prefix and decimals, so that a figure and its interval share them.
function bytes(value: number, like: number): string {
  const size = Math.abs(like);
  if (size >= 1e9) return `${fixed(value / 1e9, 2)} GB`;
  if (size >= 1e6) return `${fixed(value / 1e6, size >= 1e8 ? 0 : 1)} MB`;
  if (size >= 1e3) return `${fixed(value / 1e3, 1)} kB`;
  return `${fixed(value, 0)} B`;
}

/// Plain numbers without a wished precision (plots): four significant digits, no trailing zeros.
export function general(value: number): string {
  if (value === 0) return '0';
  const size = Math.abs(value);
  if (size < 1e-4 || size >= 1e15) return short(value);
  const text = fixed(value, Math.min(7, Math.max(0, 3 - Math.floor(Math.log10(size)))));
  return text.includes('.') ? text.replace(/\.?0+$/, '') : text;
}

/// `value` in the precision that suits `like`: the figure itself, or the one whose interval bound `value` is.
export function formatValue(value: number, format: Format, like = value): string {
  switch (format) {
    case 'text': return general(value);
    case 'integer': return fixed(value, 0);
    case 'fixed1': return fixed(value, 1);
    case 'fixed2': return fixed(value, 2);
    case 'fixed3': return fixed(value, 3);
    case 'percent1': return `${fixed(value * 100, 1)} %`;
    case 'seconds': return fixed(value, decimalsFor(like));
    case 'milliseconds': return fixed(value * 1000, decimalsFor(like * 1000));
    case 'bytes': return bytes(value, like);
    case 'rate': return fixed(value, decimalsFor(like));
    case 'scientific': return scientific(value);
  }
}

/// The unit that stands in the head of a column: the one that the digits below are in.
export function headUnit({ unit, format }: Pick<Column, 'unit' | 'format'>): string {
  if (format === 'milliseconds') return 'ms';
  return format === 'bytes' ? '' : unit;
}

export function formatCell(cell: Cell, column: Column): string {
  return cell.value === null ? cell.text.replace(/^-?$/, '–') : formatValue(cell.value, column.format);
}

/// "1.62–1.70", or "" for a single sample. Bounds take the precision of the figure.
export function formatInterval(cell: Cell, column: Column): string {
  const { value, low, high } = cell;
  if (value === null || low === null || high === null) return '';
  const from = formatValue(low, column.format, value);
  const to = formatValue(high, column.format, value);
  if (low < 0 || column.format === 'scientific') return `${from} to ${to}`;
  return `${from.replace(/ \D*$/, '')}–${to}`;
}

const isBytes = (unit: string) => unit === 'B' || unit === 'bytes';

/// An axis' name: "time of a step [s]". Ticks of bytes carry their unit.
export function axisLabel({ label, unit }: { label: string; unit: string }): string {
  return unit && !isBytes(unit) ? `${label} [${unit}]` : label;
}

/// A tick's text. Bytes in powers of two read as KiB, MiB; others as kB, MB. From 1e9 on zeros are counted for the reader.
export function formatTick(value: number, unit: string): string {
  if (isBytes(unit)) {
    if (value >= 1024 && Number.isInteger(Math.log2(value))) {
      const step = Math.floor(Math.log2(value) / 10);
      return `${value / 1024 ** step} ${BINARY[step]}`;
    }
    return bytes(value, value).replace(/\.0+ /, ' ');
  }
  return Math.abs(value) >= 1e9 ? short(value) : general(Number(value.toPrecision(12)));
}

/// A figure of a plot in words (tooltips), with the unit that stands behind it: bytes carry theirs.
export const formatFigure = (value: number, unit: string): string => (isBytes(unit) ? bytes(value, value) : general(value));
export const unitAfter = (unit: string): string => (unit === '' || isBytes(unit) ? '' : ` ${unit}`);
