// How long the page of 200 cells and six trainings of 1,000 epochs takes until its second frame, median of 5; nothing
// is asserted (the aim is 1 s). Prints the size of page and data too.
//   npm run bench
import { statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { addressOf, launch, open, reasonToSkip } from '../test/browser/browser.mjs';

const reason = reasonToSkip();
if (reason) {
  console.log(`no benchmark: ${reason}`);
  process.exit(0);
}
const browser = await launch();
for (const name of ['study', 'long']) {
  const times = [];
  for (let i = 0; i < 5; ++i) {
    const { page, context } = await open(browser, name);
    times.push(await page.evaluate(() => performance.getEntriesByName('paceline-drawn')[0].startTime));
    await context.close();
  }
  times.sort((a, b) => a - b);
  console.log(`${name}: drawn after ${Math.round(times[2])} ms (${times.map(Math.round).join(', ')}), file of ${Math.round(statSync(fileURLToPath(addressOf(name))).size / 1000)} kB`);
}
await browser.close();
