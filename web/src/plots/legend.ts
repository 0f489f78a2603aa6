// What signs and colours of a drawing mean, and the switches of its lines. Pointing at a line's name, here or at its
// end, dims the others.

import { h, svg } from '../dom';
import { rove } from '../roving';
import type { Key, Named } from './drawing';
import { signOf } from './marks';
import { dashesOf, IDEAL } from './style';

const box = (...children: (Element | null)[]) =>
  svg('svg', { 'width': 24, 'height': 14, 'viewBox': '-12 -7 24 14', 'aria-hidden': true }, ...children);

function lineSign({ look: { colour, slot, round }, dashed }: Named): Element {
  return dashed
    ? box(svg('path', { 'd': 'M-12,0H12', 'stroke': colour, 'stroke-width': 1.6, 'stroke-dasharray': IDEAL }))
    : box(svg('path', { 'd': 'M-12,0H12', 'stroke': colour, 'stroke-width': 2.2, 'stroke-dasharray': dashesOf(round), 'stroke-linecap': round ? 'round' : undefined }),
        signOf(slot + 3 * round, colour));
}

function keySign({ sign, colour = 'var(--ink-soft)' }: Key): Element | null {
  switch (sign) {
    case 'none': return null;
    case 'box': return box(svg('rect', { x: -6, y: -6, width: 12, height: 12, rx: 2, fill: colour }));
    case 'striped': return box(svg('rect', { x: -6, y: -6, width: 12, height: 12, rx: 2, fill: colour }), svg('path', { 'd': 'M-6,2L2,-6M-2,6L6,-2', 'stroke': 'var(--card)', 'stroke-width': 2, 'stroke-opacity': 0.75 }));
    case 'whisker': return box(svg('path', { 'd': 'M0,-6V6M-3.5,-6H3.5M-3.5,6H3.5', 'stroke': colour, 'stroke-width': 1.6 }));
    case 'band': return box(svg('rect', { 'x': -11, 'y': -5, 'width': 22, 'height': 10, 'fill': colour, 'fill-opacity': 0.25 }));
    case 'hatch': return box(svg('path', { 'd': 'M-8,6L4,-6M-3,6L9,-6M-12,5L-1,-6', 'stroke': colour, 'stroke-width': 1.3 }));
    case 'ring': return box(svg('circle', { 'r': 5.5, 'stroke': colour, 'stroke-width': 2, 'fill': 'none' }));
    default: return box(signOf(0, colour, sign));
  }
}

export interface LegendOf {
  series: readonly (Named & { k: number })[];
  shown: readonly boolean[];
  keys: readonly Key[];
  onToggle: (k: number) => void;
}

/// Of so many lines those that are not shown have a switch too; of more they are behind one button.
const FEW = 6;

/// Switches of the lines, then what the signs mean. Of one line alone there is nothing to switch.
export function renderLegend(list: HTMLElement, { series, shown, keys, onToggle }: LegendOf): void {
  const focused = list.contains(document.activeElement) ? document.activeElement?.getAttribute('data-series') : null;
  const hasSwitches = series.length > 1;
  const isOpen = list.classList.contains('open');
  const isListed = (k: number) => isOpen || shown[k] || series.length <= FEW;
  const hidden = series.filter(({ k }) => !isListed(k)).length;
  const more = h('button', { type: 'button', class: 'switch more' }, `${hidden} more`);
  more.addEventListener('click', () => {
    list.classList.add('open');
    renderLegend(list, { series, shown, keys, onToggle });
  });
  list.replaceChildren(
    ...(hasSwitches ? series.filter(({ k }) => isListed(k)).map((one) => {
      const button = h('button', { 'type': 'button', 'class': 'switch', 'aria-pressed': shown[one.k] ? 'true' : 'false', 'data-series': one.k }, lineSign(one), h('span', {}, one.name));
      button.addEventListener('click', () => onToggle(one.k));
      return h('li', {}, button);
    }) : []),
    hidden > 0 && hasSwitches && !isOpen ? h('li', {}, more) : '',
    ...keys.map((key) => h('li', { class: 'key' }, keySign(key), h('span', {}, key.text))));
  list.hidden = list.childElementCount === 0;
  rove(list);
  if (focused !== null) list.querySelector<HTMLElement>(`button[data-series="${focused}"]`)?.focus();
}

export function dimOthers(figure: HTMLElement): void {
  const light = (series: string | undefined) => {
    for (const part of figure.querySelectorAll('.canvas [data-series]')) {
      part.classList.toggle('dim', series !== undefined && part.getAttribute('data-series') !== series);
    }
  };
  figure.addEventListener('pointerover', (event) => {
    const part = event.target instanceof Element ? event.target.closest('.legend [data-series], .ends [data-series]') : null;
    light(part?.getAttribute('aria-pressed') === 'false' ? undefined : part?.getAttribute('data-series') ?? undefined);
  });
  figure.addEventListener('pointerleave', () => light(undefined));
}
