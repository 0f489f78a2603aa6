// Texts inside a plot: each takes the first of its places where it overlaps no other text, and of those the one that
// the fewest lines strike through. A text that fits nowhere is left out; its caller says it elsewhere.

import { svg } from '../dom';
import type { Box } from './drawing';
import { LINE, textWidth } from './style';

export interface Dot { x: number; y: number }
export interface Place extends Dot { anchor: 'start' | 'middle' | 'end' }

export const overlap = (a: Box, b: Box): boolean => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;

/// The box of a text whose middle line is at `y`.
export function boxOf(text: string, { x, y, anchor }: Place, isStrong = false): Box {
  const width = textWidth(text, isStrong);
  const left = anchor === 'start' ? x : anchor === 'end' ? x - width : x - width / 2;
  return { left: left - 2, right: left + width + 2, top: y - LINE / 2, bottom: y + LINE / 2 };
}

/// Whether a line goes through a box, looked at every two pixels.
function crosses(path: readonly Dot[], box: Box): boolean {
  return path.some((to, i) => {
    const from = path[i - 1] ?? to;
    if (Math.max(from.x, to.x) < box.left || Math.min(from.x, to.x) > box.right) return false;
    const steps = Math.max(1, Math.ceil(Math.hypot(to.x - from.x, to.y - from.y) / 2));
    return Array.from({ length: steps + 1 }, (_, s) => s / steps).some((part) => {
      const x = from.x + part * (to.x - from.x);
      const y = from.y + part * (to.y - from.y);
      return x >= box.left && x <= box.right && y >= box.top && y <= box.bottom;
    });
  });
}

export class Labels {
  private readonly taken: Box[] = [];

  /// `frame`: where texts may stand; `lines`: what they had better not cover.
  constructor(private readonly frame: Box, private readonly lines: readonly (readonly Dot[])[]) {}

  reserve(box: Box): void {
    this.taken.push(box);
  }

  /// The text where it fits best, or null.
  place(text: string, places: readonly Place[], attributes: Record<string, string> = {}, isStrong = false): SVGTextElement | null {
    const { frame } = this;
    const free = places.flatMap((place) => {
      const box = boxOf(text, place, isStrong);
      const inside = box.left >= frame.left && box.right <= frame.right && box.top >= frame.top && box.bottom <= frame.bottom;
      if (!inside || this.taken.some((other) => overlap(box, other))) return [];
      return [{ place, box, struck: this.lines.filter((line) => crosses(line, box)).length }];
    });
    const best = free.reduce<(typeof free)[number] | null>((found, one) => (found === null || one.struck < found.struck ? one : found), null);
    if (best === null) return null;
    this.taken.push(best.box);
    return svg('text', { 'x': best.place.x, 'y': best.place.y, 'dy': '0.32em', 'text-anchor': best.place.anchor, ...attributes }, text);
  }
}
