// What leaves the page: files to save and texts to copy.

import { h } from '../dom';

export function saveBlob(name: string, blob: Blob): void {
  const link = h('a', { href: URL.createObjectURL(blob), download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

export const saveText = (name: string, type: string, text: string): void => saveBlob(name, new Blob([text], { type }));

/// The clipboard's interface is closed to some pages opened from a file: then the old way through a selection.
async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = h('textarea', { class: 'unseen' });
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand('copy');
    area.remove();
    return done;
  }
}

/// A button that copies, and says so for a moment.
export function copyButton(name: string, text: () => string, hidden = ''): HTMLButtonElement {
  const word = h('span', {}, name);
  const button = h('button', { type: 'button', class: 'tool copy' }, word, hidden && h('span', { class: 'unseen' }, ` ${hidden}`));
  button.addEventListener('click', () => {
    void copy(text()).then((done) => {
      word.textContent = done ? 'Copied' : 'Not copied';
      setTimeout(() => { word.textContent = name; }, 1600);
    });
  });
  return button;
}
