// The one tip of the page: what is said at a spot, beside it and always inside the window; and the line in which a
// screen reader hears it.

import { h } from '../dom';
import type { Spot } from './drawing';

const MARGIN = 8;
const BESIDE = 14;

export class Tip {
  readonly element = h('div', { 'class': 'tip', 'role': 'tooltip', 'hidden': true });
  readonly live = h('p', { 'class': 'unseen', 'role': 'status', 'aria-live': 'polite' });

  /// The drawing that shows it now: another one that is left does not take it away.
  owner: object | null = null;

  /// `at`: where the spot is in the window.
  show(spot: Spot, at: { x: number; y: number }, owner: object): void {
    const { element } = this;
    this.owner = owner;
    if (element.dataset.title !== spot.title || element.hidden || element.dataset.x !== String(spot.x) || element.dataset.y !== String(spot.y)) {
      element.replaceChildren(h('b', {}, spot.title), h('dl', {}, ...spot.rows.flatMap(([name, value]) => [h('dt', {}, name), h('dd', {}, value)])));
      Object.assign(element.dataset, { title: spot.title, x: String(spot.x), y: String(spot.y) });
    }
    element.hidden = false;
    const { offsetWidth: width, offsetHeight: height } = element;
    const right = document.documentElement.clientWidth - width - MARGIN;
    const bottom = window.innerHeight - height - MARGIN;
    let left = at.x + BESIDE;
    if (left > right) left = at.x - BESIDE - width;
    let top = at.y - height - BESIDE;
    if (top < MARGIN) top = at.y + BESIDE;
    element.style.left = `${Math.max(MARGIN, Math.min(left, right))}px`;
    element.style.top = `${Math.max(MARGIN, Math.min(top, bottom))}px`;
  }

  say({ title, rows }: Spot): void {
    this.live.textContent = `${title}: ${rows.map(([name, value]) => `${name} ${value}`).join(', ')}`;
  }

  hide(): void {
    this.element.hidden = true;
  }
}
