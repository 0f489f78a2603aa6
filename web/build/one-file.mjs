// Joins what Vite built into ONE page: scripts and styles move into index.html, nothing is fetched at view time.
//
// Our own twenty lines and no plug-in from the registry, because the page has a second demand that no plug-in
// knows: the empty data tag must leave the build exactly as src/report/page.cc looks for it.

import { deflateSync } from 'node:zlib';

export const DATA_TAG = '<script id="paceline-data" type="application/json"></script>';

/// The promise of the page's foot, held by the browser: nothing is fetched, whatever a report's words or a later change say.
const POLICY = `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline'; ` +
  `style-src 'unsafe-inline'; img-src data:">`;

const count = (text, part) => text.split(part).length - 1;

/// The data as the program compresses it (src/report/page.h).
export const compress = (json) => deflateSync(json, { level: 9 }).toString('base64');

/// Puts a report's JSON into a page, plain. "<" is escaped so that no text of a report can end the script element.
export function fill(page, json) {
  if (count(page, DATA_TAG) !== 1) throw new Error(`the page holds ${count(page, DATA_TAG)} data tags, needs 1`);
  const body = json.replaceAll('<', '\\u003c');
  return page.replace(DATA_TAG, () => DATA_TAG.replace('></', () => `>${body}</`));
}

/// A page from its HTML and the files that it names. Errors: when one is missing, or something is left to fetch.
export function joinPage(html, files) {
  const take = (name) => {
    const file = files.get(name.replace(/^\.?\//, ''));
    if (file === undefined) throw new Error(`index.html names ${name}, which was not built`);
    return file;
  };
  const page = html
    .replace(/<script type="module"[^>]*? src="([^"]+)"[^>]*><\/script>/g, (_, name) =>
      `<script type="module">${take(name).replaceAll('</script', '<\\/script')}</script>`)
    .replace(/<link rel="stylesheet"[^>]*? href="([^"]+)"[^>]*>/g, (_, name) =>
      `<style>${take(name).replaceAll('</style', '<\\/style')}</style>`)
    .replace('<head>', () => `<head>${POLICY}`);
  if (count(page, DATA_TAG) !== 1) throw new Error(`the built page holds ${count(page, DATA_TAG)} data tags, needs 1`);
  if (/<(script|link|img)[^>]*? (src|href)="(?!data:)/.test(page)) throw new Error('the built page still names files');
  return page;
}

export function oneFile() {
  return {
    name: 'paceline-one-file',
    apply: 'build',
    enforce: 'post',
    generateBundle(_, bundle) {
      const files = new Map();
      for (const [name, part] of Object.entries(bundle)) {
        if (name.endsWith('.html')) continue;
        files.set(name, part.type === 'chunk' ? part.code : String(part.source));
        delete bundle[name];
      }
      const html = bundle['index.html'];
      html.source = joinPage(String(html.source), files);
    },
  };
}
