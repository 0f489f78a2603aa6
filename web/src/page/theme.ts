// Light or dark: as the system says, until the reader chooses. The choice is kept where the browser lets a page keep one.

import { h } from '../dom';

export type Theme = 'light' | 'dark';
const KEY = 'paceline-theme';

function kept(): Theme | null {
  try {
    const value = localStorage.getItem(KEY);
    return value === 'light' || value === 'dark' ? value : null;
  } catch {
    return null;
  }
}

function keep(theme: Theme): void {
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // A page from a file may keep nothing: the choice then holds until it is closed.
  }
}

/// Sets the theme of the document, follows the system, and gives back the button that changes it.
export function themeButton(): HTMLButtonElement {
  const system = typeof matchMedia === 'function' ? matchMedia('(prefers-color-scheme: dark)') : null;
  const sign = h('span', { 'aria-hidden': true }, '◐');
  const button = h('button', { type: 'button', class: 'tool theme' }, sign, ' ', h('span', { class: 'word' }, ''));
  let chosen = kept();
  const apply = () => {
    const theme = chosen ?? (system?.matches ? 'dark' : 'light');
    document.documentElement.dataset.theme = theme;
    button.lastElementChild!.textContent = theme === 'dark' ? 'Light' : 'Dark';
    button.title = theme === 'dark' ? 'Light theme' : 'Dark theme';
  };
  button.addEventListener('click', () => {
    chosen = document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark';
    keep(chosen);
    apply();
  });
  const onSystem = () => { button.isConnected ? apply() : system?.removeEventListener('change', onSystem); };
  system?.addEventListener?.('change', onSystem);
  apply();
  return button;
}
