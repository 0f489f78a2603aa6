// Follows the run whose report this page shows: only where `paceline serve` gave the page (a meta "paceline-live" names
// the run's events). A strip says how far the run is, the tab's title too, and the document is fetched again when
// there is something new in it.

import './live.css';

/// One event of a run, as docs/formats.md has them; "status" is the server's own, of when this page connected.
interface RunEvent {
  event: string;
  at: number;
  [field: string]: unknown;
}

/// How far the run is.
export interface Progress {
  state: string; // "running", "complete", "interrupted", "failed"
  done: number;
  all: number; // cells, or updates; 0: not known
  unit: 'cells' | 'updates';
  epoch: number;
  cell: string;
  imagesPerSecond?: number;
  loss?: number;
  bestSpeed?: number; // of a study's cells, with a core for each thread
  bestAccuracy?: number;
}

export const atTheBegin = (): Progress => ({ state: 'running', done: 0, all: 0, unit: 'updates', epoch: 0, cell: '' });

const number = (value: unknown): number | undefined => (typeof value === 'number' && Number.isFinite(value) ? value : undefined);
const text = (value: unknown): string => (typeof value === 'string' ? value : '');
const whole = (value: number): string => Math.round(value).toLocaleString('en');

/// The larger of both; what is not known does not count.
const larger = (a: number | undefined, b: number | undefined): number | undefined =>
  a === undefined || b === undefined ? a ?? b : Math.max(a, b);

/// Where the run stands after `event`. A pure function.
export function after(before: Progress, event: RunEvent): Progress {
  const now = { ...before };
  const speed = number(event.images_per_s);
  if (speed !== undefined && event.event !== 'end') now.imagesPerSecond = speed;
  switch (event.event) {
    case 'status':
    case 'start': {
      const isStatus = event.event === 'status';
      const cells = number(event.cells) ?? 0;
      now.state = isStatus ? text(event.state) : 'running';
      now.unit = cells > 0 ? 'cells' : 'updates';
      now.all = cells > 0 ? cells : number(event.updates) ?? 0;
      now.done = isStatus ? number(cells > 0 ? event.cells_done : event.updates_done) ?? 0 : 0;
      now.epoch = number(event.epoch) ?? 0;
      now.cell = text(event.cell);
      now.loss = number(event.loss);
      if (isStatus) now.bestSpeed = cells > 0 ? number(event.best_images_per_s) : undefined;
      if (isStatus) now.bestAccuracy = number(event.best_accuracy);
      return now;
    }
    case 'evaluation':
      now.bestAccuracy = larger(now.bestAccuracy, number(event.validation_accuracy) ?? number(event.test_accuracy));
      return now;
    case 'step':
    case 'epoch':
    case 'resume':
      now.epoch = number(event.epoch) ?? now.epoch;
      now.loss = number(event.loss) ?? number(event.train_loss) ?? now.loss;
      if (now.unit === 'updates') {
        now.done = number(event.update) ?? now.done;
        now.all = number(event.updates) ?? now.all;
      }
      return now;
    case 'cell_begun':
      now.cell = text(event.cell);
      now.epoch = 0;
      now.loss = undefined;
      return now;
    case 'cell_done':
      now.done = number(event.done) ?? now.done;
      now.all = number(event.cells) ?? now.all;
      now.cell = '';
      if (event.oversubscribed !== true) now.bestSpeed = larger(now.bestSpeed, speed);
      now.bestAccuracy = larger(now.bestAccuracy, number(event.accuracy));
      return now;
    case 'end':
      now.state = text(event.status) || 'failed';
      now.cell = '';
      return now;
    default:
      return now;
  }
}

/// Whether the report may be another one after `event`.
export const changesReport = (event: RunEvent): boolean => ['cell_done', 'epoch', 'evaluation', 'end', 'reset'].includes(event.event);

/// "31 of 82 cells · 8,200 images/s · scale-weak-w2-b32-r0"
export function describe(progress: Progress): string {
  const { state, done, all, unit, epoch, loss, imagesPerSecond, cell, bestSpeed, bestAccuracy } = progress;
  const parts = [all > 0 ? `${whole(done)} of ${whole(all)} ${unit}` : ''];
  if (state !== 'running') parts.unshift(state);
  if (epoch > 0 && unit === 'updates') parts.push(`epoch ${epoch}`);
  if (state === 'running' && imagesPerSecond !== undefined) parts.push(`${whole(imagesPerSecond)} images/s`);
  if (state === 'running' && loss !== undefined) parts.push(`loss ${loss.toFixed(4)}`);
  parts.push(cell, bestSpeed === undefined ? '' : `best ${whole(bestSpeed)} images/s`);
  if (bestAccuracy !== undefined) parts.push(`best ${(100 * bestAccuracy).toFixed(2)} %`);
  return parts.filter((part) => part !== '').join(' · ');
}

/// "12 s", "5 min"
export const age = (seconds: number): string => (seconds < 100 ? `${Math.max(0, Math.round(seconds))} s` : `${Math.round(seconds / 60)} min`);

/// What the page gives, and what a test gives instead of the browser.
export interface Live {
  /// Shows the report of `json`, which is another one than before or of a run that has ended since. While the run
  /// goes on (`isRunning`) it is what is known so far.
  /// Returns its title, where it has one: a page that was opened before the first record had none of its own.
  show(json: string, isRunning: boolean): string | void;
  connect?: (url: string) => EventSource;
  load?: (url: string) => Promise<string>;
}

async function fetchText(url: string): Promise<string> {
  const answer = await fetch(url, { cache: 'no-store' });
  if (!answer.ok) throw new Error(`${url}: ${answer.status}`);
  return answer.text();
}

const NAMES = ['status', 'start', 'resume', 'step', 'epoch', 'evaluation', 'cell_begun', 'cell_done', 'part_done', 'end', 'reset'];
const BETWEEN_REPORTS_MS = 5000; // as seldom as the server makes a new one
const SILENT_S = 15; // the server sends something every 10 s, a comment at least

/// Begins to follow; undefined for a page that was not served. Returns what ends it.
export function follow(live: Live): (() => void) | undefined {
  const named = document.querySelector<HTMLMetaElement>('meta[name="paceline-live"]')?.content ?? '';
  if (named === '') return undefined;
  const events = new URL(named, location.href);
  const token = new URLSearchParams(location.search).get('token');
  const withToken = (url: URL): string => {
    if (token !== null) url.searchParams.set('token', token);
    return url.href;
  };
  const run = (events.searchParams.get('run') ?? '').split('/').map(encodeURIComponent).join('/');
  const report = withToken(new URL(`/document/${run}`, location.href));
  let title = document.title;

  const strip = document.createElement('div');
  strip.className = 'live';
  const bar = document.createElement('progress');
  const words = document.createElement('span');
  bar.setAttribute('aria-label', 'progress of the run');
  strip.append(bar, ' ', words);
  document.body.prepend(strip);

  let progress = atTheBegin();
  let heard = Date.now();
  let connected = true;
  const draw = (): void => {
    const running = progress.state === 'running';
    bar.hidden = !running || progress.all === 0;
    bar.max = Math.max(1, progress.all);
    bar.value = progress.done;
    const silent = (Date.now() - heard) / 1000;
    const lost = running && (!connected || silent > SILENT_S) ? ` · news stopped ${age(silent)} ago` : '';
    words.textContent = describe(progress) + lost;
    strip.dataset.state = lost === '' ? progress.state : 'silent';
    document.title = running && progress.all > 0 ? `${whole(progress.done)}/${whole(progress.all)} ${title}` : title;
  };

  let shown = '';
  let shownRunning: boolean | undefined;
  let loading: ReturnType<typeof setTimeout> | undefined;
  let last = 0;
  let asked = 0;
  const load = async (): Promise<void> => {
    loading = undefined;
    last = Date.now();
    const turn = ++asked;
    try {
      const json = await (live.load ?? fetchText)(report);
      const isRunning = progress.state === 'running';
      if (turn !== asked || (json === shown && isRunning === shownRunning)) return; // a later one is under way, or it is the same
      shown = json;
      shownRunning = isRunning;
      title = live.show(json, isRunning) || title;
      draw();
    } catch {
      // The next event tries again; the strip says when nothing is heard any more.
    }
  };
  const loadSoon = (atOnce: boolean): void => {
    if (atOnce && loading !== undefined) clearTimeout(loading);
    if (loading !== undefined && !atOnce) return;
    loading = setTimeout(() => void load(), atOnce ? 0 : Math.max(0, last + BETWEEN_REPORTS_MS - Date.now()));
  };

  const source = (live.connect ?? ((url) => new EventSource(url)))(withToken(events));
  source.onopen = () => {
    connected = true;
    heard = Date.now();
  };
  source.onerror = () => {
    connected = false; // the browser comes again by itself, with the id of the last event
    draw();
  };
  for (const name of NAMES)
    source.addEventListener(name, (message) => {
      heard = Date.now();
      connected = true;
      if (name === 'reset') progress = atTheBegin();
      let event: RunEvent;
      try {
        event = { ...(JSON.parse((message as MessageEvent<string>).data) as RunEvent), event: name };
      } catch {
        return;
      }
      progress = after(progress, event);
      // The page came with a report, but not with whether the run goes on: the first status says that.
      const isNews = name === 'status' && (shownRunning === undefined ? progress.state === 'running' : progress.state !== 'running' && shownRunning);
      if (changesReport(event) || isNews) loadSoon(name === 'end' || isNews);
      draw();
    });
  const clock = setInterval(draw, 1000);
  draw();
  return () => {
    source.close();
    clearInterval(clock);
    if (loading !== undefined) clearTimeout(loading);
    strip.remove();
    document.title = title;
  };
}
