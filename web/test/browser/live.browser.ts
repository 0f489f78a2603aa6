// A page as `paceline serve` gives it, followed in a real browser: its policy lets it ask its own server and nobody else.

import { readFileSync } from 'node:fs';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Browser } from 'playwright-core';
import { fill } from '../../build/one-file.mjs';
import { sample } from '../../build/sample-data.mjs';
import { launch, reasonToSkip } from './browser.mjs';

const reason = reasonToSkip();
if (reason) console.log(`skipped: the browser test of served pages: ${reason}`);

/// What src/serve/list_page.cc makes of a page (served_page).
const served = (page: string): string =>
  page.replace("default-src 'none';", "default-src 'none'; connect-src 'self';")
    .replace('<head>', '<head><meta name="paceline-live" content="/events?run=study&amp;from=7">');

describe.skipIf(reason !== null)('A served page', () => {
  let browser: Browser;
  let server: Server;
  let stream: ServerResponse | undefined;
  const asked: { url: string; last: string | undefined }[] = [];
  const json = reason ? '' : sample('study');

  beforeAll(async () => {
    const built = readFileSync(fileURLToPath(new URL('../../dist/index.html', import.meta.url)), 'utf8');
    server = createServer((request, answer) => {
      const url = request.url ?? '';
      asked.push({ url, last: request.headers['last-event-id'] as string | undefined });
      if (url.startsWith('/events')) {
        answer.writeHead(200, { 'Content-Type': 'text/event-stream' });
        answer.write('retry: 50\n\nevent: status\ndata: {"event":"status","at":1,"state":"running","cells":82,"cells_done":30}\n\n');
        stream = answer;
      } else if (url.startsWith('/document/')) {
        answer.end(json.replace(JSON.stringify((JSON.parse(json) as { title: string }).title), '"Paceline: another title"'));
      } else {
        answer.writeHead(200, { 'Content-Type': 'text/html; charset=utf-8' });
        answer.end(served(fill(built, json)));
      }
    });
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
    browser = await launch();
  });
  afterAll(async () => {
    await browser?.close();
    server?.closeAllConnections();
    server?.close();
  });

  it('shows progress, then the new report, comes again with the id it saw last, and may ask nobody else', async () => {
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
    const page = await context.newPage();
    const problems: string[] = [];
    page.on('pageerror', (error) => problems.push(error.message));
    await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/run/study?token=secret`);
    await page.waitForFunction(() => document.querySelector('.live')?.textContent?.includes('30 of 82 cells'));
    // Somebody reads far below: a new report must not move him.
    await page.evaluate(() => document.querySelector('#cells')!.scrollIntoView({ behavior: 'instant' }));
    const place = () => page.evaluate(() => Math.round(document.querySelector('#cells')!.getBoundingClientRect().top));
    await page.waitForFunction(() => performance.getEntriesByName('paceline-complete').length > 0);
    const before = await place();
    expect(await page.title()).toMatch(/^30\/82 /);
    expect(asked.find(({ url }) => url.startsWith('/events'))?.url).toContain('token=secret');
    stream?.write('id: 99\nevent: cell_done\ndata: {"event":"cell_done","at":2,"cell":"a","done":31,"cells":82,"images_per_s":8000}\n\n');
    await page.waitForFunction(() => document.body.textContent?.includes('another title'));
    expect(asked.map(({ url }) => url)).toContain('/document/study?token=secret');
    await page.evaluate(() => new Promise((done) => { requestAnimationFrame(() => requestAnimationFrame(done)); }));
    expect(Math.abs(await place() - before)).toBeLessThanOrEqual(60);  // a line of a legend or two, until it is drawn
    expect(await page.locator('.live').textContent()).toContain('31 of 82 cells');
    stream?.end();
    await expect.poll(() => asked.filter(({ url }) => url.startsWith('/events')).at(-1)?.last).toBe('99');
    expect(problems).toEqual([]);
    const refused = await page.evaluate(() => fetch('http://127.0.0.2:9/').then(() => 'asked', () => 'refused'));
    expect(refused).toBe('refused');
    await context.close();
  });
});
