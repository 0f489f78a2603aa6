// Screenshots of the built page, to be looked at:
//   npm run shots -- [FOLDER] [PART OF A NAME,..] [STUDY.json]      (default: build/page-shots at the root, all, the samples)
// STUDY.json: of `paceline report RECORD.. --json`; it takes the place of the sample of a study.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { launch, open, reasonToSkip } from '../test/browser/browser.mjs';

const folder = process.argv[2] ?? fileURLToPath(new URL('../../build/page-shots', import.meta.url));
const reason = reasonToSkip();
if (reason) {
  console.log(`no screenshots: ${reason}`);
  process.exit(0);
}
mkdirSync(folder, { recursive: true });
const browser = await launch();
const shoot = async (name, sample, options, act = async () => {}, fullPage = false) => {
  const { page, context } = await open(browser, sample, options);
  await act(page);
  await page.screenshot({ path: join(folder, `${name}.png`), fullPage });
  await context.close();
  console.log(`${folder}/${name}.png`);
};
const only = process.argv[3];
const study = process.argv[4] ?? 'study';
const wanted = (name) => !only || only.split(',').some((part) => name.includes(part));

for (const theme of ['light', 'dark']) {
  for (const [width, height] of [[390, 844], [1280, 900], [1920, 1080]]) {
    if (wanted(`answer-${width}-${theme}`)) await shoot(`answer-${width}-${theme}`, study, { width, height, theme, touch: width < 500 });
    if (wanted(`page-${width}-${theme}`)) await shoot(`page-${width}-${theme}`, study, { width, height, theme, touch: width < 500 }, async () => {}, true);
  }
}
const views = async (page, figure, name) => page.locator(`${figure} .views button`, { hasText: name }).first().click();
const key = async (page, figure, ...keys) => {
  await page.locator(`${figure} .canvas`).first().focus();
  for (const one of keys) await page.keyboard.press(one);
};
const acts = {
  'hero-tip': async (page) => key(page, '#hero', 'ArrowRight', 'ArrowRight', 'ArrowRight'),
  'hero-hidden-shown': async (page) => page.locator('#hero .legend button', { hasText: '4 workers' }).click(),
  'hero-speedup-tip': async (page) => { await views(page, '#hero', 'speedup'); await key(page, '#hero', 'ArrowRight', 'ArrowRight'); },
  'timeline-zoomed': async (page) => key(page, '.timeline', 'ArrowRight', '+', '+', 'ArrowRight', 'ArrowRight'),
  'waterfall-tip': async (page) => key(page, '.waterfall', 'ArrowRight', 'ArrowDown'),
  'table-filtered': async (page) => {
    const table = page.locator('.card.table:has(.views)').first();
    await table.locator('input').fill('2 workers');
    await table.locator('.views button', { hasText: 'network' }).click();
    await table.scrollIntoViewIfNeeded();
  },
  'figures-open': async (page) => { await page.locator('#hero details.figures summary').click(); await page.locator('#hero details.figures').scrollIntoViewIfNeeded(); },
  'folds-open': async (page) => { for (const fold of await page.locator('details.fold > summary').all()) await fold.click(); },
  'trust-open': async (page) => page.locator('details.trust summary').click(),
};
for (const [name, act] of Object.entries(acts)) if (wanted(name)) await shoot(name, study, {}, act, name === 'folds-open');
for (const name of ['interrupted', 'compared', 'schema-1', 'long']) {
  if (wanted(name)) await shoot(name, name, {}, async () => {}, true);
  if (wanted(`${name}-390`)) await shoot(`${name}-390`, name, { width: 390, height: 844, touch: true }, async () => {}, true);
}
if (wanted('greyscale')) await shoot('greyscale', study, {}, (page) => page.addStyleTag({ content: 'html { filter: grayscale(1); }' }), true);
// The sheet of A4 within its margins, as it would be printed; lines where it is cut are left to the reader's eye.
if (wanted('paper')) await shoot('paper', study, { width: 703, height: 1032 }, async (page) => { await page.emulateMedia({ media: 'print' }); await page.evaluate(() => dispatchEvent(new Event('beforeprint'))); }, true);
if (wanted('print')) {
  const { page, context } = await open(browser, study);
  await page.pdf({ path: join(folder, 'print.pdf'), preferCSSPageSize: true });
  console.log(`${folder}/print.pdf`);
  await context.close();
}
await browser.close();
