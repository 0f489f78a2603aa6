// What the page promises in a real browser: page.md, section 6, as far as the page alone can show it.

import { readFileSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Browser, Page } from 'playwright-core';
import { boxes, clashes } from './boxes';
import { addressOf, launch, open, reasonToSkip } from './browser.mjs';

const reason = reasonToSkip();
if (reason) console.log(`skipped: the browser tests: ${reason}`);

let browser: Browser;
beforeAll(async () => { if (!reason) browser = await launch(); });
afterAll(async () => { await browser?.close(); });

const onPage = async <T>(name: string, options: object, act: (page: Page) => Promise<T>): Promise<T> => {
  const { page, context, problems } = await open(browser, name, options);
  try {
    const result = await act(page);
    expect(problems).toEqual([]);  // the console is empty, and nothing was asked for
    return result;
  } finally {
    await context.close();
  }
};
const SAMPLES = ['study', 'interrupted', 'compared', 'schema-1', 'long'];
const WIDTHS = [360, 390, 768, 1280, 1920, 2560];


describe.skipIf(reason !== null)('The first screen', () => {
  it('at 1280 x 900 holds headline, five verdicts and the axes of the hero', async () => {
    await onPage('study', { width: 1280, height: 900 }, async (page) => {
      const parts = [...await boxes(page, '.best h2'), ...await boxes(page, '.tile .chip'), ...await boxes(page, '#hero [class*=drawing] text')];
      expect(parts.filter(({ text }) => /decided|tie|limit|seed/.test(text)).length).toBeGreaterThanOrEqual(5);
      expect(parts.map(({ text }) => text)).toContain('global batch [images]');
      for (const { bottom, right, left } of parts) expect([bottom <= 900, right <= 1280, left >= 0]).toEqual([true, true, true]);
    });
  });
  it('at 390 holds headline and five verdicts within 900 pixels', async () => {
    await onPage('study', { width: 390, height: 844, touch: true }, async (page) => {
      const chips = await boxes(page, '.tile .chip');
      expect(chips).toHaveLength(5);
      for (const { bottom } of [...chips, ...await boxes(page, '.best h2')]) expect(bottom).toBeLessThanOrEqual(900);
      for (const { bottom } of await boxes(page, '.tile .sentence')) expect(bottom).toBeLessThanOrEqual(900);
    });
  });
});

describe.skipIf(reason !== null)('At every width', () => {
  it.each(SAMPLES)('%s has no horizontal scroll and no texts of a plot on one another or outside', async (name) => {
    for (const width of WIDTHS) {
      await onPage(name, { width, height: 900, touch: width < 500 }, async (page) => {
        expect(await page.evaluate(() => document.documentElement.scrollWidth), `scroll at ${width}`).toBeLessThanOrEqual(width);
        for (const found of await clashes(page)) expect.fail(`${name} at ${width}: ${found}`);
      });
    }
  }, 120_000);
  it('other views of the figures are as clear', async () => {
    for (const width of [390, 1280]) {
      await onPage('study', { width, height: 900 }, async (page) => {
        const press = async (query: string) => {
          for (const name of await page.locator(query).allTextContents()) {
            await page.locator(query.replace('[aria-pressed=false]', ''), { hasText: name }).first().click();
            for (const found of await clashes(page)) expect.fail(`${name} at ${width}: ${found}`);
          }
        };
        await press('#hero .legend button[aria-pressed=false]');
        for (const id of await figuresOf(page)) await press(`#${id} .views button`);
      });
    }
  }, 60_000);
  it('letters have five sizes, none below 12 pixels', async () => {
    for (const width of [390, 1280]) {
      await onPage('study', { width }, async (page) => {
        await page.locator('#hero details.figures summary').click();
        for (const fold of await page.locator('details.fold > summary').all()) await fold.click();
        const sizes = await page.evaluate(() => {
          const seen = new Set<number>();
          const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
          for (let node = walker.nextNode(); node; node = walker.nextNode()) {
            const parent = node.parentElement!;
            if (node.textContent!.trim() && !parent.closest('script, style, noscript')) seen.add(parseFloat(getComputedStyle(parent).fontSize));
          }
          return [...seen].sort((a, b) => a - b);
        });
        expect(sizes.length).toBeLessThanOrEqual(5);
        expect(sizes[0]).toBeGreaterThanOrEqual(12);
      });
    }
  });
});

const tipBox = (page: Page) => page.evaluate(() => {
  const tip = document.querySelector<HTMLElement>('.tip')!;
  const { left, right, top, bottom } = tip.getBoundingClientRect();
  return { hidden: tip.hidden, inside: left >= 0 && top >= 0 && right <= innerWidth && bottom <= innerHeight, text: tip.innerText };
});
const figuresOf = (page: Page) => page.evaluate(() => [...document.querySelectorAll('figure.drawn')].map(({ id }) => id));

describe.skipIf(reason !== null)('A tip', () => {
  it.each([[390, true], [1280, false]])('at %d pixels is inside the window at every spot, by keys', async (width, touch) => {
    await onPage('study', { width, height: 844, touch }, async (page) => {
      let spots = 0;
      for (const id of await figuresOf(page)) {
        await page.locator(`#${id} .canvas`).focus();
        const seen = new Set<string>();
        for (let key = 'ArrowRight', stuck = 0; stuck < 3;) {
          await page.keyboard.press(key);
          const tip = await tipBox(page);
          expect(tip.hidden, `${id} ${key}`).toBe(false);
          expect(tip.inside, `${id}: ${tip.text}`).toBe(true);
          if (seen.has(tip.text)) {
            ++stuck;
            key = key === 'ArrowRight' ? 'ArrowDown' : 'ArrowRight';
            if (stuck === 1) await page.keyboard.press('Home');
          } else {
            seen.add(tip.text);
            stuck = 0;
            key = 'ArrowRight';
          }
        }
        spots += seen.size;
        await page.keyboard.press('Escape');
        expect((await tipBox(page)).hidden).toBe(true);
      }
      expect(spots).toBeGreaterThan(60);
    });
  }, 120_000);
  it.each([[390, true], [1280, false]])('at %d pixels is inside the window at every point, by pointer (touch: %s)', async (width, touch) => {
    await onPage('study', { width, height: 844, touch }, async (page) => {
      for (const id of ['hero', 'workers', 'why', 'steps']) {
        await page.locator(`#${id} .canvas`).scrollIntoViewIfNeeded();
        const places = await page.evaluate((figure) => [...document.querySelectorAll(`#${figure} .canvas .sign, #${figure} .span, #${figure} .change`)].map((element) => {
          const { left, top, width: w, height: h } = element.getBoundingClientRect();
          return { x: left + w / 2, y: top + h / 2 };
        }).filter(({ x, y }) => x > 0 && y > 50 && x < innerWidth && y < innerHeight), id);
        expect(places.length, id).toBeGreaterThan(3);
        for (const { x, y } of places) {
          if (touch) await page.touchscreen.tap(x, y);
          else await page.mouse.move(x, y);
          const tip = await tipBox(page);
          expect([id, tip.hidden, tip.inside]).toEqual([id, false, true]);
        }
      }
    });
  }, 60_000);
  it('is spoken with value, interval and samples, and lights its record elsewhere', async () => {
    await onPage('study', {}, async (page) => {
      await page.locator('#hero .canvas').focus();
      await page.keyboard.press('ArrowRight');
      await page.keyboard.press('ArrowRight');
      expect(await page.locator('[role=status].unseen').textContent()).toBe(
        '2 workers, a core each: global batch 64 images, images/s 8,557, interval 8,409 to 8,624, n 15, record scale-w2-g64');
      expect(await page.locator('#cells tr.lit').textContent()).toContain('8,557');
      expect(await page.locator('#workers .linked, #batch .linked').count()).toBeGreaterThanOrEqual(2);
    });
  });
});

describe.skipIf(reason !== null)('Controls', () => {
  it('switch series, and hidden ones are not drawn until asked for', async () => {
    await onPage('study', {}, async (page) => {
      const drawn = () => page.locator('#hero .signs > *').count();
      expect(await drawn()).toBe(16);
      const button = page.locator('#hero .legend button', { hasText: '4 workers' });
      expect(await button.getAttribute('aria-pressed')).toBe('false');
      await button.click();
      expect(await drawn()).toBe(20);
      expect(await page.locator('#hero .canvas .sign.special').count()).toBe(5);
    });
  });
  it('filter and sort the table, and switch groups of columns', async () => {
    await onPage('study', {}, async (page) => {
      await page.locator('#cells input').fill('2 workers 64');
      expect(await page.locator('#cells tbody tr').count()).toBeLessThan(6);
      expect(await page.locator('#cells .count').textContent()).toMatch(/^\d of 20$/);
      await page.locator('#cells input').fill('');
      expect(await page.locator('#cells thead th', { hasText: 'busbw' }).count()).toBe(0);
      await page.locator('#cells .views button', { hasText: 'network' }).click();
      expect(await page.locator('#cells thead th', { hasText: 'busbw' }).count()).toBe(1);
      await page.locator('#cells thead button', { hasText: 'throughput' }).click();
      expect(await page.locator('#cells tbody tr').first().textContent()).toContain('3,733');
    });
  });
  it('keep head and first column of the table in sight', async () => {
    await onPage('study', { width: 390, height: 844 }, async (page) => {
      await page.locator('#cells').scrollIntoViewIfNeeded();
      await page.evaluate(() => { const box = document.querySelector('#cells .scroll')!; box.scrollTop = 300; box.scrollLeft = 200; });
      const [frame] = await boxes(page, '#cells .scroll');
      const [corner] = await boxes(page, '#cells thead th');
      expect(Math.abs(corner!.top - frame!.top)).toBeLessThan(3);
      expect(Math.abs(corner!.left - frame!.left)).toBeLessThan(3);
    });
  });
  it('save figures as SVG with colours of their own, PNG and CSV, the data as JSON', async () => {
    await onPage('study', {}, async (page) => {
      await page.locator('#hero details.figures summary').click();
      const saved = async (name: string, act: () => Promise<void>) => {
        const [download] = await Promise.all([page.waitForEvent('download'), act()]);
        expect(download.suggestedFilename()).toBe(name);
        return readFileSync((await download.path())!);
      };
      const press = (text: string) => () => page.locator('#hero .files button', { hasText: text }).click();
      const image = (await saved('hero.svg', press('SVG'))).toString();
      const parsed = await page.evaluate((text) => {
        const drawn = new DOMParser().parseFromString(text, 'image/svg+xml');
        return { root: drawn.documentElement.nodeName, texts: drawn.querySelectorAll('text').length, signs: drawn.querySelectorAll('path').length };
      }, image);
      expect(parsed.root).toBe('svg');
      expect(parsed.texts).toBeGreaterThan(15);
      expect(image).not.toContain('var(');
      expect((await saved('hero.png', press('PNG'))).subarray(1, 4).toString()).toBe('PNG');
      const csv = (await saved('hero.csv', press('CSV'))).toString();
      expect(csv.split('\n')[0]).toBe('series,global batch [images],images/s,low,high,mark,record,n');
      expect(csv).toContain('"2 workers, a core each",64,8557,8409,8624,best,scale-w2-g64,15');
      const data = (await saved('report.json', () => page.locator('.top button', { hasText: 'JSON' }).click())).toString();
      expect(JSON.parse(data).schema).toBe('paceline-report-2');
    });
  });
  it('change the theme; an address opens what lies in a fold, and back closes nothing', async () => {
    await onPage('study', {}, async (page) => {
      const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      const light = await paper();
      await page.locator('button.theme').click();
      expect(await paper()).not.toBe(light);
      await page.locator('a.tile').nth(1).click();
      expect(page.url()).toContain('#workers');
      await page.evaluate(() => { location.hash = '#ledger'; });
      await page.waitForSelector('#ledger svg');
      expect(await page.locator('details.fold[open]').count()).toBe(1);
      await page.goBack();
      expect(page.url()).toContain('#workers');
    });
  });
  it('zoom the timeline by keys, buttons and, with the focus, by the wheel', async () => {
    await onPage('study', {}, async (page) => {
      const spans = () => page.locator('#steps .span').count();
      const all = await spans();
      await page.locator('#steps .canvas').focus();
      await page.keyboard.press('ArrowRight');
      await page.keyboard.press('+');
      await page.keyboard.press('+');
      const zoomed = await spans();
      expect(zoomed).toBeLessThan(all);
      for (let i = 0; i < 12; ++i) await page.keyboard.press('ArrowRight');
      expect((await tipBox(page)).text).toContain('duration');
      await page.keyboard.press('0');
      expect(await spans()).toBe(all);
      const [box] = await boxes(page, '#steps .canvas');
      await page.mouse.move((box!.left + box!.right) / 2, box!.top + 20);
      await page.mouse.wheel(0, -300);
      await page.waitForFunction((count) => document.querySelectorAll('#steps .span').length < count, all);
    });
  });
});

describe.skipIf(reason !== null)('For everybody', () => {
  const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
  it.each(SAMPLES.flatMap((name) => ['light', 'dark'].map((theme) => [name, theme] as const)))('axe finds nothing in %s, %s', async (name, theme) => {
    await onPage(name, { theme }, async (page) => {
      if (name === 'study') for (const fold of await page.locator('details.fold > summary').all()) await fold.click();
      await page.evaluate(axe);
      const found = await page.evaluate(async () => {
        const { violations } = await (window as any).axe.run(document);
        return violations.map((one: any) => `${one.id}: ${one.nodes.slice(0, 2).map((node: any) => node.html.slice(0, 200)).join(' | ')}`);
      });
      expect(found).toEqual([]);
    });
  }, 60_000);
  it('at most 60 stops of the Tab key with folds shut', async () => {
    await onPage('study', {}, async (page) => {
      let stops = 0;
      for (; stops < 100; ++stops) {
        await page.keyboard.press('Tab');
        if (await page.evaluate(() => document.activeElement === document.body || document.activeElement === null)) break;
      }
      expect(stops).toBeLessThanOrEqual(60);
      expect(stops).toBeGreaterThan(20);
    });
  });
  it('neighbours in a bar differ without colours: 3:1, stripes or a name on them', async () => {
    for (const theme of ['light', 'dark']) {
      await onPage('study', { theme }, async (page) => {
        const close = await page.evaluate(() => {
          const light = (element: Element) => {
            const [r, g, b] = getComputedStyle(element).fill.match(/[\d.]+/g)!.slice(0, 3).map(Number).map((c) => (c! / 255 <= 0.04045 ? c! / 255 / 12.92 : ((c! / 255 + 0.055) / 1.055) ** 2.4));
            return 0.2126 * r! + 0.7152 * g! + 0.0722 * b!;
          };
          const spans = [...document.querySelectorAll('#steps .span, #step .arrives, #step .loss')].map((element) => ({ element, ...element.getBoundingClientRect().toJSON() }));
          const striped = (one: any) => one.element.nextElementSibling?.matches('.stripes') ?? false;
          const named = (one: any) => [...document.querySelectorAll('#steps .inside')].some((text) => { const box = text.getBoundingClientRect(); return box.left >= one.left && box.right <= one.right && Math.abs(box.top - one.top) < one.height; });
          return spans.flatMap((one, i) => spans.slice(i + 1).filter((other) => other.top === one.top && Math.abs(other.left - one.right) < 0.5 && other.width > 4 && one.width > 4).flatMap((other) => {
            const [a, b] = [light(one.element), light(other.element)].sort((x, y) => y - x);
            return (a! + 0.05) / (b! + 0.05) >= 3 || striped(one) !== striped(other) || named(one) || named(other) ? [] : [`${getComputedStyle(one.element).fill} beside ${getComputedStyle(other.element).fill}`];
          }));
        });
        expect([...new Set(close)]).toEqual([]);
      });
    }
  });
});

describe.skipIf(reason !== null)('Weight', () => {
  it('is at most 400 kB without data, the study at most 80 kB of data, 200 cells with 6,000 epochs at most 500 kB', () => {
    const built = statSync(fileURLToPath(new URL('../../dist/index.html', import.meta.url))).size;
    expect(built).toBeLessThanOrEqual(400_000);
    expect(statSync(fileURLToPath(addressOf('study'))).size - built).toBeLessThanOrEqual(80_000);
    expect(statSync(fileURLToPath(addressOf('long'))).size - built).toBeLessThanOrEqual(500_000);
  });
});
