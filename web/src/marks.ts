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
