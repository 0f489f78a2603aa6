import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { parseReport } from '../src/data/schema';
import { showAnew } from '../src/live-page';
import { renderPage } from '../src/page/page';

it('shows another report in the same place, and leaves open what was', () => {
  const json = readFileSync('../tests/golden/sample-report.json', 'utf8');
  const page = renderPage(parseReport(json), () => json);
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
