// Drawings know their width: each is drawn before the first paint, so that nothing moves, and again where the width
// changes or the page is printed.

/// Draws again for the same width.
export type Redraw = () => void;

/// Where nothing is laid out (tests).
const UNSIZED = 640;

export function whenSized(box: HTMLElement, draw: (width: number) => void): Redraw {
  let width = UNSIZED;
  const redraw = () => draw(width);
  if (typeof ResizeObserver === 'undefined') {
    redraw();
    return redraw;
  }
  let drawn = 0;
  const take = (now: number) => {
    if (now < 40 || Math.abs(now - drawn) < 4) return;
    drawn = width = now;
    redraw();
  };
  new ResizeObserver((entries) => take(Math.floor(entries[entries.length - 1]!.contentRect.width))).observe(box);
  // Paper has another width, which is laid out only while it prints.
  box.addEventListener('measure', () => take(Math.floor(box.clientWidth)));
  return redraw;
}
