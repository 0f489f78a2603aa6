// Where elements of a page stand, and which texts of a drawing stand on one another.

import type { Page } from 'playwright-core';

export interface Box { left: number; right: number; top: number; bottom: number; text: string }
export const boxes = (page: Page, query: string): Promise<Box[]> => page.evaluate((selector) =>
  [...document.querySelectorAll(selector)].map((element) => {
    const { left, right, top, bottom } = element.getBoundingClientRect();
    return { left, right, top, bottom, text: element.textContent ?? '' };
  }), query);
const touching = (a: Box, b: Box) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 2 && b.top < a.bottom - 2;

/// Texts of one drawing that overlap, or that stand outside of it.
export async function clashes(page: Page): Promise<string[]> {
  const drawings = await page.evaluate(() => [...document.querySelectorAll('.canvas > svg')].map((image) => {
    const box = (element: Element) => {
      const { left, right, top, bottom } = element.getBoundingClientRect();
      return { left, right, top, bottom, text: element.textContent ?? '' };
    };
    return { frame: box(image), texts: [...image.querySelectorAll('text')].filter(({ textContent }) => textContent).map(box) };
  }));
  return drawings.flatMap(({ frame, texts }) => texts.flatMap((one, i) => [
    ...texts.slice(i + 1).filter((other) => touching(one, other)).map((other) => `"${one.text}" and "${other.text}" overlap`),
    ...(one.left < frame.left - 2 || one.right > frame.right + 2 || one.top < frame.top - 2 || one.bottom > frame.bottom + 2 ? [`"${one.text}" stands outside`] : []),
  ]));
}
