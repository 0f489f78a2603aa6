// How long pages take until their first screen is drawn, and until all of them is: of the study and of 200 cells with six
// trainings of 1,000 epochs (the aim is 1 s); medians; nothing is asserted. Another built page, of a version before, is
// measured in turns with this one.
//   npm run bench -- [ANOTHER/index.html]
import { statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { addressOf, built, launch, open, reasonToSkip } from '../test/browser/browser.mjs';

const ROUNDS = 9;
const reason = reasonToSkip();
if (reason) {
  console.log(`no benchmark: ${reason}`);
  process.exit(0);
}
const pages = [built, ...process.argv.slice(2)];
const median = (times) => [...times].sort((a, b) => a - b)[Math.floor(times.length / 2)];
const browser = await launch();
for (const name of ['study', 'long']) {
  const times = pages.map(() => ({ drawn: [], complete: [] }));
  for (let i = 0; i < ROUNDS; ++i) {
    for (const [k, path] of pages.entries()) {
      const { page, context } = await open(browser, name, { page: path });
      for (const [mark, list] of Object.entries(times[k])) {
        const [time] = await page.evaluate((wanted) => performance.getEntriesByName(wanted).map(({ startTime }) => startTime), `paceline-${mark}`);
        if (time !== undefined) list.push(time);
      }
      await context.close();
    }
  }
  for (const [k, { drawn, complete }] of times.entries()) {
    const all = complete.length > 0 ? `, all of it after ${Math.round(median(complete))} ms` : '';
    console.log(`${name}, ${pages[k]}: first screen drawn after ${Math.round(median(drawn))} ms (${drawn.map(Math.round).join(', ')})${all}; ` +
      `file of ${Math.round(statSync(fileURLToPath(addressOf(name, pages[k]))).size / 1000)} kB`);
  }
}
await browser.close();
