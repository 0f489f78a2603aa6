// The way through the page: a line of links that stays at the top while one reads below the first screen.

import { h } from '../dom';
import type { Section } from '../data/report';

export function renderContents(sections: readonly Section[]): HTMLElement | null {
  const open = sections.filter(({ folded }) => !folded);
  if (open.length < 3) return null;
  return h('nav', { 'class': 'contents', 'aria-label': 'Sections' },
    h('ul', {}, ...open.map(({ id, title }) => h('li', {}, h('a', { href: `#${id}` }, title)))));
}

/// Marks the link of the uppermost section in view, as the reader scrolls.
export function followReading(page: HTMLElement): void {
  const links = [...page.querySelectorAll('.contents a')];
  if (links.length === 0) return;
  const sections = [...page.querySelectorAll<HTMLElement>('main section[id]')].filter(({ id }) => links.some((link) => link.getAttribute('href') === `#${id}`));
  const seen = new Set<Element>();
  const watch = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      if (isIntersecting) seen.add(target);
      else seen.delete(target);
    }
    const current = sections.find((section) => seen.has(section));
    for (const link of links) {
      if (current && link.getAttribute('href') === `#${current.id}`) link.setAttribute('aria-current', 'location');
      else link.removeAttribute('aria-current');
    }
  }, { rootMargin: '-10% 0px -70% 0px' });
  for (const section of sections) watch.observe(section);
}
