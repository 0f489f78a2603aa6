// What the user expected of the figures (--expect): a line each, with a chip that says whether it holds.

import { h, prose } from '../dom';
import type { Expectation, Report, Verdict } from '../data/report';

/// Sign, and the class of the answers' chips whose colours it wears.
const looks: Record<Verdict, readonly [string, string]> = {
  pass: ['✓', 'decided'], fail: ['✗', 'careful'], not_decided: ['?', 'not_decided'], not_measured: ['–', 'not_measured'],
};

function line({ text, verdict, figure, mark, why }: Expectation): HTMLElement {
  const [sign, look] = looks[verdict];
  return h('li', { class: verdict },
    h('span', { class: `chip ${look}` }, h('span', { 'class': 'sign', 'aria-hidden': true }, sign), h('span', {}, verdict.replaceAll('_', ' '))),
    h('b', {}, text), figure !== '' && h('span', {}, figure), mark !== '' && h('span', { class: 'mark' }, `~ ${mark}`), why !== '' && h('span', {}, prose(why)));
}

export function renderExpectations({ expectations }: Report): HTMLElement | null {
  if (expectations.length === 0) return null;
  return h('ul', { 'class': 'expectations', 'aria-label': 'Expectations' }, ...expectations.map(line));
}
