// A figure with its views, and the plots of sections, which are figures of one view.

import { h } from '../dom';
import { csvOfSeries } from '../data/csv';
import type { Figure, Plot, Series, View } from '../data/report';
import { rove } from '../roving';
import { plotAsTable } from './as-table';
import { drawBars, heightOfBars, keysOfBars } from './bars';
import { renderCard } from './card';
import type { Colours } from './colours';
import type { Around } from './explore';
import { drawDots, heightOfDots, isOneColumn } from './dots';
import { drawLines } from './lines';
import { emptySeries, renderFields } from './recompute';

export interface Context extends Around { colours: Colours }

const isEmpty = ({ series }: { series: Plot['series'] }) => series.every(({ points }) => points.every(({ y }) => y === null));

/// The height that a width deserves. A hero is wider than high, and lower still where it would leave the first screen.
function heightOf(width: number, isHero: boolean, canvas: HTMLElement): number {
  if (!isHero || width < 520) return Math.round(Math.min(360, Math.max(260, width * 0.6)));
  const wanted = Math.round(Math.min(440, Math.max(290, width * 0.36)));
  // A sheet holds the answer with its warnings above the hero.
  if (canvas.closest('.paper')) return LEAST;
  if (window.innerHeight < LOW) return wanted;
  const legend = canvas.previousElementSibling;
  const top = canvas.getBoundingClientRect().top + window.scrollY + (legend?.childElementCount ? 0 : LEGEND);
  return Math.max(LEAST, Math.min(wanted, Math.floor(window.innerHeight - top - 6)));
}

const LOW = 700;     // a window too low to hold the first screen in any case
const LEGEND = 52;   // height of a legend that is drawn with the figure for the first time
const LEAST = 230;

export function renderFigure(figure: Figure, context: Context, isHero = false): HTMLElement {
  const tried = new Map<string, Series>();
  const views = figure.views.filter((view) => !isEmpty(view)).map((view) => {
    if (!figure.recomputed) return view;
    tried.set(view.name, emptySeries());
    return { ...view, series: [...view.series, tried.get(view.name)!] };
  });
  if (views.length === 0) return h('figure', { class: 'card', id: figure.id }, h('figcaption', {}, h('h3', {}, figure.finding)), h('p', { class: 'empty' }, 'No figures to draw.'));
  let view: View = views[0]!;
  const shown = new Map(views.map((one) => [one, one.series.map(({ hidden }) => !hidden)]));
  const looks = new Map(views.map((one) => [one, context.colours.lines(one.series)]));
  const chooser = views.length > 1 ? h('div', { 'class': 'views', 'role': 'group', 'aria-label': 'View' }) : null;
  const card = renderCard(figure, isHero ? 'hero' : 'lines', {
    draw: (width, canvas) => (isOneColumn(view) ? drawDots(view, { width, looks: looks.get(view)!, shown: shown.get(view)! }) : drawLines(view, { width, height: heightOf(width, isHero, canvas), looks: looks.get(view)!, shown: shown.get(view)! })),
    height: (width, canvas) => (isOneColumn(view) ? heightOfDots(view, { width, shown: shown.get(view)! }) : heightOf(width, isHero, canvas)),
    table: () => plotAsTable({ id: figure.id, title: view.finding || figure.finding, x: view.x, y: view.y, series: view.series, categories: null }),
    csv: () => csvOfSeries(view),
    // Rows that are named need no switches.
    series: () => (isOneColumn(view) && view.series.every(({ points }) => points.length === 1) ? [] : view.series.map(({ name, dashed }, k) => ({ name, dashed, k, look: looks.get(view)![k]! }))),
    shown: () => shown.get(view)!,
    toggle: (k) => {
      const list = shown.get(view)!;
      list[k] = !list[k];
      if (!list.some(Boolean)) list[k] = true;  // the last one stays
    },
  }, context, chooser);
  for (const one of chooser ? views : []) {
    const button = h('button', { 'type': 'button', 'aria-pressed': one === view ? 'true' : 'false' }, one.name);
    button.addEventListener('click', () => {
      view = one;
      for (const other of chooser!.children) other.setAttribute('aria-pressed', other === button ? 'true' : 'false');
      card.explorer.leave();
      card.say(view.finding || figure.finding, view.note || figure.note);
      const figures = card.figure.querySelector<HTMLDetailsElement>('details.figures');
      if (figures?.open) figures.dispatchEvent(new Event('toggle'));
      card.redraw();
    });
    chooser!.append(button);
  }
  if (chooser) rove(chooser);
  if (figure.recomputed) card.figure.append(renderFields(figure, figure.recomputed, tried, card.redraw));
  return card.figure;
}

export function renderPlot(plot: Plot, context: Context): HTMLElement {
  if (plot.kind === 'line' || isEmpty(plot)) {
    return renderFigure({ type: 'figure', id: plot.id, finding: plot.title, note: plot.caption, views: [{ name: '', x: plot.x, y: plot.y, series: plot.series, marks: [], finding: '', note: '' }] }, context);
  }
  return renderCard({ id: plot.id, finding: plot.title, note: plot.caption }, 'bars', {
    draw: (width) => drawBars(plot, width, context.colours),
    height: (width) => heightOfBars(plot, width),
    keys: () => keysOfBars(plot, context.colours),
    table: () => plotAsTable(plot),
    csv: () => csvOfSeries(plot, plot.categories),
  }, context).figure;
}
