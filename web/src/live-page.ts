// The page of a run that goes on: shows each new report in place of the one before.

import { parseReport } from './data/schema';
import { follow } from './live';
import { followReading } from './page/contents';
import { renderPage } from './page/page';

/// Shows the report of `json` inside `page`; what the reader has unfolded stays unfolded.
export function showAnew(page: HTMLElement, json: string): void {
  const next = renderPage(parseReport(json), () => json);
  const open = [...page.querySelectorAll<HTMLDetailsElement>('details[open]')].map(({ id }) => id).filter((id) => id !== '');
  page.replaceChildren(...next.childNodes);
  page.style.cssText = next.style.cssText;
  for (const details of page.querySelectorAll('details')) if (open.includes(details.id)) details.open = true;
  followReading(page);
}

/// Nothing for a page that was not served.
export const followRun = (page: HTMLElement): void => void follow({ show: (json) => showAnew(page, json) });
