// Numbers as people read them, by the rules of src/report/text.cc (a test compares both on the golden report).
// Values stay in their unit; only the text is rounded, and scaled where the format says so (a column of
// milliseconds holds seconds, one of bytes is shown in MB). A minus is the keyboard's, as in the sentences and formulas
// around: one that looks otherwise is not found by searching, and no number where it is pasted.

import type { Cell, Column, Format } from './report';

/// The digits of toFixed or toExponential, but of two that are equally near the even one, as C++ rounds: 84.25 is 84.2,
/// 84.35 is 84.3 (its binary value lies below the middle). Only an exact middle ends, at `decimals` + 1, with a 5 and
/// nothing behind it; JavaScript always rounds that one up.
function digits(decimals: number, write: (decimals: number) => string): string {
  const text = write(decimals);
  const [finer = ''] = write(Math.min(decimals + 1, 100)).split('e');
  if (!finer.endsWith('5')) return text;
  const [exact = ''] = write(100).split('e');
  if (/[1-9]/.test(exact.slice(finer.length))) return text;
  // An exact middle. The digit before the 5 is the one below; if it is even, it stays.
  const below = finer.slice(0, decimals === 0 ? -2 : -1);
  const exponent = /e.*$/.exec(text)?.[0] ?? '';
  return Number(below[below.length - 1]) % 2 === 0 ? below + exponent : text;
}

/// Fixed decimals with thousands separators: 50,000.0. A rounded zero has no sign. (The formatters of Intl round the
/// shortest decimal text, not the binary value, and are 50 times as slow.)
export function fixed(value: number, decimals: number): string {
  const size = Math.abs(value);
  const [whole = '', fraction] = digits(decimals, (n) => size.toFixed(n)).split('.');
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
  const [mantissa = '', exponent = '0'] = digits(decimals, (n) => value.toExponential(n)).split('e');
  const raised = [...String(Number(exponent))].map((c) => (c === '-' ? '⁻' : '⁰¹²³⁴⁵⁶⁷⁸⁹'[Number(c)])).join('');
  return `${mantissa} × 10${raised}`;
}

/// Without zeros that say nothing: 1 × 10⁻⁶.
const short = (value: number) => scientific(value).replace(/\.?0+(?= ×)/, '');

const BINARY = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

/// 44.7 MB (GB = 1e9). `like` fixes prefix and decimals, so that a figure and its interval share them.
function bytes(value: number, like: number): string {
  const size = Math.abs(like);
  if (size >= 1e9) return `${fixed(value * 1e-9, 2)} GB`;
  if (size >= 1e6) return `${fixed(value * 1e-6, size >= 1e8 ? 0 : 1)} MB`;
  if (size >= 1e3) return `${fixed(value * 1e-3, 1)} kB`;
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
  return format === 'bytes' ? '' : shownUnit(unit);
}

/// Units as people write them: the program's texts are plain ASCII.
export const shownUnit = (unit: string): string => ({ us: 'µs', x: '×' })[unit] ?? unit;

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
  return unit && !isBytes(unit) ? `${label} [${shownUnit(unit)}]` : label;
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

/// A figure of a plot in words, in the digits of the tables, with its unit: "8,557 images/s", "1.88", "44.7 MB".
export function formatFigure(value: number, unit: string): string {
  if (isBytes(unit)) return bytes(value, value);
  return formatValue(value, 'rate') + unitAfter(unit);
}
/// "8,409 to 8,624 images/s"; the bounds take the precision of the figure.
export function formatBounds(low: number, high: number, unit: string, like: number): string {
  if (isBytes(unit)) return `${bytes(low, like)} to ${bytes(high, like)}`;
  return `${formatValue(low, 'rate', like)} to ${formatValue(high, 'rate', like)}${unitAfter(unit)}`;
}
export const unitAfter = (unit: string): string => (unit === '' || isBytes(unit) ? '' : ` ${shownUnit(unit)}`);

/// A time in the unit that reads best, and how it is written in it: changes and spans of one drawing share it.
export interface TimeUnit { unit: string; factor: number }
export function timeUnit(seconds: number): TimeUnit {
  const size = Math.abs(seconds);
  if (size < 1e-3) return { unit: 'µs', factor: 1e6 };
  return size < 1 ? { unit: 'ms', factor: 1e3 } : { unit: 's', factor: 1 };
}
export const formatTime = (seconds: number, { unit, factor } = timeUnit(seconds)): string =>
  `${formatValue(seconds * factor, 'rate')} ${unit}`;

/// How long a command will take: "40 s", "5 min", "2 h 10 min".
export function formatDuration(seconds: number): string {
  if (seconds < 90) return `${Math.max(1, Math.round(seconds))} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h${minutes % 60 ? ` ${minutes % 60} min` : ''}`;
}
