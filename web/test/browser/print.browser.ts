// The page on paper: how many sheets, what stands on the first, and that nothing is cut apart.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Browser, Page } from 'playwright-core';
import { boxes, clashes } from './boxes';
import { launch, open, reasonToSkip } from './browser.mjs';
import { pagesOf, placesOf } from './pdf';

const reason = reasonToSkip();
if (reason) console.log(`skipped: the browser tests of paper: ${reason}`);

let browser: Browser;
beforeAll(async () => { if (!reason) browser = await launch(); });
afterAll(async () => { await browser?.close(); });

/// A4 within its margins, in pixels.
const SHEET = { width: 703, height: 1032 };

/// Marks top and bottom of each element with a target, and links to it: then the PDF says on which page each stands.
const markEnds = (page: Page, query: string): Promise<string[]> => page.evaluate((selector) => {
  const links = document.createElement('p');
  links.style.cssText = 'position: absolute; top: 0; height: 0; overflow: hidden;';
  const marked = [...document.querySelectorAll<HTMLElement>(selector)].map((element, i) => {
    for (const end of ['top', 'bottom']) {
      const target = document.createElement('span');
      target.id = `end-${i}-${end}`;
      target.style.cssText = `position: absolute; left: 0; ${end}: 1px; height: 0;`;
      const link = document.createElement('a');
      link.href = `#${target.id}`;
      link.textContent = '.';
      links.append(link);
      const holder = element.tagName === 'TR' ? element.firstElementChild as HTMLElement : element;
      holder.style.setProperty('position', 'relative', 'important');
      holder.append(target);
    }
    return `${element.tagName.toLowerCase()} ${element.id || element.textContent!.slice(0, 40)}`;
  });
  document.body.append(links);
  return marked;
}, query);

describe.skipIf(reason !== null)('On paper', () => {
  it('the study takes at most 5 pages, answer and hero on the first; no figure or row is cut apart', async () => {
    const { page, context } = await open(browser, 'study');
    const marked = await markEnds(page, '.best, .tiles, figure.drawn, .next, h2, tbody tr');
    const pdf = await page.pdf({ preferCSSPageSize: true });
    expect(pagesOf(pdf)).toBeLessThanOrEqual(5);
    const places = placesOf(pdf);
    const found = marked.flatMap((name, i) => {
      const [top, bottom] = [places.get(`end-${i}-top`), places.get(`end-${i}-bottom`)];
      return top && bottom ? [{ name, top, bottom }] : [];  // what is not printed has no place
    });
    expect(found.length).toBeGreaterThan(30);
    for (const { name, top, bottom } of found) expect(top.page, `${name} is cut apart`).toBe(bottom.page);
    for (const first of ['div ', 'ul ', 'figure hero']) expect(found.find(({ name }) => name.startsWith(first))!.bottom.page, first).toBe(0);
    // A title stands with what it is about: a drawing, or the first row of a table, whose head is above it on every page.
    const titles = found.map((one, i) => [one, found[i + 1]] as const).filter(([{ name }]) => /^h2/.test(name));
    expect(titles.length).toBeGreaterThan(4);
    for (const [title, next] of titles) if (next) expect([next.name, next.top.page], title.name).toEqual([next.name, title.bottom.page]);
    await context.close();
  });
  it('a sheet is filled in its width, and has answer and hero on its first page', async () => {
    const { page, context, problems } = await open(browser, 'study', { width: SHEET.width, height: SHEET.height, theme: 'dark' });
    await page.emulateMedia({ media: 'print', colorScheme: 'dark' });
    await page.evaluate(() => dispatchEvent(new Event('beforeprint')));
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(SHEET.width);
    for (const { bottom } of await boxes(page, '.best, .tile, #hero')) expect(bottom).toBeLessThanOrEqual(SHEET.height);
    for (const found of await clashes(page)) expect.fail(found);
    expect(await page.evaluate(() => getComputedStyle(document.body).backgroundColor)).toBe('rgb(255, 255, 255)');
    expect(await page.evaluate(() => getComputedStyle(document.querySelector('.best')!).backgroundColor)).toBe('rgb(255, 255, 255)');
    expect(problems).toEqual([]);
    await context.close();
  });
});
