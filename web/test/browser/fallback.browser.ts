// The plain page of a program that was built without npm (src/report/fallback.html) shows the same tables and answers.

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Browser } from 'playwright-core';
import { fill } from '../../build/one-file.mjs';
import { sample } from '../../build/sample-data.mjs';
import { launch, reasonToSkip } from './browser.mjs';

const reason = reasonToSkip();
const at = (path: string) => readFileSync(fileURLToPath(new URL(`../../../${path}`, import.meta.url)), 'utf8');
let browser: Browser;
beforeAll(async () => { if (!reason) browser = await launch(); });
afterAll(async () => { await browser?.close(); });

async function shown(json: string): Promise<{ text: string; cells: string[][]; problems: string[] }> {
  const page = await browser.newPage();
  const problems: string[] = [];
  page.on('pageerror', (error) => problems.push(error.message));
  await page.setContent(fill(at('src/report/fallback.html'), json));
  const text = await page.evaluate(() => document.body.innerText);
  const cells = await page.evaluate(() => [...document.querySelectorAll('tr')].map((row) => [...row.children].map((cell) => cell.textContent ?? '')));
  await page.close();
  return { text, cells, problems };
}

describe.skipIf(reason !== null)('The plain page', () => {
  it.each(['study', 'interrupted', 'compared', 'schema-1'])('shows %s', async (name) => {
    const { text, cells, problems } = await shown(sample(name));
    expect(problems).toEqual([]);
    if (name === 'study') {
      for (const said of ['Train with 2 workers', '≈ three tie', 'Settle 16, 32 or 64', 'Two workers with small batches are fastest', '8,557 [8,409, 8,624]']) expect(text).toContain(said);
    }
    if (name === 'schema-1') expect(cells.flat()).toContain('912.0 [880.4, 961.1] *');
  });
  it('rounds as the program does', async () => {
    const values = (JSON.parse(at('tests/golden/numbers.json')) as { value: number; format: string; text: string }[]).filter(({ format }) => format !== 'scientific');
    const table = {
      type: 'table', id: 't', title: '', definition: '', footnotes: [], rows: 1,
      columns: values.map(({ value, format }, i) => ({ key: `k${i}`, label: '', unit: '', format, group: '', value: [value] })),
    };
    const report = { schema: 'paceline-report-2', title: '', subtitle: '', circumstances: [], trust: '', warnings: [], facts: [], sections: [{ id: 's', title: '', folded: false, blocks: [table] }] };
    expect((await shown(JSON.stringify(report))).cells[1]).toEqual(values.map(({ text }) => text));
  });
});
