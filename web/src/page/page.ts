// The page of a report: head, the answer (first screen), evidence, folded sections, foot.

import { h, prose } from '../dom';
import type { Block, Fact, Paragraph, Report, Section } from '../data/report';
import { Later } from '../later';
import { Colours } from '../plots/colours';
import { renderComparison } from '../plots/comparison';
import { renderFigure, renderPlot, type Context } from '../plots/figure';
import { renderHeatmap } from '../plots/heatmap';
import { Links } from '../plots/links';
import { renderStrip } from '../plots/strip';
import { renderTimeline } from '../plots/timeline';
import { Sized } from '../plots/sized';
import { Tip } from '../plots/tip';
import { renderWaterfall } from '../plots/waterfall';
import { renderTable } from '../table/table';
import { renderBest, renderNext, renderTile } from './answer';
import { renderContents } from './contents';
import { renderExpectations } from './expectations';
import { renderFold } from './fold';
import { renderGallery } from './gallery';
import { renderFoot, renderHead, renderTrust } from './head';

const ANSWER = 'answer';
/// A report of several set-ups has one such section each; the first is the first screen.
const isAnswer = (blocks: readonly Block[]) => blocks.some(({ type }) => type === 'answer');
const HERO = 'hero';

/// `later`: makes what stands below the first screen (main.ts begins it).
export function renderPage(report: Report, json: string, later = new Later()): HTMLElement {
  const context: Context = { colours: new Colours(report), tip: new Tip(), links: new Links(), later, sized: new Sized(later) };
  const answer = report.sections.find(({ id, blocks }) => id === ANSWER || isAnswer(blocks));
  const others = report.sections.filter((section) => section !== answer);
  const page = h('div', { class: 'page', style: `--best: ${context.colours.best}` },
    h('a', { class: 'skip', href: '#report' }, 'Skip to the report'),
    renderHead(report, json),
    h('main', { id: 'report', tabindex: -1 },
      renderTrust(report),
      renderExpectations(report),
      answer && renderAnswer(answer, context, true),
      renderContents(report.sections),
      h('div', { class: 'evidence' }, ...others.filter(({ folded }) => !folded).map((section) => (isAnswer(section.blocks) ? renderAnswer(section, context, false) : renderSection(section, context)))),
      h('div', { class: 'folds' },
        ...others.filter(({ folded }) => folded).map((section) =>
          renderFold(section.id, section.title, () => renderBlocks(section.blocks, context), section.blocks.flatMap((block) => ('id' in block ? [block.id] : [])))),
        report.facts.length > 0 && renderFold('circumstances', 'Circumstances', () => [renderFacts(report.facts)]))),
    renderFoot(report, json),
    context.tip.element, context.tip.live);
  giveOwnNames(page);
  return page;
}

/// Blocks may share a name, with each other (each training has its table) or with their section; an address is of one
/// element: training, training-2, ...
function giveOwnNames(page: HTMLElement): void {
  const taken = new Set([...page.querySelectorAll('[id]')].filter((element) => element.tagName !== 'FIGURE').map(({ id }) => id));
  for (const figure of page.querySelectorAll('figure[id]')) {
    const name = figure.id;
    for (let i = 2; taken.has(figure.id); ++i) figure.id = `${name}-${i}`;
    taken.add(figure.id);
  }
}

function renderAnswer({ id, title, blocks }: Section, context: Context, isFirst: boolean): HTMLElement {
  const answers = blocks.filter((block) => block.type === 'answer');
  const best = answers.find(({ question }) => question === '');
  const tiles = answers.filter((block) => block !== best);
  const hero = blocks.find((block) => block.type === 'figure' && block.id.startsWith(HERO)) ?? blocks.find((block) => block.type === 'figure') ?? blocks.find((block) => block.type === 'heatmap');
  const next = blocks.find((block) => block.type === 'next');
  const rest = blocks.filter((block) => block.type !== 'answer' && block !== hero && block !== next);
  return h('section', { 'id': id, 'class': isFirst ? 'answer' : 'answer part wide', 'aria-label': title },
    !isFirst && h('h2', {}, title),
    best && renderBest(best),
    tiles.length > 0 && h('ul', { class: 'tiles' }, ...tiles.map((one) => h('li', {}, renderTile(one, context, tiles.some(({ bars }) => bars !== null))))),
    (hero || next) && h('div', { class: hero && next ? 'columns' : '' },
      hero && (hero.type === 'figure' ? renderFigure(hero, context, true) : renderBlock(hero, context)), next && renderNext(next)),
    ...renderBlocks(rest, context));
}

const drawings = new Set<Block['type']>(['figure', 'plot', 'waterfall', 'timeline', 'comparison', 'strip', 'heatmap']);

/// A section is as wide as what it holds: with one drawing, or two in a very wide window, it stands beside others; with
/// more or with a table it takes the row.
function renderSection({ id, title, blocks }: Section, context: Context): HTMLElement {
  const drawn = blocks.filter(({ type }) => drawings.has(type)).length;
  const hasMore = blocks.some(({ type }) => type === 'table') || drawn > 2 || drawn === 0;
  const section = h('section', { 'id': id, 'class': hasMore ? 'part wide' : drawn === 2 ? 'part wide two' : 'part', 'aria-labelledby': `${id}-title` },
    h('h2', { id: `${id}-title` }, title),
    ...renderBlocks(blocks, context));
  // A title that says the section's again is not read twice.
  for (const again of section.querySelectorAll('h3')) if (again.textContent === title) again.classList.add('unseen');
  return section;
}

/// Neighbouring drawings stand side by side where the window is wide.
export function renderBlocks(blocks: readonly Block[], context: Context): HTMLElement[] {
  const groups: Block[][] = [];
  for (const block of blocks) {
    const last = groups[groups.length - 1];
    const isLong = (one: Block) => one.type === 'strip' || (one.type === 'plot' && one.categories.length > 8);
    if (last && drawings.has(block.type) && drawings.has(last[0]!.type) && !isLong(block) && !isLong(last[0]!)) last.push(block);
    else groups.push([block]);
  }
  return groups.map((group) => group.length === 1
    ? renderBlock(group[0]!, context)
    : h('div', { class: 'side-by-side' }, ...stacked(group).map((some) => {
      const elements = some.map((block) => renderBlock(block, context));
      return elements.length === 1 ? elements[0]! : h('div', { class: 'stack' }, ...elements);
    })));
}

/// Timelines among other drawings share one place: each is low, and one alone beside a figure leaves half of its card empty.
function stacked(group: readonly Block[]): Block[][] {
  if (group.every(({ type }) => type === 'timeline')) return group.map((block) => [block]);
  const places: Block[][] = [];
  for (const block of group) {
    const last = places[places.length - 1];
    if (block.type === 'timeline' && last?.[0]!.type === 'timeline') last.push(block);
    else places.push([block]);
  }
  return places;
}

/// The kinds of blocks, one line each.
function renderBlock(block: Block, context: Context): HTMLElement {
  switch (block.type) {
    case 'paragraph': return renderParagraph(block);
    case 'table': return renderTable(block, context);
    case 'plot': return renderPlot(block, context);
    case 'answer': return block.question === '' ? renderBest(block) : renderTile(block, context);
    case 'next': return renderNext(block);
    case 'figure': return renderFigure(block, context);
    case 'waterfall': return renderWaterfall(block, context);
    case 'timeline': return renderTimeline(block, context);
    case 'comparison': return renderComparison(block, context);
    case 'strip': return renderStrip(block, context);
    case 'heatmap': return renderHeatmap(block, context);
    case 'gallery': return renderGallery(block, context);
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

const renderFacts = (facts: readonly Fact[]) =>
  h('dl', { class: 'facts' }, ...facts.map(({ name, value }) => h('div', {}, h('dt', {}, name), h('dd', {}, prose(value)))));

/// The page instead of a report: says why there is none.
export function renderFailure(message: string): HTMLElement {
  return h('div', { class: 'page failure' },
    h('main', {}, h('p', { class: 'brand' }, 'Paceline'), h('h1', {}, 'No report'), h('p', { role: 'alert' }, message)));
}
