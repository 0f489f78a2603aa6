// The steps of every measured window, one window after another, over the cores that other programs kept busy meanwhile.

import { svg } from '../dom';
import { fixed, formatTime } from '../data/format';
import type { Strip, Table, Window } from '../data/report';
import { renderCard } from './card';
import type { Drawing, Key, Spot } from './drawing';
import type { Context } from './figure';
import { Stripes } from './stripes';
import { textWidth } from './style';
import { roundValues, ticksFor } from './ticks';

const STEPS = { top: 22, bottom: 142 };
const LOAD = { top: 174, bottom: 214 };
const HEIGHT = LOAD.bottom + 46;
const LEFT = 40;

const endOf = (windows: readonly Window[]) => windows.reduce((end, { begin, seconds }) => Math.max(end, begin + seconds), 1e-9);

function draw({ windows }: Strip, width: number): Drawing {
  const right = width - 10;
  const end = endOf(windows);
  const x = (seconds: number) => LEFT + (seconds / end) * (right - LEFT);
  const ticks = ticksFor([0.8, 1.25, ...windows.flatMap(({ low, high }) => [...low, ...high]).filter((ratio) => ratio > 0)],
    { label: '', unit: '', log: true }, STEPS.bottom - STEPS.top, { gap: 22, measured: false });
  const [least, most] = ticks.domain;
  const y = (ratio: number) => STEPS.bottom - (Math.log(Math.max(ratio, least) / least) / Math.log(most / least)) * (STEPS.bottom - STEPS.top);
  const cores = Math.max(1, Math.ceil(Math.max(0, ...windows.map(({ others }) => others ?? 0))));
  const load = (others: number) => LOAD.bottom - (others / cores) * (LOAD.bottom - LOAD.top);

  const image = svg('svg', { class: 'drawing', viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT });
  const stripes = new Stripes();
  const label = (text: string, at: number) => svg('text', { 'x': LEFT - 8, 'y': at, 'dy': '0.32em', 'text-anchor': 'end' }, text);
  const level = (at: number) => svg('path', { class: 'grid', d: `M${LEFT},${at}H${right}` });
  image.append(stripes.pattern(), svg('text', { x: 0, y: 10, class: 'axis' }, 'step over its median'), svg('text', { x: 0, y: LOAD.top - 12, class: 'axis' }, 'others [cores]'),
    ...ticks.values.flatMap((ratio) => [level(y(ratio)), label(String(ratio), y(ratio))]),
    ...[0, cores].flatMap((value) => [level(load(value)), label(String(value), load(value))]),
    svg('path', { class: 'level', d: `M${LEFT},${y(1)}H${right}` }),
    ...roundValues(0, end, Math.max(2, Math.floor((right - LEFT) / 90))).map((tick) => {
      const half = textWidth(String(tick)) / 2;
      return svg('text', { 'x': Math.min(x(tick), right - half), 'y': LOAD.bottom + 14, 'text-anchor': 'middle' }, String(tick));
    }),
    svg('text', { 'x': (LEFT + right) / 2, 'y': HEIGHT - 6, 'text-anchor': 'middle', 'class': 'axis' }, 'measured time [s]'));

  const spots = windows.map((window, key): Spot => {
    const from = x(window.begin);
    const size = Math.max(0.8, x(window.begin + window.seconds) - from);
    const colour = window.mark === '' ? 'var(--compute)' : 'var(--slower)';
    const each = size / Math.max(1, window.low.length);
    const bars = window.low.map((low, i) => {
      const top = y(window.high[i]!);
      return `M${from + i * each},${top}h${Math.max(0.6, each * 0.8)}V${Math.max(y(low), top + 1.2)}h${-Math.max(0.6, each * 0.8)}Z`;
    });
    image.append(svg('path', { 'd': bars.join(''), 'fill': window.mark === '' ? colour : 'var(--card)', 'stroke': colour, 'stroke-width': window.mark === '' ? 0 : 1 }),
      svg('path', { 'd': window.middle.map((ratio, i) => `M${from + i * each},${y(ratio)}h${each * 0.8}`).join(''), 'stroke': 'var(--ink)', 'stroke-width': 1.4 }));
    const busy = { x: from, width: size, y: load(window.others ?? cores), height: LOAD.bottom - load(window.others ?? cores) };
    image.append(svg('rect', { ...busy, fill: window.others === null ? 'var(--rule)' : 'var(--slower)' }));
    if (window.others === null) image.append(stripes.over(busy));
    return {
      key: String(key), x: from + size / 2, y: y(1), lane: 0, box: { left: from, right: from + size, top: STEPS.top, bottom: LOAD.bottom },
      title: window.name, record: window.record,
      rows: [['median step of all windows', formatTime(window.typical)],
        ['here', `${formatTime(window.typical * Math.min(...window.low))} to ${formatTime(window.typical * Math.max(...window.high))}`],
        ['other programs', window.others === null ? 'not known' : `${fixed(window.others, 2)} cores`], ...(window.mark === '' ? [] : [['mark', window.mark] as [string, string]])],
    };
  });
  return { image, spots, keys: keysOf(windows) };
}

function keysOf(windows: readonly Window[]): Key[] {
  const keys: Key[] = [{ sign: 'box', text: 'fastest to slowest of some steps', colour: 'var(--compute)' }];
  if (windows.some(({ mark }) => mark !== '')) keys.push({ sign: 'hollow', text: 'disturbed, or not known', colour: 'var(--slower)' });
  return keys;
}

function table({ id, finding, windows }: Strip): Table {
  const cell = (value: number | null, text = '', mark = '') => ({ text, value, low: null, high: null, mark, note: '' });
  const column = (key: string, label: string, format: 'text' | 'milliseconds' | 'fixed2', unit = '') => ({ key, label, unit, format, group: '' });
  return {
    type: 'table', id: `${id}-figures`, title: finding, definition: '', footnotes: [],
    columns: [column('configuration', 'configuration', 'text'), column('fastest', 'fastest step', 'milliseconds', 's'), column('median', 'median', 'milliseconds', 's'),
      column('slowest', 'slowest', 'milliseconds', 's'), column('others', 'others', 'fixed2', 'cores')],
    rows: windows.map(({ name, mark, typical, others, low, middle, high }) => {
      const sorted = [...middle].sort((a, b) => a - b);
      return [cell(null, name), cell(typical * Math.min(...low), '', mark), cell(typical * (sorted[Math.floor(sorted.length / 2)] ?? 1), '', mark),
        cell(typical * Math.max(...high), '', mark), cell(others)];
    }),
  };
}

export const renderStrip = (strip: Strip, context: Context): HTMLElement => renderCard(strip, 'strip', {
  draw: (width) => draw(strip, width), height: () => HEIGHT, keys: () => keysOf(strip.windows), table: () => table(strip),
}, context).figure;
