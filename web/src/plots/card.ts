// The card of a drawing: what one sees in it as its title, legend, the drawing itself (drawn for its width), and
// behind a fold its figures as a table and as files.

import { h, prose } from '../dom';
import { toCsv } from '../data/csv';
import type { Table } from '../data/report';
import { saveText } from '../page/save';
import { toolbar } from '../roving';
import { renderGrid } from '../table/grid';
import type { Drawing, Key, Named } from './drawing';
import { Explorer, type Around } from './explore';
import { savePng, saveSvg } from './export';
import { dimOthers, renderLegend } from './legend';
import type { Redraw } from './sized';

/// What a card needs of a kind of drawing.
export interface Drawable {
  draw(width: number, canvas: HTMLElement): Drawing;
  /// How high it will be: below the first screen it is drawn later, and the room kept free until then.
  height(width: number, canvas: HTMLElement): number;
  table(): Table;                ///< its figures
  csv?(): string;                ///< as a file, where that is more than the table
  keys?(): Key[];                ///< its legend, where that is known before it is drawn
  series?(): (Named & { k: number })[];
  shown?(): readonly boolean[];
  toggle?(k: number): void;
}

export interface Said { id: string; finding: string; note: string }

export interface Card {
  figure: HTMLElement;
  canvas: HTMLElement;
  explorer: Explorer;
  redraw: Redraw;
  /// Says another thing: of another view.
  say(finding: string, note: string): void;
}

export function renderCard({ id, finding, note }: Said, kind: string, drawable: Drawable, around: Around, controls: HTMLElement | null = null): Card {
  const legend = h('ul', { class: 'legend' });
  const canvas = h('div', {
    'class': 'canvas', 'tabindex': 0, 'role': 'application', 'aria-roledescription': 'chart', 'aria-label': `${finding}. Arrow keys walk through it.`,
  });
  const title = h('h3', {}, prose(finding));
  const under = h('p', { class: 'note' }, prose(note));
  under.hidden = note === '';
  const figure = h('figure', { class: `card drawn ${kind}`, id },
    h('figcaption', {}, h('div', { class: 'head' }, title, controls), under),
    legend, canvas, fold(id, finding, drawable, around, canvas));
  const explorer = new Explorer(canvas, around);
  const redraw = around.sized.add(canvas, { height: roomFor, draw });
  /// Of what waits the legend is there already, as far as it is known.
  function roomFor(width: number): number {
    if (kind !== 'hero' && !canvas.firstChild) showLegend(drawable.keys?.() ?? []);
    return drawable.height(width, canvas);
  }
  function draw(width: number) {
    let drawing: Drawing;
    try {
      drawing = drawable.draw(width, canvas);
    } catch (error) {
      canvas.replaceChildren(h('p', { class: 'empty' }, `This plot could not be drawn (${(error as Error).message}); its figures are below.`));
      return;
    }
    drawing.image.setAttribute('aria-hidden', 'true');
    drawing.image.removeAttribute('role');
    canvas.replaceChildren(drawing.image);
    explorer.take(drawing);
    showLegend(drawing.keys);
  }
  function showLegend(keys: readonly Key[]) {
    renderLegend(legend, {
      series: drawable.series?.() ?? [], shown: drawable.shown?.() ?? [], keys,
      onToggle: (k) => {
        drawable.toggle?.(k);
        redraw();
      },
    });
  }
  dimOthers(figure);
  function say(seen: string, how: string) {
    title.replaceChildren(prose(seen));
    under.replaceChildren(prose(how));
    under.hidden = how === '';
    canvas.setAttribute('aria-label', `${seen}. Arrow keys walk through it.`);
  }
  return { figure, canvas, explorer, redraw, say };
}

/// Made when it is first opened: a large study has many such tables.
function fold(id: string, title: string, drawable: Drawable, { later }: Around, canvas: HTMLElement): HTMLElement {
  const summary = h('summary', {}, 'Figures, CSV, SVG, PNG');
  const details = h('details', { class: 'figures' }, summary);
  const button = (name: string, act: () => void) => {
    const element = h('button', { type: 'button', class: 'tool' }, name);
    element.addEventListener('click', act);
    return element;
  };
  const withImage = (act: (image: SVGSVGElement) => void) => () => {
    later.now(canvas);
    const drawn = canvas.querySelector('svg');
    if (drawn) act(drawn);
  };
  details.addEventListener('toggle', () => {
    if (!details.open) return;
    const grid = renderGrid(drawable.table(), later);
    grid.show();
    details.replaceChildren(summary,
      toolbar('Files', 'files',
        button('CSV', () => saveText(`${id}.csv`, 'text/csv', drawable.csv?.() ?? toCsv(drawable.table()))),
        button('SVG', withImage((drawn) => saveSvg(drawn, `${id}.svg`, title))),
        button('PNG', withImage((drawn) => void savePng(drawn, `${id}.png`, title)))),
      grid.element);
  });
  return details;
}
