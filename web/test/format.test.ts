import { describe, expect, it } from 'vitest';
import { fixed, formatBounds, formatCell, formatDuration, formatFigure, formatInterval, formatTick, formatTime, formatValue, general, headUnit } from '../src/data/format';
import type { Cell, Column, Format } from '../src/data/report';
import { golden, programReport } from './read';

const cell = (value: number | null, low: number | null = null, high: number | null = null): Cell =>
  ({ text: '', value, low, high, mark: '', note: '' });
const column = (format: Format, unit = ''): Column => ({ key: 'k', label: 'l', unit, format, group: '' });

describe('a figure', () => {
  it.each<[number, Format, string]>([
    [50000, 'integer', '50,000'],
    [11173962, 'integer', '11,173,962'],
    [1.745, 'fixed1', '1.7'],
    [1.74, 'fixed2', '1.74'],
    [0.0009, 'fixed3', '0.001'],
    [0.871, 'percent1', '87.1 %'],
    [1234.5, 'seconds', '1,234'],
    [1235.5, 'seconds', '1,236'],
    [123.45, 'seconds', '123.5'],
    [12.345, 'seconds', '12.3'],
    [1.2345, 'seconds', '1.23'],
    [0.12345, 'seconds', '0.123'],
    [0.012345, 'seconds', '0.0123'],
    [0.000951, 'seconds', '0.0010'],
    [0.00005, 'seconds', '0.000050'],
    [0, 'seconds', '0'],
    [0.369, 'milliseconds', '369.0'],
    [1.3531, 'milliseconds', '1,353'],
    [512, 'bytes', '512 B'],
    [44695848, 'bytes', '44.7 MB'],
    [9.1e9, 'bytes', '9.10 GB'],
    [94.6, 'rate', '94.6'],
    [12345.6, 'rate', '12,346'],
    [0.00032, 'scientific', '3.20 × 10⁻⁴'],
    [-0.5, 'fixed2', '-0.50'],
  ])('%d as %s reads %s', (value, format, text) => expect(formatValue(value, format)).toBe(text));

  it('has no sign when it is rounded to zero', () => expect(fixed(-0.004, 2)).toBe('0.00'));
  it('that is missing shows its text, and a hyphen as a dash', () => {
    expect(formatCell({ ...cell(null), text: 'n/a' }, column('fixed2'))).toBe('n/a');
    expect(formatCell({ ...cell(null), text: '-' }, column('fixed2'))).toBe('–');
  });
  it('without a wished precision keeps four digits and no idle zeros', () => {
    expect([0.25, 3, 12345.6, 1e-7, 0].map(general)).toEqual(['0.25', '3', '12,346', '1 × 10⁻⁷', '0']);
  });
});

describe('an interval', () => {
  it('takes the precision of its figure', () =>
    expect(formatInterval(cell(100, 99.5, 1001.2), column('seconds'))).toBe('99.5–1,001.2'));
  it('says its unit once', () => {
    expect(formatInterval(cell(0.871, 0.858, 0.884), column('percent1'))).toBe('85.8–88.4 %');
    expect(formatInterval(cell(44.7e6, 44e6, 45e6), column('bytes', 'B'))).toBe('44.0–45.0 MB');
  });
  it('below zero is written with a word, not with a dash', () =>
    expect(formatInterval(cell(0, -0.1, 0.1), column('fixed1'))).toBe('-0.1 to 0.1'));
  it('of a single sample is empty', () => expect(formatInterval(cell(1), column('fixed1'))).toBe(''));
});

describe('an axis', () => {
  it.each([[1024, 'B', '1 KiB'], [2 ** 28, 'B', '256 MiB'], [1e6, 'B', '1 MB'], [0.30000000000000004, 's', '0.3'], [2048, '', '2,048']])(
    'names %d %s as %s', (value, unit, text) => expect(formatTick(value, unit)).toBe(text));
});

it('Units of heads are those of the digits below', () => {
  expect(headUnit(column('milliseconds', 's'))).toBe('ms');
  expect(headUnit(column('bytes', 'B'))).toBe('');
  expect(headUnit(column('rate', 'images/s'))).toBe('images/s');
});

it.each(JSON.parse(golden('numbers.json')) as { value: number; format: Format; text: string }[])(
  'Page and program agree: $value as $format is $text', ({ value, format, text }) => {
    // The page raises exponents; the digits are the same.
    const [, mantissa, exponent] = /^(.*)e(.*)$/.exec(text) ?? [];
    const shown = formatValue(value, format);
    if (exponent === undefined) expect(shown).toBe(text);
    else expect(shown.replace(/[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]/g, (sign) => '-0123456789'['⁻⁰¹²³⁴⁵⁶⁷⁸⁹'.indexOf(sign)]!)).toBe(`${mantissa} × 10${Number(exponent)}`);
  });

describe('In plots', () => {
  it('figures have the tables\' digits, with their unit', () => {
    expect([formatFigure(8556.6, 'images/s'), formatFigure(1.875, ''), formatFigure(44695848, 'B'), formatFigure(84.25, '%')]).toEqual(['8,557 images/s', '1.88', '44.7 MB', '84.2 %']);
    expect(formatBounds(1.836, 1.915, '', 1.875)).toBe('1.84 to 1.92');
    expect(headUnit(column('fixed1', 'us'))).toBe('µs');
  });
  it('times have the unit that reads best', () => {
    expect([0.00006, 0.0081, 1.5].map((seconds) => formatTime(seconds))).toEqual(['60.0 µs', '8.10 ms', '1.50 s']);
    expect([40, 62, 300, 7800].map(formatDuration)).toEqual(['40 s', '62 s', '5 min', '2 h 10 min']);
  });
});

it('Every figure and interval of the golden report has the digits that C++ gives it', () => {
  const lines = golden('sample-report.md').split('\n').filter((line) => line.startsWith('|') && !/^\|( -+:? \|)+$/.test(line));
  const written = lines.map((line) => line.slice(1, -1).split('|').map((text) => text.trim()));
  let compared = 0;
  for (const table of programReport().sections.flatMap(({ blocks }) => blocks)) {
    if (table.type !== 'table') continue;
    for (const row of table.rows) {
      const expected = row.map((one, i) => {
        const head = table.columns[i]!;
        const figure = one.value === null ? one.text : formatCell(one, head);
        const interval = one.value !== null && one.low !== null && one.high !== null
          ? `[${[one.low, one.high].map((bound) => formatValue(bound, head.format, one.value!).replace(/ \D*$/, '')).join(', ')}]` : '';
        return [figure, interval, one.mark].filter(Boolean).join(' ');
      });
      expect(written).toContainEqual(expected);
      compared += expected.length;
    }
  }
  expect(compared).toBeGreaterThan(50);
});
