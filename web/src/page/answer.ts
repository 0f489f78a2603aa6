// The first screen: what to do, a tile for each question, the hero figure, and what to do next.

import { h, prose } from '../dom';
import { formatDuration } from '../data/format';
import type { Answer, Next } from '../data/report';
import type { Context } from '../plots/figure';
import { renderMini } from '../plots/mini';
import { renderCommand } from './command';
import { chip } from './chip';

/// Numbers with what they count stand out in a headline, up to its colon.
function headline(text: string): (Node | string)[] {
  const [, choice = text, rest = ''] = /^([^:]*)(:.*)?$/s.exec(text) ?? [];
  const parts = choice.split(/(\d[\d,.]* [^\s,.;:]+)/).map((part, i) => (i % 2 === 1 ? h('b', {}, part) : part));
  return [...parts, prose(rest)];
}

export function renderBest(answer: Answer): HTMLElement {
  const isSure = answer.certainty === 'decided' || answer.certainty === 'not_measured' || answer.chip === '';
  return h('div', { class: 'best' },
    h('div', {},
      h('h2', {}, ...headline(answer.figure)),
      h('p', {}, prose(answer.sentence), !isSure && ' ', !isSure && chip(answer.certainty, answer.chip))),
    answer.command !== '' && renderCommand(answer.command, 'what is best'));
}

/// `hasBars`: some tile beside it has a picture, so there is a row for it.
export function renderTile(answer: Answer, { links }: Context, hasBars = answer.bars !== null): HTMLElement {
  const { question, figure, unit, sentence, certainty, chip: word, evidence, records } = answer;
  const inside = [
    h('span', { class: 'question' }, question),
    h('span', { class: 'large' }, figure, unit && ' ', unit && h('small', {}, unit)),
    renderMini(answer.bars) ?? (hasBars ? h('span', { class: 'mini' }) : h('span')),
    h('span', { class: 'sentence' }, prose(sentence)),
    h('span', { class: 'verdict' }, chip(certainty, word)),
  ];
  const tile = evidence !== '' ? h('a', { class: `tile ${certainty}`, href: `#${evidence}` }, ...inside) : h('div', { class: `tile ${certainty}` }, ...inside);
  const [record = ''] = records;
  tile.addEventListener('pointerenter', () => links.light(record));
  tile.addEventListener('pointerleave', () => links.light(''));
  return tile;
}

export function renderNext({ steps, not_answered }: Next): HTMLElement {
  return h('section', { 'class': 'card next', 'aria-label': 'What to do next' },
    h('h3', {}, 'What to do next'),
    steps.length > 0 && h('ol', {}, ...steps.map(({ title, why, command, seconds }) => h('li', {},
      h('b', {}, prose(title)), seconds !== null && seconds > 0 && h('span', { class: 'duration' }, formatDuration(seconds)),
      why !== '' && h('p', {}, prose(why)),
      command !== '' && renderCommand(command, title)))),
    not_answered.length > 0 && h('div', { class: 'unanswered' }, h('b', {}, 'Not answered here'),
      h('ul', {}, ...not_answered.map((text) => h('li', {}, prose(text))))));
}
