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

const built = fileURLToPath(new URL('../../dist/index.html', import.meta.url));

/// Why the browser tests cannot run here, or null.
export function reasonToSkip() {
  if (!chromiumPath) return 'no chromium here (apt-get install chromium, or CHROMIUM=PATH)';
  return existsSync(built) ? null : 'no built page (npm run build)';
}

export const launch = () => chromium.launch({ executablePath: chromiumPath, args: ['--no-sandbox', '--disable-dev-shm-usage', '--font-render-hinting=none'] });

let folder;
const written = new Map();
/// The address of the built page with a sample in it.
export function addressOf(name) {
  folder ??= mkdtempSync(join(tmpdir(), 'paceline-page-'));
  if (!written.has(name)) {
    const path = join(folder, `${name}.html`);
    writeFileSync(path, fill(readFileSync(built, 'utf8'), compress(sample(name))));
    written.set(name, pathToFileURL(path).href);
  }
  return written.get(name);
}

/// Opens a sample; `problems` gathers what the console says and what the page asked for.
export async function open(browser, name, { width = 1280, height = 900, theme = 'light', touch = false, hash = '' } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: theme, reducedMotion: 'reduce', hasTouch: touch, acceptDownloads: true });
  const page = await context.newPage();
  const problems = [];
  page.on('console', (message) => problems.push(`console: ${message.text()}`));
  page.on('pageerror', (error) => problems.push(`error: ${error.message}`));
  const address = addressOf(name);
  await context.route('**/*', (route) => {
    const url = route.request().url();
    if (url.startsWith(address) || url.startsWith('data:') || url.startsWith('blob:')) return route.continue();
    problems.push(`request: ${url}`);
    return route.abort();
  });
  await page.goto(address + hash);
  await page.waitForSelector('.page');
  // Two frames: everything is drawn before the first, and what observes sizes has been called.
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  return { page, context, problems };
}
