// One page of each kind of run, made by the program itself: what every page promises holds for each. Left out where the
// program is not built, or was built without this page.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Browser, Page } from 'playwright-core';
import { launch, reasonToSkip } from './browser.mjs';
import { pagesOf } from './pdf';

const program = process.env.PACELINE ?? fileURLToPath(new URL('../../../build/release/paceline', import.meta.url));
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

function reasonWithout(): string | null {
  const reason = reasonToSkip();
  if (reason) return reason;
  if (!existsSync(program)) return `no program at ${program} (./x build, or PACELINE=PATH)`;
  if (!readFileSync(program).includes('paceline-complete')) return `${program} holds another page than this one (./x build makes it with this one)`;
  return null;
}
const reason = reasonWithout();
if (reason) console.log(`skipped: the browser test of each kind of page: ${reason}`);

const SMALL = ['--model', 'mnist-cnn', '--data', 'synthetic,train=512,test=128', '--threads', '1'];

/// Each kind with the commands that make it (OUT is the run's folder), and how many drawings stand unfolded.
const KINDS: [kind: string, drawings: number, ...commands: string[][]][] = [
  ['train', 2, ['train', ...SMALL, '--local-batch', '64', '--epochs', '3', '--out', 'train']],
  ['evaluate', 2, ['evaluate', 'train', '--out', 'evaluate']],
  ['search', 2, ['search', ...SMALL, '--local-batch', '64', '--lr', '0.02,0.1', '--epochs', '2', '--validation-split', '0.25', '--out', 'search']],
  ['sweep', 2, ['sweep', ...SMALL, '--batches', '16,32,64', '--repeats', '2', '--out', 'sweep']],
  ['scale', 2, ['scale', ...SMALL, '--workers', '1,2', '--batches', '16,32', '--repeats', '2', '--out', 'scale']],
  ['converge', 2, ['converge', ...SMALL, '--baseline-batch', '32', '--large-batch', '128', '--epochs', '2', '--variants', 'linear', '--out', 'converge']],
  ['study', 4, ['study', ...SMALL.slice(0, 4), '--batches', '16,32', '--workers', '1,2', '--repeats', '1', '--epochs', '1', '--variants', 'linear', '--out', 'study']],
  // On a busy machine no pair of cells may be told apart, and the ratios are not drawn; the sample `compared` has both.
  ['compare', 1, ['sweep', ...SMALL, '--batches', '16,32,64', '--repeats', '2', '--out', 'again']],
];

interface Figures { drawings: number; empty: string[]; tabs: number; sheets: number; violations: string[]; problems: string[] }

describe.skipIf(reason !== null)('A page of each kind', () => {
  let browser: Browser;
  let folder = '';
  let server = '';
  const children: ChildProcess[] = [];
  const run = (words: string[]) => execFileSync(program, words, { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] });
  const start = (...options: string[]): ChildProcess => {
    const child = spawn(program, options, { cwd: folder, stdio: ['ignore', 'pipe', 'ignore'] });
    children.push(child);
    return child;
  };
  beforeAll(async () => {
    browser = await launch();
    folder = mkdtempSync(join(tmpdir(), 'paceline-kinds-'));
    const serving = start('serve', '.', '--port', '0', '--no-token');
    server = await new Promise<string>((found) => {
      let said = '';
      serving.stdout!.on('data', (part: Buffer) => {
        said += String(part);
        const [address] = /http:\/\/127\.0\.0\.1:\d+/.exec(said) ?? [];
        if (address) found(address);
      });
    });
  });
  afterAll(async () => {
    for (const child of children) child.kill();
    await browser?.close();
    if (folder !== '') rmSync(folder, { recursive: true, force: true });
  });

  async function look(address: string, isReport = true): Promise<Figures> {
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, reducedMotion: 'reduce' });
    const page = await context.newPage();
    const problems: string[] = [];
    page.on('console', (message) => problems.push(message.text()));
    page.on('pageerror', (error) => problems.push(error.message));
    await page.goto(address);
    if (isReport) await page.waitForFunction(() => performance.getEntriesByName('paceline-complete').length > 0);
    const { drawings, empty } = await page.evaluate(() => {
      const isOpen = (element: Element) => element.closest('details:not([open])') === null;
      const cards = [...document.querySelectorAll<HTMLElement>('.card')].filter(isOpen);
      return {
        drawings: document.querySelectorAll('.canvas > svg').length - document.querySelectorAll('details:not([open]) .canvas > svg').length,
        // Of a card something remains without its title: words, figures or a drawing.
        empty: cards.filter((card) => card.querySelector('svg, table, img, li, dd') === null && card.innerText.trim() === (card.querySelector('h3')?.innerText ?? '').trim()).map((card) => card.id || card.className),
      };
    });
    const violations: string[] = [];
    for (const width of [1280, 390]) {
      await page.setViewportSize({ width, height: 844 });
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      if (wide > width) problems.push(`${wide} pixels wide at ${width}`);
      await page.evaluate(axe);
      violations.push(...await page.evaluate(async () => (await (window as any).axe.run(document)).violations.map((one: any) => `${one.id}: ${one.nodes[0].html.slice(0, 160)}`)));
    }
    const tabs = await tabsOf(page);
    const sheets = pagesOf(await page.pdf({ format: 'A4', preferCSSPageSize: true }));
    await context.close();
    return { drawings, empty, tabs, sheets, violations, problems };
  }
  async function tabsOf(page: Page): Promise<number> {
    await page.setViewportSize({ width: 1280, height: 900 });
    for (let stops = 0; stops < 100; ++stops) {
      await page.keyboard.press('Tab');
      if (await page.evaluate(() => document.activeElement === document.body || document.activeElement === null)) return stops;
    }
    return 100;
  }
  function expectSound(kind: string, found: Figures, drawings: number, html: string) {
    const data = /id="?paceline-data[^>]*>([^<]*)</.exec(html)?.[1]?.length ?? 0;
    expect(html.length - data).toBeLessThanOrEqual(400_000);
    console.log(`${kind}: ${found.drawings} drawings, ${found.tabs} stops of Tab, ${found.sheets} sheets, ${Math.round(data / 100) / 10} kB of data`);
    expect(found.problems).toEqual([]);
    expect(found.empty).toEqual([]);
    expect(found.violations).toEqual([]);
    expect(found.drawings).toBeGreaterThanOrEqual(drawings);
    expect(found.tabs).toBeLessThanOrEqual(60);
    expect(found.sheets).toBeLessThanOrEqual(5);
    expect(data).toBeLessThanOrEqual(80_000);
  }

  it.each(KINDS)('%s: figures unfolded, nothing empty, sound for everybody, light', async (kind, drawings, ...commands) => {
    for (const words of commands) run(words);
    const html = join(folder, `${kind}.html`);
    if (kind === 'compare') run(['compare', 'again', '--html', html]);
    else run(['report', kind === 'evaluate' ? 'evaluate/evaluation.json' : kind, '--html', html]);
    expectSound(kind, await look(pathToFileURL(html).href), drawings, readFileSync(html, 'utf8'));
  }, 300_000);

  it('a training that goes on: its curves, and no word of an interruption', async () => {
    const training = start('train', ...SMALL, '--local-batch', '32', '--epochs', '200', '--out', 'running');
    training.stdout!.resume();
    const document = async () => (await fetch(`${server}/document/running`)).text();
    await expect.poll(async () => ((await document()).match(/after epoch \d+, the best/g) ?? []).length, { timeout: 100_000 }).toBeGreaterThan(0);
    const json = await document();
    expect(json).not.toMatch(/interrupted/);
    const html = join(folder, 'running.html');
    writeFileSync(html, await (await fetch(`${server}/run/running`)).text());
    training.kill('SIGINT');
    // As a file it asks nobody for news, and is sound as it stood.
    const page = readFileSync(html, 'utf8').replace(/<meta name="paceline-live"[^>]*>/, '');
    writeFileSync(html, page);
    expectSound('running train', await look(pathToFileURL(html).href), 1, page);
  }, 300_000);

  it("serve's list: a row for each run, in the style of the page", async () => {
    const found = await look(server, false);
    const page = await (await fetch(server)).text();
    expectSound("serve's list", found, 0, page);
    for (const kind of ['train', 'search', 'sweep', 'scale', 'converge', 'study']) expect(page).toContain(`/run/${kind}"`);
  }, 60_000);
});
