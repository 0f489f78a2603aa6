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
import { followRun } from './live-page';
import { renderFailure, renderPage } from './page/page';
import { prepareForPrint } from './page/print';

async function show(data: string): Promise<void> {
  const json = await inflate(data);
  const report = parseReport(json);
  document.title = report.title;
  const page = renderPage(report, json);
  document.body.append(page);
  followReading(page);
  prepareForPrint(page);
  followRun(page);
  // What the address names exists only now, or lies in a fold.
  openAddress(page, location.hash);
  addEventListener('hashchange', () => openAddress(page, location.hash));
  // Behind the second frame: what observes sizes has drawn (scripts/bench.mjs reads it).
  requestAnimationFrame(() => requestAnimationFrame(() => performance.mark('paceline-drawn')));
}

show(document.getElementById('paceline-data')?.textContent ?? '').catch((error: unknown) => {
  if (!(error instanceof SchemaError)) throw error;
  document.body.append(renderFailure(error.message));
});
