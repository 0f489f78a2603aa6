// Debian's chromium for tests and screenshots; a page is the built one with a sample in it, opened as a file with all
// requests refused.

import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { chromium } from 'playwright-core';
import { compress, fill } from '../../build/one-file.mjs';
import { sample } from '../../build/sample-data.mjs';

const PLACES = [process.env.CHROMIUM, '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
export const chromiumPath = PLACES.find((path) => path && existsSync(path));

export const built = fileURLToPath(new URL('../../dist/index.html', import.meta.url));

/// Why the browser tests cannot run here, or null.
export function reasonToSkip() {
  if (!chromiumPath) return 'no chromium here (apt-get install chromium, or CHROMIUM=PATH)';
  return existsSync(built) ? null : 'no built page (npm run build)';
}

export const launch = () => chromium.launch({ executablePath: chromiumPath, args: ['--no-sandbox', '--disable-dev-shm-usage', '--font-render-hinting=none'] });

let folder;
const written = new Map();
/// The address of a built page with a sample in it.
export function addressOf(name, page = built) {
  folder ??= mkdtempSync(join(tmpdir(), 'paceline-page-'));
  const key = `${name} in ${page}`;
  if (!written.has(key)) {
    const path = join(folder, `${written.size}.html`);
    writeFileSync(path, fill(readFileSync(page, 'utf8'), compress(sample(name))));
    written.set(key, pathToFileURL(path).href);
  }
  return written.get(key);
}

/// Opens a sample; `problems` gathers what the console says and what the page asked for.
export async function open(browser, name, { page: from = built, width = 1280, height = 900, theme = 'light', touch = false, hash = '' } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: theme, reducedMotion: 'reduce', hasTouch: touch, acceptDownloads: true });
  const page = await context.newPage();
  const problems = [];
  page.on('console', (message) => problems.push(`console: ${message.text()}`));
  page.on('pageerror', (error) => problems.push(`error: ${error.message}`));
  const address = addressOf(name, from);
  await context.route('**/*', (route) => {
    const url = route.request().url();
    if (url.startsWith(address) || url.startsWith('data:') || url.startsWith('blob:')) return route.continue();
    problems.push(`request: ${url}`);
    return route.abort();
  });
  await page.goto(address + hash);
  await page.waitForSelector('.page');
  // What stands below the first screen is drawn too.
  await page.waitForFunction((mark) => performance.getEntriesByName(mark).length > 0, from === built ? 'paceline-complete' : 'paceline-drawn');
  return { page, context, problems };
}
