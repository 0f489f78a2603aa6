// The contents: beside the report on a wide window, a line of links above it on a narrow one. The section that is
// being read is marked.

import { h } from './dom';
import type { Section } from './schema';

export function renderContents(sections: readonly Section[]): HTMLElement {
  const links = sections.map(({ id, title }) => h('a', { href: `#${id}` }, title));
  return h('nav', { 'class': 'contents', 'aria-label': 'Sections' },
    h('ol', {}, ...links.map((link) => h('li', {}, link))));
}

/// Marks the link of the uppermost section in view, as the reader scrolls.
export function followReading(page: HTMLElement): void {
  const sections = [...page.querySelectorAll<HTMLElement>('main > section')];
  const seen = new Set<Element>();
  const watch = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      if (isIntersecting) seen.add(target);
      else seen.delete(target);
    }
    const current = sections.find((section) => seen.has(section));
    for (const link of page.querySelectorAll('.contents a')) {
      if (current && link.getAttribute('href') === `#${current.id}`) link.setAttribute('aria-current', 'location');
      else link.removeAttribute('aria-current');
    }
  }, { rootMargin: '-10% 0px -70% 0px' });
  for (const section of sections) watch.observe(section);
}
