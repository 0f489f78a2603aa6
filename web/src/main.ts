// Reads the report that the program put into this page, and shows it.

import './styles/theme.css';
import './styles/page.css';
import './styles/plot.css';
import './styles/table.css';
import './styles/print.css';
import { parseData, readReport, SchemaError } from './data/schema';
import type { Report } from './data/report';
import { followReading } from './page/contents';
import { openAddress } from './page/fold';
import { followRun } from './live-page';
import { renderFailure, renderPage } from './page/page';
import { prepareForPrint } from './page/print';

const json = document.getElementById('paceline-data')?.textContent ?? '';

let data: unknown;
let report: Report | undefined;
try {
  data = parseData(json);
  report = readReport(data);
} catch (error) {
  if (!(error instanceof SchemaError)) throw error;
  document.body.append(renderFailure(error.message));
}
if (report !== undefined) {
  document.title = report.title;
  const page = renderPage(report, () => JSON.stringify(data) + '\n');
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
