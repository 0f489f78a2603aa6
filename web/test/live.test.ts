import { afterEach, beforeEach, describe as group, expect, it, vi } from 'vitest';
import { after, age, atTheBegin, changesReport, describe, follow } from '../src/live';

const event = (name: string, fields: object = {}) => ({ event: name, at: 1, ...fields });

group('progress', () => {
  it('of a training goes by its updates', () => {
    let now = after(atTheBegin(), event('start', { updates: 4000 }));
    now = after(now, event('step', { update: 1200, updates: 4000, epoch: 3, loss: 0.51234, images_per_s: 8199.6 }));
    expect(describe(now)).toBe('1,200 of 4,000 updates · epoch 3 · 8,200 images/s · loss 0.5123');
    now = after(now, event('end', { status: 'complete', images_per_s: 1 }));
    expect(describe(now)).toBe('complete · 1,200 of 4,000 updates · epoch 3');
  });

  it('of a study goes by its cells, whatever the trainings in it say', () => {
    let now = after(atTheBegin(), event('status', { state: 'running', cells: 82, cells_done: 30, best_images_per_s: 8557 }));
    now = after(now, event('cell_begun', { cell: 'weak 2 x 32' }));
    now = after(now, event('step', { update: 5, updates: 9, images_per_s: 8000 }));
    expect(describe(now)).toBe('30 of 82 cells · 8,000 images/s · weak 2 x 32 · best 8,557 images/s');
    now = after(now, event('cell_done', { done: 31, cells: 82, images_per_s: 9000, oversubscribed: true }));
    expect(now.done).toBe(31);
    expect(now.bestSpeed).toBe(8557);
    now = after(now, event('cell_done', { done: 32, cells: 82, images_per_s: 8600 }));
    expect(now.bestSpeed).toBe(8600);
    now = after(now, event('cell_done', { done: 33, cells: 82, accuracy: 0.8425 }));
    expect(describe(now)).toContain('best 8,600 images/s · best 84.25 %');
    expect(now.cell).toBe('');
  });

  it('takes no text for a number and passes over what it does not know', () => {
    const now = after(atTheBegin(), event('step', { update: '7', loss: null, images_per_s: 'fast' }));
    expect(now).toEqual(atTheBegin());
    expect(after(now, event('later'))).toEqual(now);
  });

  it('knows which events change the report', () => {
    expect(['cell_done', 'epoch', 'end'].every((name) => changesReport(event(name)))).toBe(true);
    expect(['step', 'cell_begun', 'status'].some((name) => changesReport(event(name)))).toBe(false);
  });

  it('says ages', () => {
    expect([age(-1), age(12.4), age(99), age(300)]).toEqual(['0 s', '12 s', '99 s', '5 min']);
  });
});

group('a served page', () => {
  class Source {
    onopen?: () => void;
    onerror?: () => void;
    closed = false;
    listeners = new Map<string, (message: { data: string }) => void>();
    addEventListener(name: string, listener: (message: { data: string }) => void): void {
      this.listeners.set(name, listener);
    }
    say(name: string, fields: object = {}): void {
      this.listeners.get(name)?.({ data: JSON.stringify(event(name, fields)) });
    }
    close(): void {
      this.closed = true;
    }
  }
  let source: Source;
  let asked: string[];
  let shown: string[];
  let json = '{}';
  const begin = () =>
    follow({
      show: (text) => { shown.push(text); return 'the report'; },
      connect: (url) => {
        asked.push(url);
        return source as unknown as EventSource;
      },
      load: (url) => {
        asked.push(url);
        return Promise.resolve(json);
      },
    });

  beforeEach(() => {
    vi.useFakeTimers();
    [source, asked, shown] = [new Source(), [], []];
    document.head.innerHTML = '<meta name="paceline-live" content="/events?run=deep/a%20b&from=7">';
    document.body.innerHTML = '<main></main>';
    document.title = 'report';
  });
  afterEach(() => vi.useRealTimers());

  it('is followed, and one from a file is not', () => {
    document.head.innerHTML = '';
    expect(begin()).toBeUndefined();
    expect(asked).toEqual([]);
    expect(document.querySelector('.live')).toBeNull();
  });

  it('shows a strip, the title, and the report anew: at most every 5 s, and at the end at once', async () => {
    const end = begin();
    expect(asked[0]).toMatch(/\/events\?run=deep(\/|%2F)a(\+|%20)b&from=7$/);
    source.say('status', { state: 'running', cells: 4, cells_done: 1 });
    expect(document.querySelector('.live')?.textContent).toContain('1 of 4 cells');
    expect(document.title).toBe('1/4 report');
    json = '{"a":1}';
    for (const done of [2, 3]) source.say('cell_done', { done, cells: 4 });
    await vi.advanceTimersByTimeAsync(10);
    expect(asked.slice(1)).toEqual([expect.stringMatching(/\/document\/deep\/a%20b$/)]);
    expect(shown).toEqual(['{"a":1}']);
    source.say('cell_done', { done: 4, cells: 4 });
    await vi.advanceTimersByTimeAsync(1000);
    expect(asked).toHaveLength(2);
    json = '{"a":2}';
    source.say('end', { status: 'complete' });
    await vi.advanceTimersByTimeAsync(1);
    expect(shown).toEqual(['{"a":1}', '{"a":2}']);
    expect(document.title).toBe('the report');
    end?.();
    expect(source.closed).toBe(true);
    expect(document.querySelector('.live')).toBeNull();
  });

  it('says when nothing is heard, and forgets it when something is', async () => {
    begin();
    source.say('step', { update: 1, updates: 2 });
    await vi.advanceTimersByTimeAsync(20_000);
    expect(document.querySelector('.live')?.textContent).toContain('news stopped 20 s ago');
    source.say('step', { update: 2, updates: 2 });
    expect(document.querySelector('.live')?.textContent).not.toContain('news stopped');
    source.onerror?.();
    expect(document.querySelector('.live')?.textContent).toContain('news stopped 0 s ago');
  });

  it('begins anew where the events do, and shows no report twice', async () => {
    begin();
    source.say('status', { state: 'complete', cells: 4, cells_done: 4 });
    source.say('reset');
    source.say('start', { updates: 10 });
    expect(document.querySelector('.live')?.textContent).toContain('0 of 10 updates');
    await vi.advanceTimersByTimeAsync(20_000);
    source.say('epoch', { epoch: 1 });
    await vi.advanceTimersByTimeAsync(20_000);
    expect(asked).toHaveLength(3);
    expect(shown).toHaveLength(1);
  });
});
