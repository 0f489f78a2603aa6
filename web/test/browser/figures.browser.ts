// What figures hold, in a real browser: a sign for each point, ticks enough, whiskers side by side.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Browser } from 'playwright-core';
import { sample } from '../../build/sample-data.mjs';
import { isOneColumn } from '../../src/plots/dots';
import { FEW } from '../../src/plots/lines';
import { hasInterval, placed } from '../../src/plots/placed';
import { parseReport } from '../../src/data/schema';
import type { Figure } from '../../src/data/report';
import { boxes } from './boxes';
import { launch, open, reasonToSkip } from './browser.mjs';

const reason = reasonToSkip();
if (reason) console.log(`skipped: the browser tests of figures: ${reason}`);

let browser: Browser;
beforeAll(async () => { if (!reason) browser = await launch(); });
afterAll(async () => { await browser?.close(); });

const figuresOf = (name: string): Figure[] =>
  parseReport(sample(name)).sections.flatMap(({ blocks }) => blocks).filter((block): block is Figure => block.type === 'figure');

describe.skipIf(reason !== null)('A figure', () => {
  it('has a sign for each point and a whisker for each interval of the record, at least four ticks upwards, and no whisker on another', async () => {
    for (const width of [390, 1280]) {
      const { page, context } = await open(browser, 'study', { width });
      let seen = 0;
      for (const { id, views } of figuresOf('study')) {
        for (const view of views) {
          if (isOneColumn(view)) continue;
          if (views.length > 1) await page.locator(`#${id} .views button`, { hasText: view.name }).first().click();
          const shown = view.series.filter(({ hidden, dashed }) => !hidden && !dashed);
          const points = shown.flatMap(placed);
          expect(shown.every((series) => placed(series).length <= FEW)).toBe(true);
          expect(await page.locator(`#${id} .canvas .sign`).count(), `${id}, ${view.name}`).toBe(points.length);
          const whiskers = await boxes(page, `#${id} .canvas [data-mark="rule"] line`);
          expect(whiskers.length, `${id}, ${view.name}: whiskers`).toBe(points.filter(hasInterval).length);
          whiskers.forEach((one, i) => {
            for (const other of whiskers.slice(i + 1)) {
              const areBeside = Math.abs(one.left - other.left) >= 2 || one.bottom < other.top || other.bottom < one.top;
              expect(areBeside, `${id}, ${view.name} at ${width}: two whiskers at ${one.left}`).toBe(true);
            }
          });
          expect(await page.locator(`#${id} .canvas [data-mark="y-axis tick label"] text`).count(), `${id}, ${view.name}: ticks`).toBeGreaterThanOrEqual(4);
          seen += points.length;
        }
      }
      expect(seen).toBeGreaterThan(60);
      await context.close();
    }
  }, 60_000);
  it('of a thousand points is a line with a band, whose tip says each of them', async () => {
    const { page, context } = await open(browser, 'long');
    const [accuracy] = figuresOf('long').filter(({ id }) => id === 'accuracy');
    const { series: [first] } = accuracy!.views[0]!;
    expect(await page.locator('#accuracy .canvas .sign').count()).toBeLessThan(60);
    await page.locator('#accuracy .canvas').focus();
    await page.keyboard.press('End');
    await page.keyboard.press('End');
    const last = first!.points[first!.points.length - 1]!;
    expect(await page.locator('.tip').innerText()).toContain(last.y!.toFixed(1));
    await context.close();
  });
});

describe.skipIf(reason !== null)('A command', () => {
  it('is copied as it stands', async () => {
    const { page, context } = await open(browser, 'study');
    await page.evaluate(() => {
      Object.defineProperty(navigator, 'clipboard', { value: { writeText: (text: string) => { document.documentElement.dataset.copied = text; return Promise.resolve(); } } });
    });
    await page.locator('.best .copy').click();
    await page.waitForFunction(() => document.querySelector('.best .copy')!.textContent!.startsWith('Copied'));
    expect(await page.evaluate(() => document.documentElement.dataset.copied)).toBe('paceline train --model resnet8-cifar --data synthetic,train=10240,test=2000 --workers 2 --local-batch 32 --lr 0.05');
    await context.close();
  });
});
