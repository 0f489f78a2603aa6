// What the drawings share. Sizes in pixels.

import type { RenderFunction } from '@observablehq/plot';

/// Letters of all drawings: the size of --s1 in theme.css, whose font this list is too (to measure texts with it).
export const SIZE = 12;
export const SANS = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Noto Sans", "DejaVu Sans", sans-serif';

/// Height of a line of text in a plot.
export const LINE = 16;

/// The dashes of a line by how many lines of its plot had its colour before: none, dots, long dashes, then long
/// dashes with ever more dots between them. None is that of ideals and bounds (IDEAL).
export function dashesOf(round: number): string | undefined {
  if (round === 0) return undefined;
  return round === 1 ? '0.1 4.5' : ['10 4.5', ...Array<string>(round - 2).fill('0.1 4.5')].join(' ');
}
export const IDEAL = '5 4';

const pen = () => {
  try {
    return document.createElement('canvas').getContext('2d');
  } catch {
    return null;
  }
};
const pens = new WeakMap<Document, ReturnType<typeof pen>>();

/// The width of a text in a plot. Measured on a canvas, which lays nothing out; where there is none (tests), guessed.
export function textWidth(text: string, isStrong = false): number {
  if (!pens.has(document)) pens.set(document, pen());
  const canvas = pens.get(document);
  if (!canvas) return Math.ceil(text.length * (isStrong ? 7.6 : 7));
  canvas.font = `${isStrong ? 600 : 400} ${SIZE}px ${SANS}`;
  return Math.ceil(canvas.measureText(text).width);
}

/// A text in lines of at most `width` pixels, broken between words, inside one only if it alone is wider.
export function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && textWidth(`${line} ${word}`) > width) {
      lines.push(line);
      line = '';
    }
    line = line === '' ? word : `${line} ${word}`;
    const letters = Math.max(1, Math.floor(width / textWidth('m')));
    for (; textWidth(line) > width && line.length > letters; line = line.slice(letters)) lines.push(line.slice(0, letters));
  }
  return [...lines, line];
}

/// Writes the number of its series on what a mark draws, for the legend.
export const taggedAs = (series: number): RenderFunction =>
  function (index, scales, values, dimensions, context, next) {
    const element = next!(index, scales, values, dimensions, context);
    element?.setAttribute('data-series', String(series));
    return element;
  };

/// The library names its groups to screen readers, which may not read them there (the drawing is hidden from them: they
/// get the table and the spoken spots).
export function unlabel(image: Element): void {
  for (const group of image.querySelectorAll('g[aria-label]')) {
    group.setAttribute('data-mark', group.getAttribute('aria-label')!);
    group.removeAttribute('aria-label');
  }
}
