// A verdict: a sign, words and a colour, of which each alone says it.

import { h } from '../dom';
import type { Certainty } from '../data/report';

const signs: Record<Certainty, string> = { decided: '✓', tie: '≈', not_decided: '?', careful: '!', not_measured: '–' };

export const chip = (certainty: Certainty, text: string): HTMLElement =>
  h('span', { class: `chip ${certainty}` }, h('span', { 'class': 'sign', 'aria-hidden': true }, signs[certainty]), h('span', {}, text || certainty.replaceAll('_', ' ')));
