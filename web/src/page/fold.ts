// A section that is shut until somebody opens it, and made only then. An address that lies inside opens it.

import { h } from '../dom';

export function renderFold(id: string, title: string, make: () => HTMLElement[], inside: readonly string[] = []): HTMLElement {
  const details = h('details', { 'class': 'fold', id, 'data-inside': inside.join(' ') }, h('summary', {}, h('h2', {}, title)));
  details.addEventListener('toggle', () => { if (details.open) fill(); });
  function fill() {
    if (details.childElementCount > 1) return;
    details.append(h('div', { class: 'inside' }, ...make()));
  }
  details.addEventListener('unfold', fill);
  return details;
}

/// Brings what an address names into view; a fold around it opens.
export function openAddress(page: HTMLElement, hash: string): void {
  let name = hash.replace(/^#/, '');
  try {
    name = decodeURIComponent(name);
  } catch {
    // A name with a bare % is taken as it stands.
  }
  if (name === '') return;
  const named = () => page.querySelector(`[id="${CSS.escape(name)}"]`);
  if (!named()) {
    const around = [...page.querySelectorAll<HTMLDetailsElement>('details.fold')].find(({ dataset }) => dataset.inside?.split(' ').includes(name));
    around?.dispatchEvent(new Event('unfold'));
  }
  const target = named();
  const fold = target?.closest<HTMLDetailsElement>('details.fold');
  if (fold) fold.open = true;
  target?.scrollIntoView();
}
