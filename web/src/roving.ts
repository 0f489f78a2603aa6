// A group of buttons as one stop of the Tab key: arrows, Home and End move inside it.

import { h } from './dom';

const roving = new WeakSet<HTMLElement>();

/// A row of buttons that act, as assistive programs know it.
export function toolbar(name: string, kind: string, ...buttons: HTMLElement[]): HTMLElement {
  const group = h('div', { 'class': kind, 'role': 'toolbar', 'aria-label': name }, ...buttons);
  rove(group);
  return group;
}

/// May be called again where the group's buttons have changed.
export function rove(group: HTMLElement, query = 'button'): void {
  const buttons = () => [...group.querySelectorAll<HTMLElement>(query)];
  const stopAt = (chosen: Element | undefined) => {
    for (const button of buttons()) button.tabIndex = button === chosen ? 0 : -1;
  };
  stopAt(buttons().find((button) => button.getAttribute('aria-pressed') === 'true') ?? buttons()[0]);
  if (roving.has(group)) return;
  roving.add(group);
  group.addEventListener('focusin', ({ target }) => { if (target instanceof Element && target.matches(query)) stopAt(target); });
  group.addEventListener('keydown', (event) => {
    const list = buttons();
    const i = list.indexOf(event.target as HTMLElement);
    const step = { ArrowRight: i + 1, ArrowLeft: i - 1, Home: 0, End: list.length - 1 }[event.key];
    if (i < 0 || step === undefined) return;
    event.preventDefault();
    list[(step + list.length) % list.length]!.focus();
  });
}
