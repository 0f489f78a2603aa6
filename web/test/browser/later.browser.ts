// What stands below the first screen is made later (src/later.ts): nobody may notice. Here the browser is never idle, so
// that only what asks for a thing makes it.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Browser, Page } from 'playwright-core';
import { addressOf, launch, reasonToSkip } from './browser.mjs';

const reason = reasonToSkip();
if (reason) console.log(`skipped: the browser tests of what is drawn later: ${reason}`);

let browser: Browser;
beforeAll(async () => { if (!reason) browser = await launch(); });
afterAll(async () => { await browser?.close(); });

async function busy<T>(name: string, act: (page: Page) => Promise<T>, { width = 390, hash = '' } = {}): Promise<T> {
  const context = await browser.newContext({ viewport: { width, height: 900 }, reducedMotion: 'reduce', acceptDownloads: true });
  try {
    const page = await context.newPage();
    await page.addInitScript(() => { window.requestIdleCallback = () => 0; });
    await page.goto(addressOf(name) + hash);
    await page.waitForFunction(() => performance.getEntriesByName('paceline-drawn').length > 0);
    await page.evaluate(() => new Promise((done) => { requestAnimationFrame(() => requestAnimationFrame(done)); }));
    return await act(page);
  } finally {
    await context.close();
  }
}
const drawings = (page: Page) => page.evaluate(() => [...document.querySelectorAll('figure.drawn')].map(({ id }) => ({ id, isDrawn: document.querySelector(`#${CSS.escape(id)} .canvas > svg`) !== null })));
const waiting = async (page: Page) => (await drawings(page)).filter(({ isDrawn }) => !isDrawn).map(({ id }) => id);
const rows = (page: Page) => page.locator('#cells tbody tr').count();

describe.skipIf(reason !== null)('What stands below the first screen', () => {
  it('waits, all but what is near the window', async () => {
    await busy('long', async (page) => {
      expect((await drawings(page)).find(({ id }) => id === 'hero')!.isDrawn).toBe(true);
      expect(await waiting(page)).toEqual(['accuracy', 'steps']);
      expect(await rows(page)).toBe(40);
    });
  });
  it('has the height that it will have: nothing moves when it is drawn', async () => {
    for (const name of ['study', 'long', 'compared', 'schema-1']) {
      for (const width of [390, 1280, 1920]) {
        await busy(name, async (page) => {
          const heights = () => page.evaluate(() => [...document.querySelectorAll<HTMLElement>('figure.drawn .canvas')].map(({ offsetHeight }) => offsetHeight));
          const cards = () => page.evaluate(() => [...document.querySelectorAll<HTMLElement>('figure.drawn')].map(({ offsetHeight }) => offsetHeight));
          const [before, cardsBefore] = [await heights(), await cards()];
          await page.keyboard.press('F3');
          expect(await waiting(page)).toEqual([]);
          expect(await heights(), `${name} at ${width}`).toEqual(before);
          // The legend says what signs mean only then: at most two lines more.
          (await cards()).forEach((height, i) => expect(Math.abs(height - cardsBefore[i]!), `${name} at ${width}, card ${i}`).toBeLessThanOrEqual(50));
        }, { width });
      }
    }
  }, 120_000);
  it('is made when one scrolls to it', async () => {
    await busy('long', async (page) => {
      await page.mouse.wheel(0, 4000);
      await page.waitForFunction(() => document.querySelector('#steps .canvas > svg') !== null && document.querySelectorAll('#cells tbody tr').length === 200);
    });
  });
  it('is made for paper, a search in the page, an address, the focus and a file', async () => {
    const asks: [string, (page: Page) => Promise<void>][] = [
      ['paper', (page) => page.evaluate(() => { dispatchEvent(new Event('beforeprint')); })],
      ['a search', (page) => page.keyboard.press('Control+f')],
      ['an address', (page) => page.evaluate(() => { location.hash = '#cells'; })],
    ];
    for (const [what, ask] of asks) {
      await busy('long', async (page) => {
        await ask(page);
        await page.waitForFunction(() => document.querySelectorAll('#cells tbody tr').length === 200, undefined, { timeout: 5000 });
        expect(await waiting(page), what).toEqual([]);
      });
    }
    await busy('long', async (page) => { expect([await waiting(page), await rows(page)]).toEqual([[], 200]); }, { hash: '#cells' });
    await busy('long', async (page) => {
      await page.evaluate(() => document.querySelector<HTMLElement>('#steps .canvas')!.focus({ preventScroll: true }));
      expect(await waiting(page)).toEqual(['accuracy']);
    });
    await busy('long', async (page) => {
      const [download] = await Promise.all([page.waitForEvent('download'), page.evaluate(() => {
        const fold = document.querySelector<HTMLDetailsElement>('#steps details.figures')!;
        fold.open = true;
        fold.addEventListener('toggle', () => { [...fold.querySelectorAll('button')].find(({ textContent }) => textContent === 'SVG')!.click(); });
      })]);
      expect(download.suggestedFilename()).toBe('steps.svg');
    });
  }, 60_000);
  it('an address leads to its place, whatever is drawn above it later', async () => {
    await busy('study', async (page) => {
      const top = await page.evaluate(() => document.querySelector('#cells')!.getBoundingClientRect().top);
      expect(top).toBeGreaterThanOrEqual(0);
      expect(top).toBeLessThan(120);
    }, { hash: '#cells' });
  });
});
