// What the drawings share. Sizes in pixels; the font is set by theme.css (.drawing).

import type { RenderFunction } from '@observablehq/plot';

/// Height of a line of text in a plot.
export const LINE = 15;

/// The dashes of a line by how many lines of its plot had its colour before: none, dots, long dashes, then long
/// dashes with ever more dots between them. None is that of ideals and bounds (IDEAL).
export function dashesOf(round: number): string | undefined {
  if (round === 0) return undefined;
  return round === 1 ? '0.1 4.5' : ['10 4.5', ...Array<string>(round - 2).fill('0.1 4.5')].join(' ');
}
export const IDEAL = '5 4';

/// About the width of a text in a plot: measuring it would force a layout for every label.
export const textWidth = (text: string): number => Math.ceil(text.length * 6.7);

export const tipStyle = {
  fill: 'var(--raised)', stroke: 'var(--rule-strong)', textPadding: 9, lineHeight: 1.35, pathFilter: 'none',
} as const;

/// Writes the number of its series on what a mark draws, for the legend.
export const taggedAs = (series: number): RenderFunction =>
  function (index, scales, values, dimensions, context, next) {
    const element = next!(index, scales, values, dimensions, context);
    element?.setAttribute('data-series', String(series));
    return element;
  };
