// The page of a report: head (title, warnings, circumstances), contents, sections, foot.

import { Colours } from './colours';
import { h, prose } from './dom';
import { renderContents } from './contents';
import { renderPlot } from './plot';
import type { Block, Paragraph, Report, Section } from './schema';
import { renderTable } from './table';

export function renderPage(report: Report, json: string): HTMLElement {
  const colours = new Colours(report);
  const page = h('div', { class: 'page' },
    h('a', { class: 'skip', href: '#report' }, 'Skip to the report'),
    renderHead(report),
    renderContents(report.sections),
    h('main', { id: 'report', tabindex: -1 }, ...report.sections.map((section) => renderSection(section, colours))),
    renderFoot(json));
  giveOwnNames(page);
  return page;
}

/// Blocks may share a name, with each other (each training has its table) or with their section; an address is of one
/// element: training, training-2, ...
function giveOwnNames(page: HTMLElement): void {
  const sections = [...page.querySelectorAll('[id]')].filter((element) => element.tagName !== 'FIGURE');
  const taken = new Set(sections.map(({ id }) => id));
  for (const figure of page.querySelectorAll('figure[id]')) {
    const name = figure.id;
    for (let i = 2; taken.has(figure.id); ++i) figure.id = `${name}-${i}`;
    taken.add(figure.id);
  }
}

function renderHead({ title, subtitle, warnings, facts }: Report): HTMLElement {
  return h('header', { class: 'head' },
    h('p', { class: 'brand' }, 'Paceline'),
    h('h1', {}, title.replace(/^Paceline( report)?: /, '')),
    subtitle !== '' && h('p', { class: 'subtitle' }, prose(subtitle)),
    warnings.length > 0 && h('section', { 'class': 'warnings', 'aria-label': 'Warnings' },
      h('strong', {}, warnings.length === 1 ? 'Before you read on' : `Before you read on: ${warnings.length} things`),
      h('ul', {}, ...warnings.map((text) => h('li', {}, prose(text))))),
    facts.length > 0 && h('details', { class: 'facts' },
      h('summary', {}, 'Circumstances'),
      h('dl', {}, ...facts.map(({ name, value }) => h('div', {}, h('dt', {}, name), h('dd', {}, prose(value)))))));
}

function renderSection({ id, title, blocks }: Section, colours: Colours): HTMLElement {
  return h('section', { id, 'aria-labelledby': `${id}-title` },
    h('h2', { id: `${id}-title` }, title, h('a', { 'class': 'anchor', 'href': `#${id}`, 'aria-label': 'Link to this section' }, '#')),
    ...grouped(blocks).map((group) => group.length === 1
      ? renderBlock(group[0]!, colours)
      : h('div', { class: 'side-by-side' }, ...group.map((block) => renderBlock(block, colours)))));
}

/// Neighbouring plots stand side by side where the window is wide.
function grouped(blocks: readonly Block[]): Block[][] {
  const groups: Block[][] = [];
  for (const block of blocks) {
    const last = groups[groups.length - 1];
    const wide = block.type !== 'plot' || block.categories.length > 8;
    if (last?.[0]?.type === 'plot' && !wide && last[0].categories.length <= 8) last.push(block);
    else groups.push([block]);
  }
  return groups;
}

/// The kinds of blocks, one line each.
function renderBlock(block: Block, colours: Colours): HTMLElement {
  switch (block.type) {
    case 'paragraph': return renderParagraph(block);
    case 'table': return renderTable(block);
    case 'plot': return renderPlot(block, colours);
  }
}

function renderParagraph({ tone, text }: Paragraph): HTMLElement {
  // A question in front is what the paragraph answers: it leads.
  const [, question = '', answer = text] = /^([^.?!]{3,60}\?)( .*)$/s.exec(text) ?? [];
  const words = h('span', {}, question && h('strong', { class: 'lead' }, prose(question)), prose(answer));
  if (tone === 'plain') return h('p', { class: 'prose' }, words);
  return h('p', { class: `prose ${tone}` },
    h('span', { class: 'tone' }, tone === 'finding' ? 'Finding' : 'Warning'), words);
}

function renderFoot(json: string): HTMLElement {
  const save = h('button', { type: 'button', class: 'tool' }, 'Save the data of this page (JSON)');
  save.addEventListener('click', () => {
    const link = h('a', { href: URL.createObjectURL(new Blob([json], { type: 'application/json' })), download: 'report.json' });
    link.click();
    URL.revokeObjectURL(link.href);
  });
  return h('footer', { class: 'foot' },
    h('p', {}, 'Made by Paceline. This file holds everything it shows and fetches nothing.'), save);
}

/// The page instead of a report: says why there is none.
export function renderFailure(message: string): HTMLElement {
  return h('div', { class: 'page failure' },
    h('header', { class: 'head' }, h('p', { class: 'brand' }, 'Paceline'), h('h1', {}, 'No report'), h('p', { role: 'alert' }, message)));
}
