// The page of a run that goes on: shows each new report in place of the one before, as what is known so far.

import { h } from './dom';
import { Later } from './later';
import type { Report } from './data/report';
import { parseReport } from './data/schema';
import { follow } from './live';
import { followReading } from './page/contents';
import { renderPage } from './page/page';

const ENOUGH = 3;  // repeats that an interval needs
const FEW = `fewer than ${ENOUGH} repeats so far`;

/// Points of figures whose cell still has few repeats become hollow; the table of all cells says how many there are.
export function markUnfinished(report: Report): void {
  const blocks = report.sections.flatMap((section) => section.blocks);
  const few = new Set<string>();
  for (const block of blocks) {
    if (block.type !== 'table') continue;
    const repeats = block.columns.findIndex(({ key }) => key === 'repeats');
    const records = block.columns.findIndex(({ key }) => key === 'records');
    if (repeats < 0 || records < 0) continue;
    for (const row of block.rows) {
      if ((row[repeats]!.value ?? ENOUGH) < ENOUGH) for (const record of row[records]!.text.split(' ')) few.add(record);
    }
  }
  for (const block of blocks) {
    if (block.type !== 'figure' || !block.id.startsWith('hero')) continue;
    for (const point of block.views.flatMap(({ series }) => series).flatMap(({ points }) => points)) {
      if (point.mark === '' && few.has(point.record)) point.mark = FEW;
    }
  }
}

/// Each answer says that it is of a run that goes on.
function saySoFar(page: HTMLElement): void {
  for (const place of page.querySelectorAll('.tile .verdict, .best h2')) place.append(' ', h('span', { class: 'so-far' }, 'so far'));
}

/// A drawing takes the room of the one before until it is drawn: without it the page would be too short to stay where it is.
function keepRoom(page: HTMLElement, next: HTMLElement): void {
  for (const canvas of next.querySelectorAll<HTMLElement>('figure[id] .canvas')) {
    const before = page.querySelector<HTMLElement>(`figure[id="${CSS.escape(canvas.closest('figure')!.id)}"] .canvas`);
    if (before && !canvas.firstChild) canvas.style.minHeight = `${before.offsetHeight}px`;
  }
}

/// Shows the report of `json` inside `page`; what the reader has unfolded stays unfolded, and the page where it was.
export function showAnew(page: HTMLElement, json: string, isRunning = false, later = new Later()): string {
  const report = parseReport(json);
  if (isRunning) markUnfinished(report);
  later.clear();
  const next = renderPage(report, json, later);
  if (isRunning) saySoFar(next);
  const open = [...page.querySelectorAll<HTMLDetailsElement>('details[open]')].map(({ id }) => id).filter((id) => id !== '');
  const [left, top] = [window.scrollX, window.scrollY];
  keepRoom(page, next);
  page.replaceChildren(...next.childNodes);
  page.style.cssText = next.style.cssText;
  for (const details of page.querySelectorAll('details')) if (open.includes(details.id)) details.open = true;
  window.scrollTo({ left, top, behavior: 'instant' });
  followReading(page);
  return report.title;
}

/// Nothing for a page that was not served.
export const followRun = (page: HTMLElement, later: Later): void => void follow({ show: (json, isRunning) => showAnew(page, json, isRunning, later) });
