// Dev mode: fills the data tag of the served page with a sample, as the program fills the built one.
//   /                the golden report of tests/golden
//   /?sample=large   a study of 27 cells, made by samples/large.mjs

import { readFileSync } from 'node:fs';
import { fill } from './one-file.mjs';
import { largeReport } from '../samples/large.mjs';

const golden = new URL('../../tests/golden/sample-report.json', import.meta.url);

export function sample(name) {
  return name === 'large' ? JSON.stringify(largeReport()) : readFileSync(golden, 'utf8');
}

export function sampleData() {
  return {
    name: 'paceline-sample-data',
    apply: 'serve',
    configureServer: (server) => void server.watcher.add(golden.pathname),
    handleHotUpdate: ({ file, server }) => {
      if (file === golden.pathname) server.ws.send({ type: 'full-reload' });
    },
    transformIndexHtml: {
      order: 'pre',
      handler: (html, { originalUrl }) =>
        fill(html, sample(new URL(originalUrl ?? '/', 'file:///').searchParams.get('sample'))),
    },
  };
}
