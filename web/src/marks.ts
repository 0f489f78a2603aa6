// Points that are special (oversubscribed, knee, ...) are drawn hollow and in a shape of their own, one shape for one
// mark; the legend says which is which. Shape, not colour: the colour is the series'.

import { svg } from './dom';
import type { Series } from './schema';

export const shapes = ['diamond', 'square', 'triangle', 'wye', 'star'] as const;
export type Shape = (typeof shapes)[number];

/// The marks of a plot in order of appearance, each with its shape.
export function shapesOf(series: readonly Series[]): Map<string, Shape> {
  const marks = new Map<string, Shape>();
  for (const { points } of series) {
    for (const { mark } of points) {
      if (mark !== '' && !marks.has(mark)) marks.set(mark, shapes[marks.size % shapes.length]!);
    }
  }
  return marks;
}

const outlines: Record<Shape, string> = {
  diamond: 'M0,-5.6L4.4,0L0,5.6L-4.4,0Z',
  square: 'M-4,-4H4V4H-4Z',
  triangle: 'M0,-5L4.9,3.6H-4.9Z',
  wye: 'M0,0V5.2M0,0L-4.5,-3.2M0,0L4.5,-3.2',
  star: 'M0,-5.4L1.5,-1.7L5.2,-1.7L2.3,0.9L3.3,4.6L0,2.4L-3.3,4.6L-2.3,0.9L-5.2,-1.7L-1.5,-1.7Z',
};

/// The same outline in plots and legends.
export function outline(shape: Shape, attributes: Record<string, string | number> = {}): SVGPathElement {
  return svg('path', { 'd': outlines[shape], 'class': 'mark-shape', 'stroke-width': 1.8, ...attributes });
}

/// The filled signs of lines, one for each colour of the palette: who sees no colours, or prints without, tells lines
/// apart by them.
const signs = [
  'M0,-3.6A3.6,3.6 0 1 1 0,3.6A3.6,3.6 0 1 1 0,-3.6Z',  // circle
  'M-3.3,-3.3H3.3V3.3H-3.3Z',  // square
  'M0,-4.4L4.3,3.2H-4.3Z',  // triangle
  'M0,-4.8L3.8,0L0,4.8L-3.8,0Z',  // diamond
  'M-1.5,-4.4H1.5V-1.5H4.4V1.5H1.5V4.4H-1.5V1.5H-4.4V-1.5H-1.5Z',  // cross
  'M0,4.4L4.3,-3.2H-4.3Z',  // triangle on its tip
  'M0,-5L1.4,-1.6L4.9,-1.5L2.2,0.8L3.1,4.2L0,2.3L-3.1,4.2L-2.2,0.8L-4.9,-1.5L-1.4,-1.6Z',  // star
  'M-4.4,-2.3L-2.3,-4.4L0,-2.1L2.3,-4.4L4.4,-2.3L2.1,0L4.4,2.3L2.3,4.4L0,2.1L-2.3,4.4L-4.4,2.3L-2.1,0Z',  // x
] as const;

/// The sign of a line, the same in plots and legends. `slot` is the place of its colour in the palette.
export function signOf(slot: number, colour: string, attributes: Record<string, string | number> = {}): SVGPathElement {
  return svg('path', { 'd': signs[slot % signs.length]!, 'class': 'sign', 'fill': colour, ...attributes });
}
