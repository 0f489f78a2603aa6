// Signs of points: a shape for each colour of the palette, so that who sees no colours, or prints without, tells lines
// apart. A point that is special (disturbed, oversubscribed) keeps the shape of its line and becomes hollow.

import { svg } from '../dom';
import type { Series } from '../data/report';

const signs = [
  'M0,-4A4,4 0 1 1 0,4A4,4 0 1 1 0,-4Z',  // circle
  'M-3.6,-3.6H3.6V3.6H-3.6Z',  // square
  'M0,-4.8L4.7,3.5H-4.7Z',  // triangle
  'M0,-5.2L4.2,0L0,5.2L-4.2,0Z',  // diamond
  'M-1.6,-4.7H1.6V-1.6H4.7V1.6H1.6V4.7H-1.6V1.6H-4.7V-1.6H-1.6Z',  // cross
  'M0,4.8L4.7,-3.5H-4.7Z',  // triangle on its tip
  'M0,-5.3L1.5,-1.7L5.2,-1.6L2.3,0.9L3.3,4.5L0,2.4L-3.3,4.5L-2.3,0.9L-5.2,-1.6L-1.5,-1.7Z',  // star
  'M-4.7,-2.4L-2.4,-4.7L0,-2.2L2.4,-4.7L4.7,-2.4L2.2,0L4.7,2.4L2.4,4.7L0,2.2L-2.4,4.7L-4.7,2.4L-2.2,0Z',  // x
] as const;

export const hollows = ['hollow', 'dotted', 'struck'] as const;
export type Shape = (typeof hollows)[number];

/// The one whose mark is drawn as a ring, not as a hollow sign.
export const BEST = 'best';
export const isBest = (mark: string) => mark.startsWith(BEST);
/// What makes a point doubtful: "disturbed", also of "best, disturbed".
export const doubtOf = (mark: string) => mark.replace(/^best(, )?/, '');

/// The special marks in order of appearance, each with what tells it from the other ones.
export function shapesOf(series: readonly Series[]): Map<string, Shape> {
  const shapes = new Map<string, Shape>();
  for (const { points } of series) {
    for (const mark of points.map((point) => doubtOf(point.mark))) {
      if (mark !== '' && !shapes.has(mark)) shapes.set(mark, hollows[shapes.size % hollows.length]!);
    }
  }
  return shapes;
}

/// The sign of a line's point. `slot` is the place of its colour in the palette.
export function signOf(slot: number, colour: string, shape?: Shape, attributes: Record<string, string | number> = {}): SVGGElement {
  const path = svg('path', {
    'd': signs[slot % signs.length]!, 'fill': shape ? 'var(--card)' : colour, 'stroke': shape ? colour : 'var(--card)', 'stroke-width': shape ? 1.8 : 1,
  });
  const inner = shape === 'dotted' ? svg('circle', { r: 1.5, fill: colour })
    : shape === 'struck' ? svg('path', { 'd': 'M-6,6L6,-6', 'stroke': colour, 'stroke-width': 1.6 }) : null;
  return svg('g', { 'class': shape ? 'sign special' : 'sign', ...attributes }, path, inner);
}
