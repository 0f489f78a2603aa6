// Stripes over a bar's segment: neighbours that no grey tells apart differ by them, on paper and in forced colours too.

import { svg } from '../dom';

/// The pattern of one drawing, and what lays it over a segment.
export class Stripes {
  private readonly id = `stripes-${Math.random().toString(36).slice(2)}`;  // ids are of the whole page

  pattern(): Element {
    return svg('defs', {}, svg('pattern', { id: this.id, width: 6, height: 6, patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(45)' },
      svg('path', { 'd': 'M0,0V6', 'stroke': 'var(--card)', 'stroke-width': 3.4, 'stroke-opacity': 0.75 })));
  }

  over(box: { x: number; y: number; width: number; height: number; 'data-series'?: number }): Element {
    return svg('rect', { class: 'stripes', ...box, fill: `url(#${this.id})` });
  }
}
