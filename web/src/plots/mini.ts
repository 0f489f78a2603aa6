// The small picture in a tile: images/s of each candidate, the chosen one dark. Its title says what the bars are.

import { svg } from '../dom';
import type { Bars } from '../data/report';

const WIDTH = 100;
const HEIGHT = 16;

export function renderMini(bars: Bars | null): SVGElement | null {
  const values = bars?.values ?? [];
  const most = Math.max(0, ...values.map((value) => value ?? 0));
  if (!bars || most === 0) return null;
  const room = WIDTH / values.length;
  return svg('svg', { 'class': 'mini', 'viewBox': `0 0 ${WIDTH} ${HEIGHT}`, 'preserveAspectRatio': 'none', 'role': 'img', 'aria-label': bars.title },
    svg('title', {}, bars.title),
    ...values.map((value, i) => {
      const tall = Math.max(1, (HEIGHT * (value ?? 0)) / most);
      return svg('rect', { 'x': i * room, 'y': HEIGHT - tall, 'width': Math.max(0.6, room - 2), 'height': tall, 'class': i === bars.chosen ? 'chosen' : null });
    }));
}
