// A command that can be run as it stands, with the button that copies it.

import { h } from '../dom';
import { copyButton } from './save';

/// Lines end between words, not at the hyphens of an option.
const inWords = (command: string) => command.split(' ').flatMap((word, i) => [i > 0 && ' ', h('span', {}, word)]);

export const renderCommand = (command: string, what: string): HTMLElement =>
  h('div', { class: 'command' }, h('code', { title: command }, ...inWords(command)), copyButton('Copy', () => command, `the command: ${what}`));
