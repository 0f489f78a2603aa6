// Drawings know their width: each is drawn for the one it has, in or near the window before the first paint, so that
// nothing moves, and again where the width changes or the page is printed. One that waits (later.ts) keeps its height free.

import type { Later } from '../later';

/// Draws again for the same width.
export type Redraw = () => void;

export interface ForWidth {
  draw(width: number): void;
  /// What a drawing of that width will be high, or about so; undefined: it is drawn at once.
  height?(width: number): number;
}

/// Where nothing is laid out (tests).
const UNSIZED = 640;

interface Canvas { box: HTMLElement; take(width: number): void; reserve(width: number): void; isDrawn(): boolean }

/// All drawings of a page are observed together: their room is reserved before one asks which of them are near.
export class Sized {
  private readonly canvases = new Map<Element, Canvas>();
  private readonly observer = typeof ResizeObserver === 'undefined' ? null : new ResizeObserver((entries) => {
    const waiting: [Canvas, number][] = [];
    for (const { target, contentRect } of entries) {
      const canvas = this.canvases.get(target)!;
      const width = Math.floor(contentRect.width);
      if (width < LEAST) continue;
      if (canvas.isDrawn()) canvas.take(width);
      else waiting.push([canvas, width]);
    }
    for (const [canvas, width] of waiting) canvas.reserve(width);
    const isNear = waiting.map(([{ box }]) => {
      const { top, bottom } = box.getBoundingClientRect();
      return bottom > -MARGIN && top < window.innerHeight + MARGIN;
    });
    waiting.forEach(([canvas, width], i) => {
      if (isNear[i]) canvas.take(width);
      else this.later.add(canvas.box, () => canvas.take(width));
    });
  });

  constructor(private readonly later: Later) {}

  /// Gives back what draws it again.
  add(box: HTMLElement, { draw, height }: ForWidth): Redraw {
    let width = UNSIZED;
    let drawn = 0;
    const redraw = () => {
      this.later.drop(box);
      drawn = width;
      draw(width);
      box.style.minHeight = '';
    };
    if (!this.observer) {
      redraw();
      return redraw;
    }
    const take = (now: number) => {
      if (now < LEAST || Math.abs(now - drawn) < 4) return;
      width = now;
      redraw();
    };
    const reserve = (now: number) => {
      width = now;
      if (height) box.style.minHeight = `${Math.round(height(now))}px`;
    };
    this.canvases.set(box, { box, take, reserve, isDrawn: () => drawn > 0 || !height });
    this.observer.observe(box);
    // Paper has another width, which is laid out only while it prints.
    box.addEventListener('measure', () => take(Math.floor(box.clientWidth)));
    box.addEventListener('focus', () => this.later.now(box));
    return redraw;
  }
}

const LEAST = 40;     // pixels of width: in less nothing can be drawn
const MARGIN = 150;   // around the window: what is drawn before the first paint
