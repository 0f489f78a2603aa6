// A built page with a report in it, to look at without the program:
//   npm run fill -- [NAME|FILE.json] [OUT.html]     (names: build/sample-data.mjs)
import { readFileSync, writeFileSync } from 'node:fs';
import { compress, fill } from '../build/one-file.mjs';
import { sample } from '../build/sample-data.mjs';

const [source = 'study', out = `dist/sample-${source.replace(/^.*\/|\.json$/g, '')}.html`] = process.argv.slice(2);
const page = readFileSync(new URL('../dist/index.html', import.meta.url), 'utf8');
writeFileSync(out, fill(page, compress(sample(source))));
console.log(`wrote ${out}`);
