// A run that is watched while it goes on, and its report afterwards, are one page: `paceline serve` beside a training, by the
// program itself. Left out where that is not built (./x build), or was built without this page or without a server.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Browser, Page } from 'playwright-core';
import { launch, reasonToSkip } from './browser.mjs';

const program = process.env.PACELINE ?? fileURLToPath(new URL('../../../build/release/paceline', import.meta.url));

function reasonWithout(): string | null {
  const reason = reasonToSkip();
  if (reason) return reason;
  if (!existsSync(program)) return `no program at ${program} (./x build, or PACELINE=PATH)`;
  if (!readFileSync(program).includes('paceline-complete')) return `${program} holds another page than this one (./x build makes it with this one)`;
  return null;
}
const reason = reasonWithout();
if (reason) console.log(`skipped: the browser test of a served training: ${reason}`);

/// A document but for the command that made it, which is another one.
function dataOf(json: string): unknown {
  const document = JSON.parse(json) as { facts: { name: string }[] };
  return { ...document, facts: document.facts.filter(({ name }) => name !== 'report made by') };
}

/// All words of the page as a reader can get them, but for what says that a run was followed; and each figure's points.
const shown = (page: Page) => page.evaluate(async () => {
  for (const fold of document.querySelectorAll('details')) fold.open = true;
  await new Promise((done) => { setTimeout(done, 300); });  // folds are filled when they open
  for (const fold of document.querySelectorAll('details')) fold.open = true;
  dispatchEvent(new KeyboardEvent('keydown', { key: 'F3' }));  // what waits is drawn
  await new Promise((done) => { requestAnimationFrame(() => requestAnimationFrame(done)); });
  const text = (query: string) => [...document.querySelectorAll<HTMLElement>(query)].map(({ innerText }) => innerText);
  return {
    title: text('h1'), answers: text('.best, .tile'), findings: text('figcaption h3'), tables: text('tbody tr'),
    drawings: [...document.querySelectorAll('.canvas > svg')].map((image) => [...image.querySelectorAll('text')].map(({ textContent }) => textContent).join('|')),
    signs: document.querySelectorAll('.canvas .sign').length, facts: text('.facts > div').filter((fact) => !fact.startsWith('report made by')), soFar: document.querySelectorAll('.so-far').length,
  };
});

describe.skipIf(reason !== null)('A training that is served', () => {
  let browser: Browser;
  let folder = '';
  const children: ChildProcess[] = [];
  const start = (...options: string[]): ChildProcess => {
    const child = spawn(program, options, { stdio: ['ignore', 'pipe', 'ignore'] });
    children.push(child);
    return child;
  };
  beforeAll(async () => {
    browser = await launch();
    folder = mkdtempSync(join(tmpdir(), 'paceline-served-'));
  });
  afterAll(async () => {
    for (const child of children) child.kill();
    await browser?.close();
    if (folder !== '') rmSync(folder, { recursive: true, force: true });
  });

  it('shows after its last event what its finished report shows', async () => {
    const run = join(folder, 'run');
    const training = start('train', '--model', 'mnist-cnn', '--data', 'synthetic,train=512,test=128', '--global-batch', '64', '--epochs', '4', '--threads', '1', '--out', run);
    training.stdout!.resume();
    const ended = new Promise<number | null>((done) => { training.on('exit', done); });
    const server = start('serve', folder, '--port', '0');
    const [address, token] = await new Promise<[string, string]>((found) => {
      let said = '';
      server.stdout!.on('data', (part: Buffer) => {
        said += String(part);
        const [, port, query] = /(http:\/\/127\.0\.0\.1:\d+)\/(\?token=\w+)\n/.exec(said) ?? [];
        if (port && query) found([port, query]);
      });
    });
    expect((await fetch(`${address}/run/run`)).status).toBe(401);
    await expect.poll(() => existsSync(join(run, 'events.jsonl')), { timeout: 60_000 }).toBe(true);
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, reducedMotion: 'reduce' });
    const page = await context.newPage();
    const problems: string[] = [];
    page.on('pageerror', (error) => problems.push(error.message));
    await page.goto(`${address}/run/run${token}`);
    // While it goes on: the strip is there, and each answer says that it is not the last word.
    await page.waitForFunction(() => (document.querySelector('.live')?.textContent ?? '').includes('epoch'), undefined, { timeout: 120_000 });
    expect(await ended).toBe(0);
    const made = join(folder, 'report');
    execFileSync(program, ['report', run, '--html', `${made}.html`, '--json', `${made}.json`], { stdio: 'ignore' });
    const report = readFileSync(`${made}.json`, 'utf8');
    expect(dataOf(await (await fetch(`${address}/document/run${token}`)).text())).toEqual(dataOf(report));
    // Followed to its end without a word of the reader: the page has become that of the report.
    await page.waitForFunction((title) => document.title === title && document.querySelectorAll('.tile').length > 0 && document.querySelectorAll('.so-far').length === 0,
      (JSON.parse(report) as { title: string }).title, { timeout: 60_000 });
    const live = await shown(page);
    await page.goto(pathToFileURL(`${made}.html`).href);
    await page.waitForFunction(() => performance.getEntriesByName('paceline-complete').length > 0);
    const finished = await shown(page);
    expect(live).toEqual(finished);
    expect(finished.tables.length).toBeGreaterThan(4);   // four epochs, at least
    expect(finished.signs).toBeGreaterThan(4);
    expect(finished.soFar).toBe(0);
    expect(problems).toEqual([]);
    await context.close();
  }, 300_000);
});
