import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { blockOf, study } from './read';
import { sample } from '../build/sample-data.mjs';
import { parseReport } from '../src/data/schema';
import { markUnfinished, showAnew } from '../src/live-page';
import { renderPage } from '../src/page/page';

it('shows another report in the same place, and leaves open what was', () => {
  const json = readFileSync('../tests/golden/sample-report.json', 'utf8');
  const page = renderPage(parseReport(json), json);
  document.body.append(page);
  const folds = [...page.querySelectorAll('details')].filter(({ id }) => id !== '');
  const first = folds[0]!;
  first.open = true;
  const title = parseReport(json).title;
  showAnew(page, json.replaceAll(JSON.stringify(title).slice(1, -1), 'another title'));
  expect(document.body.lastElementChild).toBe(page);
  expect(page.textContent).toContain('another title');
  expect(page.textContent).not.toContain(title);
  expect(page.querySelector<HTMLDetailsElement>(`[id="${first.id}"]`)?.open).toBe(true);
  showAnew(page, json);
  expect(page.textContent).not.toContain('another title');
  page.remove();
});

const started = (repeats: number) => {
  const json = JSON.parse(sample('study'));
  const table = json.sections.flatMap((section: any) => section.blocks).find(({ id }: any) => id === 'cells');
  const column = (key: string, format: string, rest: object) => ({ key, label: key, unit: '', format, group: 'measured', ...rest });
  const records: string[] = table.columns.find(({ key }: any) => key === 'record').text;
  table.columns.push(column('repeats', 'integer', { value: records.map((record) => (/g(64|128)$/.test(record) ? repeats : 3)) }), column('records', 'text', { text: records }));
  return JSON.stringify(json);
};

it('while a run goes on, cells with fewer than 3 repeats are hollow, but the best keeps its ring', () => {
  const report = parseReport(started(2));
  markUnfinished(report);
  const marks = blockOf(report, 'figure', 'hero').views[0]!.series.flatMap(({ points }) => points).filter(({ record }) => record !== '');
  expect(marks.filter(({ mark }) => mark === 'fewer than 3 repeats so far').length).toBeGreaterThan(0);
  expect(marks.filter(({ mark }) => mark === 'fewer than 3 repeats so far').every(({ record }) => /g(64|128)$/.test(record))).toBe(true);
  expect(marks.find(({ mark }) => mark === 'best')!.record).toContain('g64');
  const whole = parseReport(started(3));
  markUnfinished(whole);
  expect(whole).toEqual(parseReport(started(3)));
});

it('while a run goes on, each answer says so; after its last event the page is that of the report', () => {
  const json = started(2);
  const page = renderPage(study(), json);
  document.body.append(page);
  showAnew(page, json, true);
  expect(page.querySelectorAll('.tile .so-far')).toHaveLength(5);
  expect(page.querySelector('.best h2')!.textContent).toMatch(/ so far$/);
  expect(page.querySelectorAll('#hero .sign.special').length).toBeGreaterThan(0);
  showAnew(page, json, false);
  // Patterns and markers have names that are never given twice.
  const shown = (element: HTMLElement) => element.innerHTML.replaceAll(/(hatch|stripes|plot-marker)-[a-z0-9]+/g, '$1');
  expect(shown(page) === shown(renderPage(parseReport(json), json))).toBe(true);
  page.remove();
});
