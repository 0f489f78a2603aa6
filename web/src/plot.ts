// A plot as a figure: title, legend, drawing, caption, and its figures as a table behind a fold (for a screen
// reader, a keyboard, or somebody who wants the number). What is drawn is in plot-line.ts and plot-bar.ts.

import type { Colours } from './colours';
import type { Drawing } from './drawing';
import { h, prose } from './dom';
import { dimOthers, renderLegend } from './legend';
import { drawBars } from './plot-bar';
import { drawLines } from './plot-line';
import { plotAsTable } from './plot-table';
import type { Plot } from './schema';
import { renderGrid } from './table';

/// One function for a kind of plot: draws it for a width in pixels.
const kinds: Record<Plot['kind'], (plot: Plot, width: number, colours: Colours) => Drawing> = {
  line: drawLines,
  stacked_bar: drawBars,
};

export function renderPlot(plot: Plot, colours: Colours): HTMLElement {
  const legend = h('ul', { class: 'legend' });
  const canvas = h('div', { class: 'canvas' });
  const figure = h('figure', { class: `plot ${plot.kind}`, id: plot.id },
    h('figcaption', {}, h('h3', {}, plot.title), plot.caption !== '' && h('p', { class: 'caption' }, prose(plot.caption))),
    legend, canvas);

  if (plot.series.every(({ points }) => points.every(({ y }) => y === null))) {
    canvas.append(h('p', { class: 'empty' }, 'No figures to draw.'));
    return figure;
  }
  figure.append(behindFold('Figures of this plot', () => renderGrid(plotAsTable(plot))));
  whenSized(canvas, (width) => {
    let drawing: Drawing;
    try {
      drawing = kinds[plot.kind](plot, width, colours);
    } catch (error) {
      canvas.replaceChildren(h('p', { class: 'empty' }, `This plot could not be drawn (${(error as Error).message}); its figures are below.`));
      return;
    }
    drawing.image.setAttribute('role', 'img');
    drawing.image.setAttribute('aria-label', `Plot: ${plot.title}. ${plot.caption}`);
    canvas.replaceChildren(drawing.image);
    renderLegend(legend, drawing.legend);
  });
  dimOthers(figure);
  return figure;
}

/// Makes the content when it is first asked for: a large study has many such tables.
function behindFold(title: string, make: () => HTMLElement): HTMLElement {
  const fold = h('details', { class: 'figures' }, h('summary', {}, title));
  fold.addEventListener('toggle', () => { if (fold.open && fold.childElementCount === 1) fold.append(make()); });
  return fold;
}

/// Where nothing is laid out (tests).
const UNSIZED = 640;

/// Calls `draw` with the width of `box`: before the first paint, and again when it changes by a visible amount.
function whenSized(box: HTMLElement, draw: (width: number) => void): void {
  if (typeof ResizeObserver === 'undefined') {
    draw(UNSIZED);
    return;
  }
  let drawn = 0;
  new ResizeObserver((entries) => {
    const width = Math.floor(entries[entries.length - 1]!.contentRect.width);
    if (width < 40 || Math.abs(width - drawn) < 4) return;
    drawn = width;
    draw(width);
  }).observe(box);
}
