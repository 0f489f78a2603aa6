// A command that can be run as it stands, with the button that copies it.

import { h } from '../dom';
import { copyButton } from './save';

export const renderCommand = (command: string, what: string): HTMLElement =>
  h('div', { class: 'command' }, h('code', { title: command }, command), copyButton('Copy', () => command, `the command: ${what}`));
