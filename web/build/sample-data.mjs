// Dev mode: fills the data tag of the served page with a sample, as the program fills the built one.
//   /                    a quick study (samples/study.mjs)
//   /?sample=long        and the others by their names below

import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { fill } from './one-file.mjs';
import { comparedReport } from '../samples/compared.mjs';
import { interruptedReport } from '../samples/interrupted.mjs';
import { longReport } from '../samples/long.mjs';
import { studyReport } from '../samples/study.mjs';

const folder = join(dirname(fileURLToPath(import.meta.url)), '..', '..', 'tests', 'golden');
const golden = (name) => readFileSync(join(folder, name), 'utf8');

const samples = {
  study: () => JSON.stringify(studyReport()),
  long: () => JSON.stringify(longReport()),
  interrupted: () => JSON.stringify(interruptedReport()),
  compared: () => JSON.stringify(comparedReport()),
  golden: () => golden('sample-report.json'),
  'schema-1': () => golden('sample-report-1.json'),
};
export const sampleNames = Object.keys(samples);

/// A sample by its name, or a report that the program wrote: `paceline report RECORD.. --json FILE.json`.
export function sample(name) {
  if (name?.endsWith('.json')) return readFileSync(name, 'utf8');
  const make = samples[name ?? 'study'];
  if (!make) throw new Error(`there is no sample "${name}"; there are ${sampleNames.join(', ')}`);
  return make();
}

export function sampleData() {
  return {
    name: 'paceline-sample-data',
    apply: 'serve',
    transformIndexHtml: {
      order: 'pre',
      handler: (html, { originalUrl }) =>
        fill(html, sample(new URL(originalUrl ?? '/', 'file:///').searchParams.get('sample'))),
    },
  };
}
