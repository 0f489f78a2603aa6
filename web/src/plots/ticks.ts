// Which values an axis names. Batches and workers are few and mostly powers of two: then the ticks are the values
// that were measured, not round numbers between them.

import type { Axis } from '../data/report';

export interface Ticks {
  type: 'log' | 'linear';
  base: number;
  values: number[];
  domain: [number, number];
}

export const isPowerOfTwo = (value: number) => value > 0 && Number.isInteger(Math.log2(value));

/// Every k-th, for the smallest k that leaves `gap` pixels between neighbours; the first always stays.
function thin(values: number[], place: (value: number) => number, gap: number): number[] {
  for (let k = 1; k < values.length; ++k) {
    const kept = values.filter((_, i) => i % k === 0);
    if (kept.every((value, i) => i === 0 || Math.abs(place(value) - place(kept[i - 1]!)) >= gap)) return kept;
  }
  return values.slice(0, 1);
}

function powersOfTwo(low: number, high: number): number[] {
  const values = [];
  for (let e = Math.ceil(Math.log2(low) - 1e-9); e <= Math.log2(high) + 1e-9; ++e) values.push(2 ** e);
  return values;
}

/// 1, 2, 5, 10, ...; only the decades when those are too many.
function decades(low: number, high: number, fits: (values: number[]) => boolean): number[] {
  for (const mantissas of [[1, 2, 5], [1, 3], [1]]) {
    const values = [];
    for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); ++e) {
      for (const m of mantissas) values.push(Number((m * 10 ** e).toPrecision(3)));
    }
    const inside = values.filter((value) => value >= low * (1 - 1e-9) && value <= high * (1 + 1e-9));
    if (inside.length >= 2 && fits(inside)) return inside;
    if (mantissas.length === 1) {
      // Over many decades every second, third, ... of them.
      const every = (k: number) => inside.filter((_, i) => i % k === 0);
      let k = 1;
      while (k < inside.length && !fits(every(k))) ++k;
      return every(k);
    }
  }
  return [];
}

/// Round numbers over [low, high], about `count` of them.
export function roundValues(low: number, high: number, count: number): number[] {
  const raw = (high - low) / Math.max(1, count);
  if (!(raw > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= raw * 0.999) ?? 10 * power;
  const values = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; ++i) {
    values.push(Number((i * step).toPrecision(12)));
  }
  return values;
}

export interface Wish {
  gap: number;        ///< pixels that a tick's text needs
  measured: boolean;  ///< the axis of what was chosen (x), whose values are worth naming; otherwise (y) round numbers
  binary?: boolean;   ///< a log axis is named in powers of two
  least?: number;     ///< so many ticks at least, where the axis is linear, if need be closer than `gap`
}

/// `values`: all coordinates on the axis; `pixels`: its length.
export function ticksFor(values: readonly number[], axis: Axis, pixels: number, wish: Wish): Ticks {
  const { gap, measured, least: fewest = 0 } = wish;
  const finite = values.filter(Number.isFinite);
  const distinct = [...new Set(finite)].sort((a, b) => a - b);
  const least = distinct[0] ?? 0;
  const most = distinct[distinct.length - 1] ?? 1;
  // A logarithm of zero has no place; such an axis is drawn linear.
  if (axis.log && least > 0) return logTicks(distinct, least, most, pixels, wish);

  if (measured) {
    const margin = (most - least || 1) * 0.04;
    const domain: [number, number] = [least - margin, most + margin];
    const place = (value: number) => ((value - domain[0]) / (domain[1] - domain[0])) * pixels;
    const own = distinct.length <= 12 && distinct.every((value, i) => i === 0 || place(value) - place(distinct[i - 1]!) >= gap);
    if (own) return { type: 'linear', base: 10, values: distinct, domain };
    const whole = distinct.every(Number.isInteger);
    const round = roundValues(least, most, Math.max(2, Math.floor(pixels / gap)));
    return { type: 'linear', base: 10, values: whole ? round.filter(Number.isInteger) : round, domain };
  }
  // Zero belongs on the axis unless the figures are close together far away from it (accuracies near 99 %).
  const withZero = least >= 0 && least <= 0.8 * most;
  const from = withZero ? 0 : least - 0.08 * (most - least || Math.abs(most) || 1);
  const to = most + 0.05 * (most - from || 1);
  let count = Math.max(2, Math.floor(pixels / gap));
  let round = roundValues(from, to, count);
  while (round.length < fewest && count < 3 * fewest) round = roundValues(from, to, ++count);
  return { type: 'linear', base: 10, values: round, domain: [from, to] };
}

function logTicks(
  distinct: number[], least: number, most: number, pixels: number, { gap, measured, binary = false }: Wish,
): Ticks {
  const margin = measured ? Math.max(1.08, (most / least) ** 0.04) : Math.max(1.1, (most / least) ** 0.06);
  const domain: [number, number] = [least / margin, most * margin];
  const place = (value: number) => (Math.log(value / domain[0]) / Math.log(domain[1] / domain[0])) * pixels;
  const fits = (list: number[]) => list.every((value, i) => i === 0 || place(value) - place(list[i - 1]!) >= gap);
  if (measured) {
    if (distinct.every(isPowerOfTwo)) {
      return { type: 'log', base: 2, values: thin(powersOfTwo(least, most), place, gap), domain };
    }
    if (distinct.length <= 12 && fits(distinct)) return { type: 'log', base: 10, values: distinct, domain };
  }
  if (binary && most / least >= 4) {
    return { type: 'log', base: 2, values: thin(powersOfTwo(domain[0], domain[1]), place, gap), domain };
  }
  if (most / least <= 4) {
    const round = roundValues(domain[0], domain[1], Math.max(2, Math.floor(pixels / (gap * 1.3))));
    if (fits(round)) return { type: 'log', base: 10, values: round, domain };
  }
  return { type: 'log', base: 10, values: decades(domain[0], domain[1], fits), domain };
}
