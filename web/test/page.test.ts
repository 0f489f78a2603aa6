import { beforeAll, describe, expect, it } from 'vitest';
import { DATA_TAG, fill, joinPage } from '../build/one-file.mjs';
import { renderFold } from '../src/page/fold';
import { renderFailure, renderPage } from '../src/page/page';
import { blocksOf, oldJson, oldReport, reportOf, study } from './read';

describe('The page of a report of the schema before', () => {
  const page = () => renderPage(oldReport(), oldJson);
  it('begins with title, subtitle and warnings, and ends with the circumstances', () => {
    const element = page();
    expect(element.querySelector('h1')!.textContent).toBe('resnet18-cifar on synthetic');
    expect(element.querySelector('.meta')!.textContent).toContain('11,173,962 parameters');
    expect(element.querySelectorAll('.trust .first, .trust li')).toHaveLength(2);
    expect(element.querySelector('summary .first')).not.toBeNull();
    const fold = element.querySelector<HTMLDetailsElement>('#circumstances')!;
    fold.open = true;
    fold.dispatchEvent(new Event('toggle'));
    expect([...fold.querySelectorAll('dt')].map((name) => name.textContent)).toEqual(['CPU', 'instructions', 'build', 'command']);
  });
  it('shows every block', () => {
    const blocks = blocksOf(oldReport());
    const element = page();
    for (const [type, query] of [['table', 'figure.table'], ['plot', 'figure.drawn'], ['paragraph', 'main p.prose']] as const) {
      expect(element.querySelectorAll(query)).toHaveLength(blocks.filter((block) => block.type === type).length);
    }
  });
  it('gives no two elements one address', () => {
    const report = oldReport();
    report.sections.push(...report.sections.map((section) => ({ ...section, id: `${section.id}-again` })));
    report.sections[0]!.id = 'ledger';
    const ids = [...renderPage(report, '').querySelectorAll('[id]')].map(({ id }) => id);
    expect(ids.filter((id, i) => ids.indexOf(id) !== i)).toEqual([]);
    expect(ids).toContain('ledger-2');
  });
  it('says the tone of a paragraph in words too', () => {
    expect([...page().querySelectorAll('.tone')].map((tone) => tone.textContent)).toEqual(['Finding', 'Finding', 'Warning']);
  });
  it('takes words of a report for words, never for markup', () => {
    const report = oldReport();
    report.title = '<img src=x onerror=alert(1)>';
    const element = renderPage(report, '');
    expect(element.querySelector('img')).toBeNull();
    expect(element.querySelector('h1')!.textContent).toBe(report.title);
  });
  it('headings go down one level at a time', () => {
    const levels = [...page().querySelectorAll('h1, h2, h3')].map(({ tagName }) => Number(tagName[1]));
    expect(levels[0]).toBe(1);
    levels.slice(1).forEach((level, i) => expect(level - levels[i]!).toBeLessThanOrEqual(1));
  });
  it('without a report is a sentence', () => {
    expect(renderFailure('why').querySelector('[role=alert]')!.textContent).toBe('why');
  });
});

describe('The page of a study', () => {
  let page: HTMLElement;
  beforeAll(() => { page = renderPage(study(), ''); });
  it('has the answer first, then what is open, then what is folded', () => {
    const ids = [...page.querySelectorAll('main > section, .evidence > section, .folds > details')].map(({ id }) => id);
    expect(ids).toEqual(['answer', 'batch-size', 'how-many', 'step', 'collectives', 'convergence', 'windows', 'all-cells', 'parts', 'loader-section', 'method', 'circumstances']);
    expect([...page.querySelectorAll('.contents a')].map((link) => link.getAttribute('href'))).toEqual(ids.slice(0, 8).map((id) => `#${id}`));
  });
  it('says in a headline what to do, with the command as it stands', () => {
    const best = page.querySelector('.best')!;
    expect(best.querySelector('h2')!.textContent).toBe('Train with 2 workers, 32 images each: 8,557\u00a0images/s');
    expect([...best.querySelectorAll('b')].map((part) => part.textContent)).toEqual(['2 workers', '32 images']);
    expect(best.querySelector('code')!.textContent).toMatch(/^paceline train .* --lr 0.05$/);
  });
  it('has a tile a question: a sign and words for how sure it is, and a link to what shows it', () => {
    const tiles = [...page.querySelectorAll<HTMLElement>('.tile')];
    expect(tiles.map((tile) => tile.querySelector('.question')!.textContent)).toEqual(['Which batch?', 'How many workers?', 'What limits?', 'How fast is the network?', 'How accurate?']);
    expect(tiles.map((tile) => tile.querySelector('.chip')!.textContent)).toEqual(['≈three tie', '✓decided', '✓decided', '✓not the limit', '!one seed']);
    expect(tiles.map((tile) => tile.getAttribute('href'))).toEqual(['#hero', '#workers', '#why', '#network', '#accuracy']);
    expect(tiles.map((tile) => tile.querySelectorAll('svg.mini .chosen').length)).toEqual([1, 1, 0, 0, 0]);
    const heights = [...tiles[0]!.querySelectorAll('svg.mini rect')].map((bar) => Number(bar.getAttribute('height')));
    expect(Math.max(...heights)).toBe(Number(tiles[0]!.querySelector('.chosen')!.getAttribute('height')));
    expect(tiles[0]!.querySelector('svg.mini title')!.textContent).toContain('images/s with 8, 16');
  });
  it('says what to do next, in its order, with its time, and what is not answered', () => {
    const next = page.querySelector('.next')!;
    expect([...next.querySelectorAll('ol b')].map((title) => title.textContent)).toEqual(['Settle 16, 32 or 64', 'Three seeds for the accuracy', 'Leave the network alone']);
    expect([...next.querySelectorAll('.duration')].map((text) => text.textContent)).toEqual(['62 s', '5 min']);
    expect(next.querySelectorAll('code')).toHaveLength(2);
    expect(next.querySelectorAll('.unanswered li')).toHaveLength(3);
  });
  it('says on top how far to trust it', () => {
    const trust = page.querySelector('.trust')!;
    expect(trust.querySelector('.chip')!.textContent).toBe('!quick study');
    expect(trust.querySelector('summary')!.textContent).toContain('typical interval ±5\u00a0%, widest ±25\u00a0%3 warnings');
  });
  it('has rows of buttons that are one stop of the Tab key each: arrows move in them', () => {
    const bar = page.querySelector<HTMLElement>('header [role=toolbar]')!;
    const buttons = [...bar.querySelectorAll('button')];
    expect(buttons.map(({ tabIndex }) => tabIndex)).toEqual([0, ...Array(buttons.length - 1).fill(-1)]);
    document.body.append(page);
    buttons[0]!.focus();
    buttons[0]!.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight', bubbles: true }));
    expect(document.activeElement).toBe(buttons[1]);
    expect(buttons.map(({ tabIndex }) => tabIndex)).toEqual([-1, 0, ...Array(buttons.length - 2).fill(-1)]);
    page.remove();
  });
  it('of an interrupted study shows what there is', () => {
    const element = renderPage(reportOf('interrupted'), '');
    expect([...element.querySelectorAll('.tile .chip')].map((chip) => chip.textContent)).toEqual(['?not decided', ...Array(4).fill('–not measured')]);
    expect(element.querySelector('#accuracy .empty')!.textContent).toBe('No figures to draw.');
  });
  it('has headings that go down one level at a time', () => {
    const levels = [...page.querySelectorAll('h1, h2, h3')].map(({ tagName }) => Number(tagName[1]));
    levels.slice(1).forEach((level, i) => expect(level - levels[i]!).toBeLessThanOrEqual(1));
  });
});

it('A fold makes its inside when it is opened, once', () => {
  let made = 0;
  const fold = renderFold('f', 'F', () => [document.createElement(made++ === 0 ? 'p' : 'b')]);
  expect(made).toBe(0);
  fold.open = true;
  for (let i = 0; i < 2; ++i) fold.dispatchEvent(new Event('toggle'));
  expect([made, fold.querySelectorAll('p').length]).toEqual([1, 1]);
});

describe('The one file', () => {
  const html = `<head>${DATA_TAG}<script type="module" crossorigin src="./a.js"></script><link rel="stylesheet" crossorigin href="./a.css"></head>`;
  const files = new Map([['a.js', 'let a = "$&</script>"'], ['a.css', 'p{}']]);
  it('holds scripts and styles, and the data tag as it was', () => {
    const page = joinPage(html, files);
    expect(page).toContain('<script type="module">let a = "$&<\\/script>"</script>');
    expect(page).toContain('<style>p{}</style>');
    expect(page).toContain(DATA_TAG);
  });
  it('forbids the browser to fetch anything', () => {
    expect(joinPage(html, files)).toContain(`<head><meta http-equiv="Content-Security-Policy" content="default-src 'none';`);
  });
  it('is refused when something is left to fetch or the data tag is lost', () => {
    expect(() => joinPage(html, new Map())).toThrow(/not built/);
    expect(() => joinPage(html.replace(DATA_TAG, ''), files)).toThrow(/0 data tags/);
    expect(() => joinPage(`${html}<img src="x.png">`, files)).toThrow(/names files/);
  });
  it('takes a report whose words would end the script', () => {
    const text = JSON.stringify({ title: '</script><b>$&' });
    const body = /application\/json">(.*)<\/script>/.exec(fill(DATA_TAG, text))![1]!;
    expect(body).not.toContain('<');
    expect(JSON.parse(body)).toEqual(JSON.parse(text));
  });
});

describe('Words of a report', () => {
  const shown = (text: string, tone: 'plain' | 'finding' = 'finding') => {
    const report = oldReport();
    report.sections = [{ id: 's', title: 'S', folded: false, blocks: [{ type: 'paragraph', tone, text }] }];
    return renderPage(report, '').querySelector('main p')!;
  };
  it('lead with the question that they answer', () => {
    expect(shown('Which batch size? 128 it is.').querySelector('.lead')!.textContent).toBe('Which batch size?');
    expect(shown('No question here. Or is there?').querySelector('.lead')).toBeNull();
  });
  it('set code apart and keep a figure with its unit', () => {
    const element = shown('Run `paceline converge`: 5 % of 98.1 images/s, 7 sizes.', 'plain');
    expect(element.querySelector('code')!.textContent).toBe('paceline converge');
    expect(element.textContent).toContain('5\u00a0% of 98.1\u00a0images/s, 7 sizes');
  });
});
