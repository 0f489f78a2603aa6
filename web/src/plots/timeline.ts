// What ranks did at the same time: a lane each, spans coloured by phase. Wheel (once it has the focus), + and - zoom
// around the pointer or the chosen span, dragging moves, arrows walk along a lane and between lanes.

import { h, svg } from '../dom';
import { formatTime, formatValue, timeUnit } from '../data/format';
import type { Table, Timeline } from '../data/report';
import { toolbar } from '../roving';
import { renderCard } from './card';
import type { Drawing, Key, Spot } from './drawing';
import type { Context } from './figure';
import { Stripes } from './stripes';
import { textWidth } from './style';
import { roundValues } from './ticks';

// Height of a lane: of few there is room for more.
const laneHeight = (lanes: number) => (lanes <= 4 ? { full: 40, thin: 26 } : lanes <= 16 ? { full: 28, thin: 18 } : { full: 20, thin: 16 });
const FOOT = 44;
const DEEPEST = 1e-4;  // of all of it: as far as one can zoom

/// The part of the time that is shown, in seconds.
export class Range {
  from: number;
  to: number;
  constructor(private readonly least: number, private readonly most: number) {
    this.from = least;
    this.to = most;
  }
  get isWhole(): boolean {
    return this.from === this.least && this.to === this.most;
  }
  zoom(factor: number, around = (this.from + this.to) / 2): void {
    const all = this.most - this.least;
    const size = Math.min(all, Math.max(all * DEEPEST, (this.to - this.from) * factor));
    const part = (around - this.from) / (this.to - this.from);
    this.move(around - part * size, size);
  }
  pan(by: number): void {
    this.move(this.from + by, this.to - this.from);
  }
  /// Moves as little as brings [begin, end] into sight.
  reveal(begin: number, end: number): void {
    if (begin < this.from) this.pan(begin - this.from);
    else if (end > this.to) this.pan(Math.min(end - this.to, begin - this.from));
  }
  reset(): void {
    this.from = this.least;
    this.to = this.most;
  }
  private move(from: number, size: number): void {
    this.from = Math.max(this.least, Math.min(from, this.most - size));
    this.to = Math.min(this.most, this.from + size);
  }
}

/// A lane of a collective is thinner: it stands below the lane of its rank, whose name it begins with.
const isThin = (lanes: readonly string[], lane: number) => lane > 0 && lanes.slice(0, lane).some((name) => lanes[lane]!.startsWith(`${name},`));

function frameOf(timeline: Timeline, width: number) {
  let y = 4;
  const { full, thin: low } = laneHeight(timeline.lanes.length);
  const lanes = timeline.lanes.map((name, i) => {
    const thin = isThin(timeline.lanes, i);
    const top = y;
    y += thin ? low : full;
    if (!isThin(timeline.lanes, i + 1 < timeline.lanes.length ? i + 1 : i)) y += 8;
    return { top, height: (thin ? low : full) - 4, text: thin ? name.replace(/^[^,]*, */, '') : name, thin };
  });
  return { lanes, left: Math.min(width * 0.3, Math.max(...lanes.map(({ text }) => textWidth(text, true))) + 12), bottom: y };
}

function draw(timeline: Timeline, range: Range, width: number, colours: Context['colours']): Drawing {
  const { lanes, left, bottom } = frameOf(timeline, width);
  const right = width - 8;
  const height = bottom + FOOT;
  const x = (seconds: number) => left + ((seconds - range.from) / (range.to - range.from)) * (right - left);
  const unit = timeUnit(range.to - range.from);
  const image = svg('svg', { class: 'drawing', viewBox: `0 0 ${width} ${height}`, width, height });
  const ticks = roundValues(range.from * unit.factor, range.to * unit.factor, Math.max(3, Math.floor((right - left) / 90)));
  image.append(...ticks.flatMap((tick) => {
    const at = x(tick / unit.factor);
    const text = formatValue(tick, 'rate');
    const half = textWidth(text) / 2;
    return [svg('path', { class: 'grid', d: `M${at},0V${bottom}` }),
      svg('text', { 'x': Math.min(at, right - half), 'y': bottom + 14, 'text-anchor': 'middle' }, text)];
  }), svg('text', { 'x': (left + right) / 2, 'y': height - 6, 'text-anchor': 'middle', 'class': 'axis' }, `time [${unit.unit}]`));
  const stripes = new Stripes();
  image.append(stripes.pattern(), ...lanes.map(({ top, height: tall, text, thin }) =>
    svg('text', { x: 0, y: top + tall / 2, dy: '0.32em', class: thin ? 'soft' : 'strong' }, text)));

  const spots: Spot[] = [];
  timeline.spans.forEach(({ lane, phase, begin, end }, key) => {
    if (end < range.from || begin > range.to) return;
    const { top, height: tall } = lanes[lane]!;
    const from = Math.max(left, x(begin));
    const to = Math.min(right, x(end));
    const name = timeline.phases[phase]!;
    const size = Math.max(0.8, to - from);
    image.append(svg('rect', { 'class': 'span', 'x': from, 'y': top, 'width': size, 'height': tall, 'fill': colours.phase(name), 'data-series': phase }));
    if (colours.isWait(name) && size > 2) image.append(stripes.over({ 'x': from, 'y': top, 'width': size, 'height': tall, 'data-series': phase }));
    if (size > textWidth(name) + 10) image.append(svg('text', { 'class': 'inside', 'x': (from + to) / 2, 'y': top + tall / 2, 'dy': '0.32em', 'text-anchor': 'middle', 'fill': colours.on(name) }, name));
    spots.push({
      key: String(key), x: (from + to) / 2, y: top, lane, box: { left: from, right: from + size, top, bottom: top + tall }, title: name, record: '',
      rows: [['lane', timeline.lanes[lane]!], ['duration', formatTime(end - begin)], ['begins at', formatTime(begin)], ['ends at', formatTime(end)]],
    });
  });
  spots.sort((a, b) => a.lane - b.lane || a.x - b.x);
  return { image, spots, keys: keysOf(timeline, colours) };
}

function keysOf({ spans, phases }: Timeline, colours: Context['colours']): Key[] {
  const seen = new Set(spans.map(({ phase }) => phase));
  return phases.flatMap((text, i) => (seen.has(i) ? [{ sign: colours.isWait(text) ? 'striped' as const : 'box' as const, text, colour: colours.phase(text) }] : []));
}

function table({ id, finding, lanes, phases, spans }: Timeline): Table {
  const cell = (value: number | null, text = '') => ({ text, value, low: null, high: null, mark: '', note: '' });
  const column = (key: string, format: 'text' | 'milliseconds') => ({ key, label: key, unit: format === 'text' ? '' : 's', format, group: '' });
  return {
    type: 'table', id: `${id}-figures`, title: finding, definition: '', footnotes: [],
    columns: [column('lane', 'text'), column('phase', 'text'), column('begin', 'milliseconds'), column('end', 'milliseconds'), column('duration', 'milliseconds')],
    rows: spans.map(({ lane, phase, begin, end }) => [cell(null, lanes[lane]), cell(null, phases[phase]), cell(begin), cell(end), cell(end - begin)]),
  };
}

export function renderTimeline(timeline: Timeline, context: Context): HTMLElement {
  const ends = timeline.spans.flatMap(({ begin, end }) => [begin, end]);
  const range = new Range(ends.length > 0 ? Math.min(...ends) : 0, Math.max(...ends, 1e-9));
  let width = 0;
  const zoom = ([['Zoom in', '+', () => range.zoom(0.5)], ['Zoom out', '−', () => range.zoom(2)], ['All', 'All', () => range.reset()]] as const).map(([name, sign, act]) => {
    const button = h('button', { 'type': 'button', 'class': 'tool', 'aria-label': name }, sign);
    button.addEventListener('click', () => changed(act));
    return button;
  });
  const { figure, canvas, explorer, redraw } = renderCard(timeline, 'timeline', {
    draw: (size) => draw(timeline, range, width = size, context.colours), height: (size) => frameOf(timeline, size).bottom + FOOT, keys: () => keysOf(timeline, context.colours), table: () => table(timeline),
  }, context, toolbar('Zoom', 'zoom', ...zoom));
  const changed = (change: () => void) => {
    change();
    redraw();
  };
  const timeAt = (clientX: number) => {
    const { left } = frameOf(timeline, width);
    const part = (clientX - canvas.getBoundingClientRect().left - left) / (width - 8 - left);
    return range.from + Math.max(0, Math.min(1, part)) * (range.to - range.from);
  };
  // Without the focus the wheel scrolls the page.
  canvas.addEventListener('wheel', (event) => {
    if (document.activeElement !== canvas && !event.ctrlKey) return;
    event.preventDefault();
    changed(() => range.zoom(event.deltaY > 0 ? 1.25 : 0.8, timeAt(event.clientX)));
  }, { passive: false });
  let dragged: number | null = null;
  canvas.addEventListener('pointerdown', ({ clientX, pointerType }) => { dragged = pointerType === 'touch' ? null : clientX; });
  canvas.addEventListener('pointerup', () => { dragged = null; });
  canvas.addEventListener('pointerleave', () => { dragged = null; });
  canvas.addEventListener('pointermove', ({ clientX }) => {
    if (dragged === null || range.isWhole || Math.abs(clientX - dragged) < 3) return;
    const { left } = frameOf(timeline, width);
    const by = ((dragged - clientX) / (width - 8 - left)) * (range.to - range.from);
    dragged = clientX;
    changed(() => range.pan(by));
  });
  explorer.onKey = ({ key }, at) => {
    const middle = at ? timeline.spans[Number(at.key)] : undefined;
    if (key === '+' || key === '=') changed(() => range.zoom(0.5, middle && (middle.begin + middle.end) / 2));
    else if (key === '-') changed(() => range.zoom(2, middle && (middle.begin + middle.end) / 2));
    else if (key === '0') changed(() => range.reset());
    else if (!range.isWhole && at && (key === 'ArrowRight' || key === 'ArrowLeft')) return walk(at, key === 'ArrowRight' ? 1 : -1);
    else return false;
    return true;
  };
  /// In a part of the time the next span may lie outside it: then the part moves first.
  function walk(at: Spot, step: number): boolean {
    const lane = timeline.spans.filter((span) => span.lane === at.lane).sort((a, b) => a.begin - b.begin);
    const target = lane[lane.indexOf(timeline.spans[Number(at.key)]!) + step];
    if (target && (target.begin < range.from || target.end > range.to)) changed(() => range.reveal(target.begin, target.end));
    return false;
  }
  return figure;
}
