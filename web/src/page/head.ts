// The head of the page: title, circumstances, tools, and how far to trust what follows.

import { h, prose } from '../dom';
import { toCsv } from '../data/csv';
import type { Report, Table } from '../data/report';
import { toolbar } from '../roving';
import { chip } from './chip';
import { saveText } from './save';
import { themeButton } from './theme';

export function renderHead(report: Report, json: string): HTMLElement {
  const { title, subtitle, circumstances } = report;
  const [, brand = 'Paceline', name = title] = /^(Paceline[^:]*): (.*)$/s.exec(title) ?? [];
  const said = [subtitle, ...circumstances].filter((text) => text !== '');
  return h('header', { class: 'top' },
    h('div', { class: 'titles' },
      h('h1', {}, name),
      h('p', { class: 'meta' }, h('span', { class: 'brand' }, brand), ...said.map((text) => h('span', {}, prose(text))))),
    h('div', { class: 'tools' }, toolbar('This page', 'wide', ...tools(report, json)), themeButton()));
}

/// The table that has every cell: the one whose columns have groups, or the largest.
function cellsOf({ sections }: Report): Table | undefined {
  const tables = sections.flatMap(({ blocks }) => blocks).filter((block): block is Table => block.type === 'table');
  return tables.find(({ columns }) => columns.some(({ group }) => group !== ''));
}

function tools(report: Report, json: string): HTMLElement[] {
  const table = cellsOf(report);
  const button = (name: string, title: string, act: () => void) => {
    const element = h('button', { type: 'button', class: 'tool', title }, name);
    element.addEventListener('click', act);
    return element;
  };
  return [
    ...(table ? [button('CSV', 'Save every cell as CSV', () => saveText(`${table.id}.csv`, 'text/csv', toCsv(table)))] : []),
    button('JSON', 'Save the data of this page', () => saveText('report.json', 'application/json', json)),
    button('Print', 'Print this page', () => print()),
  ];
}

export function renderTrust({ trust, warnings }: Report): HTMLElement | null {
  if (trust === '' && warnings.length === 0) return null;
  const [, word, rest = trust] = /^([^:]{1,40}): (.*)$/s.exec(trust) ?? [];
  const count = warnings.length === 0 ? '' : `${warnings.length} ${warnings.length === 1 ? 'warning' : 'warnings'}`;
  const line = [
    chip('careful', word ?? (trust === '' ? count : 'careful')),
    (rest !== '' || word) && h('span', {}, prose(rest)),
    trust !== '' && count !== '' && h('span', { class: 'number' }, count),
  ];
  if (warnings.length === 0) return h('p', { class: 'trust' }, ...line);
  // The first is the most important one, and stands there.
  const [first = '', ...others] = warnings;
  const head = [...line, h('span', { class: 'first' }, prose(first))];
  if (others.length === 0) return h('p', { class: 'trust' }, ...head);
  return h('details', { 'class': 'trust' }, h('summary', {}, ...head), h('ul', {}, ...others.map((text) => h('li', {}, prose(text)))));
}

export function renderFoot(report: Report, json: string): HTMLElement {
  return h('footer', { class: 'foot' },
    h('p', {}, 'Made by Paceline. This file holds everything it shows and fetches nothing.'),
    toolbar('This page', 'tools', ...tools(report, json)));
}
