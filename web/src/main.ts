// Reads the report that the program put into this page, and shows it.

import './styles/theme.css';
import './styles/page.css';
import './styles/plot.css';
import './styles/table.css';
import './styles/print.css';
import { inflate } from './data/inflate';
import { parseReport, SchemaError } from './data/schema';
import { followReading } from './page/contents';
import { openAddress } from './page/fold';
import { followNeeds, Later } from './later';
import { followRun } from './live-page';
import { renderFailure, renderPage } from './page/page';
import { prepareForPrint } from './page/print';

async function show(data: string): Promise<void> {
  const json = await inflate(data);
  const report = parseReport(json);
  document.title = report.title;
  const later = new Later();
  const page = renderPage(report, json, later);
  document.body.append(page);
  followReading(page);
  followNeeds(later);
  prepareForPrint(page);
  followRun(page, later);
  // What the address names exists only now, or lies in a fold.
  const goTo = () => {
    if (location.hash === '') return;
    later.all();  // nothing above the place may grow any more
    openAddress(page, location.hash);
  };
  addEventListener('hashchange', goTo);
  // In the second frame: what observes sizes has drawn the first screen. scripts/bench.mjs reads both marks.
  requestAnimationFrame(() => requestAnimationFrame(() => {
    goTo();
    performance.mark('paceline-drawn');
    later.begin(() => performance.mark('paceline-complete'));
  }));
}

show(document.getElementById('paceline-data')?.textContent ?? '').catch((error: unknown) => {
  if (!(error instanceof SchemaError)) throw error;
  document.body.append(renderFailure(error.message));
});
