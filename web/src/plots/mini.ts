// The small picture in a tile: what the answer rests on, without words. Of a figure the bars of the line that holds the
// answer's record, which is dark, or of a point by itself how far it is from the level that is drawn; of a waterfall
// the later time and what was added to it.

import { svg } from '../dom';
import type { Answer, Block, Figure, Report, Waterfall } from '../data/report';
import type { Colours } from './colours';

const WIDTH = 100;
const HEIGHT = 16;
const MOST = 24;  // bars: more of them say nothing at this size

const bar = (x: number, width: number, height: number, name: string | null, fill?: string) =>
  svg('rect', { x, 'y': HEIGHT - height, 'width': Math.max(0.6, width), height, 'class': name, 'style': fill && `fill:${fill}` });

function ofFigure({ views }: Figure, records: ReadonlySet<string>): SVGElement[] {
  for (const { series, marks } of views) {
    const line = series.find(({ dashed, points }) => !dashed && points.some(({ record, y }) => y !== null && records.has(record)));
    if (!line) continue;
    const points = line.points.filter(({ y }) => y !== null && y >= 0);
    const most = Math.max(0, ...points.map(({ y }) => y!));
    const level = marks.find(({ axis, high }) => axis === 'y' && high === null)?.low ?? 0;
    if (points.length === 1 && level > 0) return [bar(0, WIDTH, HEIGHT - 4, 'ground'), bar(0, WIDTH * Math.min(1, most / level), HEIGHT - 4, 'chosen')];
    if (points.length < 2 || points.length > MOST || most === 0) return [];
    const room = WIDTH / points.length;
    return points.map(({ y, record }, i) => bar(i * room, room - 2, Math.max(1, (HEIGHT * y!) / most), records.has(record) ? 'chosen' : null));
  }
  return [];
}

function ofWaterfall({ to, changes }: Waterfall, colours: Colours): SVGElement[] {
  const added = changes.filter(({ seconds }) => seconds > 0);
  const room = (seconds: number) => (WIDTH * seconds) / to.seconds;
  const before = WIDTH - added.reduce((sum, { seconds }) => sum + room(seconds), 0);
  if (!(to.seconds > 0) || before < 0) return [];
  let x = before;
  return [bar(0, before - 0.6, HEIGHT - 4, 'chosen', colours.phase('compute')), ...added.map(({ name, seconds }) => {
    const one = bar(x, room(seconds) - 0.6, HEIGHT - 4, 'part', colours.change(name, seconds));
    x += room(seconds);
    return one;
  })];
}

export function renderMini({ evidence, records }: Answer, report: Report, colours: Colours): SVGElement | null {
  const block: Block | undefined = report.sections.flatMap(({ blocks }) => blocks).find((one) => 'id' in one && one.id === evidence && one.type !== 'answer');
  const drawn = block?.type === 'figure' ? ofFigure(block, new Set(records)) : block?.type === 'waterfall' ? ofWaterfall(block, colours) : [];
  if (drawn.length === 0) return null;
  return svg('svg', { 'class': 'mini', 'viewBox': `0 0 ${WIDTH} ${HEIGHT}`, 'preserveAspectRatio': 'none', 'aria-hidden': true }, ...drawn);
}
