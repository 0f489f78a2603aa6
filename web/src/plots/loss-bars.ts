// What each number of workers loses: a bar a number, as long as its step. First what arrives, then the parts of the
// loss, one behind the other; parts below 0 are gains, and stand hollow at the end of what they give back.

import { svg } from '../dom';
import { fixed, formatTime } from '../data/format';
import type { Column, LossBar, Table, Waterfall } from '../data/report';
import type { Colours } from './colours';
import type { Key, Spot } from './drawing';
import { Stripes } from './stripes';
import { textWidth } from './style';

const ROW = 30;
const HEAD = 22;
const GAP = 26;

const percent = (part: number) => `${fixed(100 * part, 1)} %`;
export const efficiencyOf = ({ parts }: LossBar) => 1 - parts.reduce((sum, part) => sum + part, 0);
const lossOf = ({ parts }: LossBar) => parts.reduce((sum, part) => sum + Math.max(0, part), 0);
const gainOf = ({ parts }: LossBar) => parts.reduce((sum, part) => sum + Math.max(0, -part), 0);

/// Of one number of workers the changes below say everything.
export const heightOfLosses = ({ bars }: Waterfall, _width: number) => (bars.length > 1 ? HEAD + bars.length * ROW + GAP : 0);

/// Parts that no bar shows as wide as a line have no entry.
const SHOWN = 0.002;

/// Every second part that is shown: neighbours differ without colours too.
function striped({ bars, changes }: Waterfall): boolean[] {
  let shown = 0;
  return changes.map((_, i) => bars.some(({ parts }) => parts[i]! > SHOWN) && shown++ % 2 === 0);
}

export function keysOfLosses(waterfall: Waterfall, colours: Colours): Key[] {
  const { bars, changes } = waterfall;
  if (bars.length < 2) return [];
  const stripes = striped(waterfall);
  const parts = changes.flatMap(({ name, seconds }, i): Key[] =>
    (bars.some(({ parts: all }) => all[i]! > SHOWN) ? [{ sign: stripes[i] ? 'striped' : 'box', text: name, colour: colours.change(name, Math.abs(seconds)) }] : []));
  const gains: Key[] = bars.some((bar) => gainOf(bar) > SHOWN) ? [{ sign: 'hollow', text: 'given back by other parts', colour: 'var(--faster)' }] : [];
  return [{ sign: 'box', text: 'ideal step', colour: 'var(--compute)' }, ...parts, ...gains];
}

/// Draws into `image`, from its top on; the spots of the bars, a lane each.
export function drawLosses(waterfall: Waterfall, image: SVGSVGElement, width: number, colours: Colours): Spot[] {
  const { bars, changes } = waterfall;
  if (bars.length < 2) return [];
  const left = Math.max(...bars.map(({ name }) => textWidth(name, true))) + 14;
  const right = width - textWidth('100.0 %', true) - 16;
  const most = Math.max(1, ...bars.map((bar) => efficiencyOf(bar) + lossOf(bar)));
  const x = (part: number) => left + (part / most) * (right - left);
  image.append(svg('text', { x: left, y: 12, class: 'axis' }, 'parts of a step'));
  const bottom = HEAD + bars.length * ROW;
  const stripes = new Stripes();
  const isStriped = striped(waterfall);
  image.append(stripes.pattern(), svg('path', { class: 'grid', d: `M${x(1)},${HEAD - 4}V${bottom}` }));
  return bars.map((bar, i): Spot => {
    const top = HEAD + i * ROW;
    const efficiency = efficiencyOf(bar);
    const segment = (from: number, to: number, name: string, fill: string) =>
      svg('rect', { 'class': name, 'x': x(from), 'y': top + 4, 'width': Math.max(0, x(to) - x(from)), 'height': ROW - 10, fill, 'stroke': 'var(--paper)', 'stroke-width': 0.6 });
    image.append(svg('text', { 'x': left - 10, 'y': top + ROW / 2 - 1, 'dy': '0.32em', 'text-anchor': 'end', 'class': 'strong' }, bar.name));
    image.append(segment(0, efficiency, 'arrives', 'var(--compute)'));
    let end = efficiency;
    for (const [k, part] of bar.parts.entries()) {
      if (part <= 0) continue;
      image.append(segment(end, end + part, 'loss', colours.change(changes[k]!.name, part)));
      if (isStriped[k]) image.append(stripes.over({ x: x(end), y: top + 4, width: x(end + part) - x(end), height: ROW - 10 }));
      end += part;
    }
    if (end > 1 + SHOWN) {
      image.append(svg('rect', { 'class': 'gain', 'x': x(1), 'y': top + 2, 'width': x(end) - x(1), 'height': ROW - 6, 'fill': 'none', 'stroke': 'var(--faster)', 'stroke-width': 1.5, 'stroke-dasharray': '3 2' }));
    }
    image.append(svg('text', { 'x': right + 8, 'y': top + ROW / 2 - 1, 'dy': '0.32em', 'class': 'strong' }, percent(efficiency)));
    const rows = bar.parts.flatMap((part, k): Spot['rows'] => (Math.abs(part) < 0.0005 ? [] : [[changes[k]!.name, percent(part)]]));
    return {
      key: `bar-${i}`, x: x(efficiency), y: top + ROW / 2 - 1, lane: i, box: { left: 0, right: width, top, bottom: top + ROW }, title: bar.name, record: '',
      rows: [['efficiency', percent(efficiency)], ['step', formatTime(bar.seconds)], ...rows],
    };
  });
}

/// The parts in rows: seconds of the chosen number of workers with their interval, and the share of every bar.
export function lossTable({ id, finding, from, to, changes, bars }: Waterfall): Table {
  const cell = (value: number | null, text = '', low: number | null = null, high: number | null = null, mark = '') => ({ text, value, low, high, mark, note: '' });
  const column = (key: string, label: string, format: Column['format'], unit = ''): Column => ({ key, label, unit, format, group: '' });
  return {
    type: 'table', id: `${id}-figures`, title: finding, definition: '',
    footnotes: changes.some(({ noise }) => noise) ? ['~ within noise: the interval holds 0.'] : [],
    columns: [column('part', 'part', 'text'), column('time', to.name, 'milliseconds', 's'), ...bars.map(({ name }, i) => column(`bar${i}`, name, 'percent1'))],
    rows: [
      [cell(null, from.name), cell(from.seconds), ...bars.map((bar) => cell(efficiencyOf(bar)))],
      ...changes.map(({ name, seconds, low, high, noise }, k) => [cell(null, name), cell(seconds, '', low, high, noise ? '~' : ''), ...bars.map(({ parts }) => cell(parts[k]!))]),
      [cell(null, to.name), cell(to.seconds), ...bars.map(() => cell(1))],
    ],
  };
}
