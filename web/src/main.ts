// Reads the report that the program put into this page, and shows it.

import './theme.css';
import './table.css';
import './plot.css';
import { followReading } from './contents';
import { renderFailure, renderPage } from './page';
import { unfoldForPrint } from './print';
import { parseReport, SchemaError, type Report } from './schema';

const json = document.getElementById('paceline-data')?.textContent ?? '';

let report: Report | undefined;
try {
  report = parseReport(json);
} catch (error) {
  if (!(error instanceof SchemaError)) throw error;
  document.body.append(renderFailure(error.message));
}
if (report !== undefined) {
  document.title = report.title;
  const page = renderPage(report, json);
  document.body.append(page);
  followReading(page);
  unfoldForPrint(page);
  // The section that the address names exists only now.
  const named = [...page.querySelectorAll('[id]')].find(({ id }) => [`#${id}`, `#${encodeURIComponent(id)}`].includes(location.hash));
  named?.scrollIntoView();
}
