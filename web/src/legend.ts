// What signs and colours of a plot mean. Pointing at a series, in the legend or at its name, dims the others.

import { h, svg } from './dom';
import type { Look } from './colours';
import { outline, signOf, type Shape } from './marks';
import { dashesOf } from './style';

export interface LegendEntry {
  sign: 'line' | 'dashed' | 'box' | 'whisker' | 'band' | 'none' | Shape;
  text: string;
  colour?: string;
  look?: Look;  // of a line
  series?: number;
}

function drawSign({ sign, look, colour = look?.colour ?? 'var(--ink-soft)' }: LegendEntry): Element | null {
  const box = (...children: Element[]) =>
    svg('svg', { 'width': 22, 'height': 14, 'viewBox': '-11 -7 22 14', 'aria-hidden': true }, ...children);
  switch (sign) {
    case 'none': return null;
    case 'line': return box(
      svg('path', { 'd': 'M-11,0H11', 'stroke': colour, 'stroke-width': 2.4, 'stroke-dasharray': dashesOf(look?.round ?? 0), 'stroke-linecap': look?.round ? 'round' : undefined }),
      signOf(look?.slot ?? 0, colour));
    case 'dashed': return box(svg('path', { 'd': 'M-10,0H10', 'stroke': colour, 'stroke-width': 1.6, 'stroke-dasharray': '5 3' }));
    case 'box': return box(svg('rect', { x: -6, y: -6, width: 12, height: 12, rx: 2, fill: colour }));
    case 'whisker': return box(svg('path', { 'd': 'M0,-6V6M-3,-6H3M-3,6H3', 'stroke': colour, 'stroke-width': 1.6 }));
    case 'band': return box(svg('rect', { 'x': -10, 'y': -5, 'width': 20, 'height': 10, 'fill': colour, 'fill-opacity': 0.25 }));
    default: return box(outline(sign, { stroke: colour }));
  }
}

export function renderLegend(list: HTMLElement, entries: readonly LegendEntry[]): void {
  list.replaceChildren(...entries.map((entry) =>
    h('li', { 'data-series': entry.series, 'class': entry.sign === 'none' && 'remark' }, drawSign(entry), h('span', {}, entry.text))));
}

export function dimOthers(figure: HTMLElement): void {
  const light = (series: string | undefined) => {
    for (const part of figure.querySelectorAll('.canvas [data-series], .legend [data-series]')) {
      part.classList.toggle('dim', series !== undefined && part.getAttribute('data-series') !== series);
    }
  };
  figure.addEventListener('pointerover', (event) => {
    const part = event.target instanceof Element ? event.target.closest('.legend [data-series], .ends [data-series]') : null;
    light(part?.getAttribute('data-series') ?? undefined);
  });
  figure.addEventListener('pointerleave', () => light(undefined));
}
