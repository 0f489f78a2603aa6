// Points that have a place, and whiskers that would stand on one another moved apart.

import type { Point, Series } from '../data/report';

export interface Placed extends Point { x: number; y: number }

export const placed = ({ points }: Series): Placed[] =>
  points.filter((p): p is Placed => p.x !== null && p.y !== null).sort((a, b) => a.x - b.x);
export const hasInterval = ({ low, high }: Point) => low !== null && high !== null && high > low;

const APART = 9;  // pixels between the whiskers of two series at one x
const MOST = 24;  // between the first and the last

/// So many pixels each series is moved to the side, all of it: 0 where no two series have whiskers at one x.
/// `isSingle`: not to be moved (an ideal, a band).
export function dodgesOf(series: readonly { points: Placed[]; isSingle: boolean }[], place: (x: number) => number): number[] {
  const moved = series.filter(({ isSingle, points }) => !isSingle && points.some(hasInterval));
  const uses = new Map<number, number>();
  for (const { points } of moved) for (const x of new Set(points.map((p) => p.x))) uses.set(x, (uses.get(x) ?? 0) + 1);
  const most = Math.max(0, ...uses.values());
  if (most < 2) return series.map(() => 0);
  const xs = [...uses.keys()].map(place).sort((a, b) => a - b);
  const room = Math.min(...xs.slice(1).map((x, i) => x - xs[i]!), Infinity);
  const step = Math.min(APART, MOST / (moved.length - 1), (room * 0.7) / moved.length);
  return series.map((one) => {
    const rank = moved.indexOf(one);
    return rank < 0 ? 0 : (rank - (moved.length - 1) / 2) * step;
  });
}
