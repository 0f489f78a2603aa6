import { describe, expect, it } from 'vitest';
import { DATA_TAG, fill, joinPage } from '../build/one-file.mjs';
import { renderFailure, renderPage } from '../src/page';
import { bigReport, goldenJson, goldenReport } from './read';

describe('The page', () => {
  const page = () => renderPage(goldenReport(), goldenJson);
  it('begins with title, subtitle, warnings and circumstances', () => {
    const head = page().querySelector('header')!;
    expect(head.querySelector('h1')!.textContent).toBe('resnet18-cifar on synthetic');
    expect(head.querySelectorAll('.warnings li')).toHaveLength(2);
    expect([...head.querySelectorAll('dt')].map((name) => name.textContent)).toEqual(['CPU', 'instructions', 'build', 'command']);
  });
  it('links every section', () => {
    const element = page();
    for (const link of element.querySelectorAll('.contents a')) {
      expect(element.querySelector(link.getAttribute('href')!)).not.toBeNull();
    }
    expect(element.querySelectorAll('.contents a')).toHaveLength(goldenReport().sections.length);
  });
  it('shows every block', () => {
    const blocks = bigReport().sections.flatMap((section) => section.blocks);
    const element = renderPage(bigReport(), '');
    for (const [type, query] of [['table', 'figure.table'], ['plot', 'figure.plot'], ['paragraph', 'main p.prose']] as const) {
      expect(element.querySelectorAll(query)).toHaveLength(blocks.filter((block) => block.type === type).length);
    }
  });
  it('gives no two elements one address', () => {
    const report = goldenReport();
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
    const report = goldenReport();
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
    const report = goldenReport();
    report.sections = [{ id: 's', title: 'S', blocks: [{ type: 'paragraph', tone, text }] }];
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
