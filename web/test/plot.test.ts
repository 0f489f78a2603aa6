import { describe, expect, it } from 'vitest';
import { plotAsTable } from '../src/plots/as-table';
import { drawBars } from '../src/plots/bars';
import { Colours } from '../src/plots/colours';
import { renderFigure, renderPlot } from '../src/plots/figure';
import { drawDots, isOneColumn } from '../src/plots/dots';
import { drawLines } from '../src/plots/lines';
import { spread } from '../src/plots/spread';
import { ticksFor } from '../src/plots/ticks';
import type { Figure, Plot, Point, Report, Series, View } from '../src/data/report';
import { blockOf, contextOf, oldReport, plotOf, reportOf, study } from './read';

const old = oldReport();
const speedup = (): Plot => plotOf(oldReport(), 'weak-speedup');
const ledger = (): Plot => plotOf(oldReport(), 'ledger');
const viewOf = ({ x, y, series }: Plot): View => ({ name: '', x, y, series, marks: [] });
const draw = (view: View, report: Report = old, width = 640, shown = view.series.map(({ hidden }) => !hidden)) =>
  drawLines(view, { width, height: 360, looks: new Colours(report).lines(view.series), shown });
const drawPlot = (plot: Plot, width = 640) => draw(viewOf(plot), old, width);
const point = (x: number | null, y: number | null, more: Partial<Point> = {}): Point => ({ x, y, low: null, high: null, mark: '', record: '', n: 0, ...more });
const lineOf = (name: string, points: Point[], more: Partial<Series> = {}): Series => ({ name, points, dashed: false, hidden: false, ...more });
const hero = () => blockOf(study(), 'figure', 'hero');
const wish = { gap: 40, measured: true };
const axis = (log: boolean) => ({ label: 'x', unit: '', log });

describe('Ticks', () => {
  it('of batches are the powers of two, thinned where they would touch', () => {
    const batches = Array.from({ length: 11 }, (_, i) => 2 ** (i + 3));
    expect(ticksFor(batches, axis(true), 900, wish).values).toEqual(batches);
    expect(ticksFor(batches, axis(true), 250, wish).values).toEqual([8, 32, 128, 512, 2048, 8192]);
  });
  it('of a few measured values are those values', () => {
    expect(ticksFor([1, 2, 4], axis(false), 400, wish).values).toEqual([1, 2, 4]);
    expect(ticksFor([30, 100, 500], axis(true), 400, wish).values).toEqual([30, 100, 500]);
  });
  it('of epochs are whole', () => {
    const { values } = ticksFor(Array.from({ length: 13 }, (_, i) => i + 1), axis(false), 600, wish);
    expect(values.every(Number.isInteger)).toBe(true);
    expect(values.length).toBeGreaterThan(3);
  });
  it('of figures begin at zero unless these are close together far from it', () => {
    expect(ticksFor([70, 98], axis(false), 300, { gap: 40, measured: false }).domain[0]).toBe(0);
    expect(ticksFor([0.98, 0.99], axis(false), 300, { gap: 40, measured: false }).domain[0]).toBeGreaterThan(0.97);
  });
  it('of many decades leave room between them', () => {
    const { values, domain } = ticksFor([1e-7, 3e12], axis(true), 200, { gap: 40, measured: false });
    expect(values.length).toBeGreaterThan(2);
    const decades = Math.log10(domain[1] / domain[0]);
    values.slice(1).forEach((value, i) => expect(200 * Math.log10(value / values[i]!) / decades).toBeGreaterThanOrEqual(40));
  });
  it('of a log axis through zero fall back to a linear one', () => {
    expect(ticksFor([0, 10], axis(true), 300, { gap: 40, measured: false }).type).toBe('linear');
  });
  it('stay inside the axis, also for one value or none', () => {
    for (const values of [[], [5], [5, 5], [0], [-1, 3], [1e-9, 1e9]]) {
      for (const log of [false, true]) {
        for (const measured of [false, true]) {
          const ticks = ticksFor(values, axis(log), 300, { gap: 40, measured });
          expect(ticks.domain.every(Number.isFinite)).toBe(true);
          expect(ticks.domain[0]).toBeLessThan(ticks.domain[1]);
          for (const tick of ticks.values) {
            expect(tick).toBeGreaterThanOrEqual(ticks.domain[0] - 1e-9);
            expect(tick).toBeLessThanOrEqual(ticks.domain[1] * (1 + 1e-9) + 1e-9);
          }
        }
      }
    }
  });
});

it('Labels are spread inside their range in their order', () => {
  const heights = spread([50, 52, 51, 98], 15, 0, 100);
  const sorted = [heights[0]!, heights[2]!, heights[1]!, heights[3]!];
  for (let i = 1; i < 4; ++i) expect(sorted[i]! - sorted[i - 1]!).toBeGreaterThanOrEqual(15);
  expect(Math.max(...heights)).toBeLessThanOrEqual(100);
});

describe('Colours', () => {
  it('belong to names over the whole report, and differ within a drawing', () => {
    const report = study();
    const all = new Colours(report);
    const seen = new Map<string, string>();
    for (const block of report.sections.flatMap(({ blocks }) => blocks)) {
      if (block.type !== 'figure') continue;
      for (const { series } of block.views) {
        const looks = all.lines(series);
        expect(new Set(looks.map(({ colour }) => colour)).size).toBe(new Set(series.map(({ name, dashed }) => (dashed ? 'ideal' : name))).size);
        series.forEach(({ name, dashed }, i) => {
          if (dashed) return;
          expect(seen.get(name) ?? looks[i]!.colour).toBe(looks[i]!.colour);
          seen.set(name, looks[i]!.colour);
        });
      }
    }
    expect(seen.size).toBeGreaterThan(12);
  });
  it('of the phases are fixed, of changes as their names say or by their direction', () => {
    const colours = new Colours(old);
    expect(colours.phase('backward')).toBe('var(--backward)');
    expect(['waiting for the other worker', 'waiting for data', 'something new'].map((name) => colours.change(name, 1))).toEqual(['var(--peer-wait)', 'var(--data-wait)', 'var(--slower)']);
    expect(colours.change('something new', -1)).toBe('var(--faster)');
  });
  it('of the parts of a loss differ, since they lie side by side in one bar', () => {
    // The names of src/analysis/steps/waterfall.cc.
    const parts = ['smaller batch', 'sharing', 'slowest worker', 'jitter', 'other waiting', 'exposed latency', 'exposed transfer', 'data wait', 'copy', 'update', 'other'];
    const colours = new Colours(old);
    expect(new Set(parts.map((name) => colours.change(name, 1))).size).toBe(parts.length);
  });
  it('of the answer is that of the line with the best point', () => {
    expect(new Colours(study()).best).toBe('var(--series-1)');
    expect(new Colours(old).best).toBe('var(--accent)');
  });
});

describe('A line plot', () => {
  it('draws each series, the ideal dashed, and special points hollow', () => {
    const { image, keys } = drawPlot(speedup());
    expect(image.querySelectorAll('[stroke-dasharray="5 4"]')).toHaveLength(1);
    expect(image.querySelectorAll('.sign.special')).toHaveLength(1);
    expect(keys).toContainEqual({ sign: 'hollow', text: 'oversubscribed' });
    expect(image.querySelector('.ends')!.textContent).toBe('ideallocal batch 32local batch 128');
  });
  it.each(['study', 'interrupted'])('has a sign and a spot for every point it shows, whiskers for every interval (%s)', (name) => {
    const report = reportOf(name);
    for (const block of report.sections.flatMap(({ blocks }) => blocks)) {
      for (const view of block.type === 'figure' ? block.views : []) {
        const shown = view.series.filter(({ hidden }) => !hidden);
        const points = shown.flatMap((series) => series.points.filter(({ y }) => y !== null).map((one) => ({ ...one, series })));
        if (points.length === 0) continue;
        const { image, spots } = draw(view, report);
        expect(spots).toHaveLength(points.length);
        const few = points.filter(({ series }) => !series.dashed && series.points.length <= 14);
        expect(image.querySelectorAll('.sign').length).toBeGreaterThanOrEqual(few.length);
        const ranged = few.filter(({ low, high }) => low !== null && high !== null && high > low);
        expect(image.querySelectorAll('[data-mark=rule] line').length).toBe(ranged.length);
        expect(image.outerHTML).not.toContain('NaN');
      }
    }
  });
  it('names at least 4 values of y where the axis is linear', () => {
    for (const height of [240, 300, 430]) {
      for (const most of [0.9, 1.9, 4, 8624, 26]) {
        const view = { ...viewOf(speedup()), x: axis(false), y: axis(false), series: [lineOf('a', [point(1, most / 2), point(2, most)])] };
        const { image } = drawLines(view, { width: 500, height, looks: new Colours(old).lines(view.series), shown: [true] });
        expect(image.querySelectorAll('[data-mark="y-axis tick label"] text').length).toBeGreaterThanOrEqual(4);
      }
    }
  });
  it('rings the best point and says its figure', () => {
    const { image } = draw(hero().views[0]!, study(), 820);
    expect(image.querySelectorAll('.ring')).toHaveLength(1);
    expect([...image.querySelectorAll('text')].map(({ textContent }) => textContent)).toContain('best: 8,557');
  });
  it('draws bands, levels and the region that says nothing', () => {
    const rate = draw(hero().views[0]!, study(), 820).image;
    expect([rate.querySelectorAll('.tie').length, rate.querySelectorAll('.hatch').length]).toEqual([1, 0]);
    const ratio = draw(hero().views[1]!, study(), 820).image;
    expect(ratio.querySelectorAll('.hatch')).toHaveLength(1);
    expect(ratio.textContent).toContain('no core for each');
    expect(draw(blockOf(study(), 'figure', 'network').views[0]!, study()).image.querySelectorAll('.level')).toHaveLength(1);
  });
  it('moves whiskers at one x apart, a whole series by one distance', () => {
    const { spots } = draw(blockOf(study(), 'figure', 'workers').views[0]!, study());
    const at = (lane: number) => spots.filter((spot) => spot.lane === lane).map(({ x }) => x);
    const gap = at(1).map((x, i) => x - at(0)[i]!);
    expect(gap[0]).toBeGreaterThan(5);
    for (const one of gap) expect(one).toBeCloseTo(gap[0]!, 6);
  });
  it('says of a spot what it is: value, interval, samples, distance to the best, what is special, record', () => {
    const { spots } = draw(hero().views[0]!, study(), 820);
    expect(spots.find(({ record }) => record === 'scale-w2-g1024')!.rows).toEqual([
      ['global batch', '1,024 images'], ['images/s', '5,935'], ['interval', '4,247 to 7,160'], ['n', '15'], ['against the best', '-31 %'], ['careful', 'disturbed'], ['record', 'scale-w2-g1024']]);
  });
  it('moves names apart where several lines end together', () => {
    const rising = (name: string, y: number) => lineOf(name, [1, 2].map((x) => point(x, y * x)));
    const view = { ...viewOf(speedup()), series: [speedup().series[0]!, rising('large batch', 0.5), rising('+ linear scaling', 0.51), rising('+ warm-up', 0.52)] };
    const names = [...draw(view).image.querySelectorAll('.ends text')];
    const heights = names.map((name) => Number(name.getAttribute('y'))).sort((a, b) => a - b);
    for (let i = 1; i < heights.length; ++i) expect(heights[i]! - heights[i - 1]!).toBeGreaterThanOrEqual(15.9);
    expect(new Set(names.map((name) => name.getAttribute('x'))).size).toBe(1);
  });
  it('has no names at line ends where there is no room: the legend has them', () => {
    expect(drawPlot(speedup(), 320).image.querySelector('.ends')).toBeNull();
  });
  const plain = (name: string, ys: (number | null)[]) => lineOf(name, ys.map((y, i) => point(i + 1, y)));
  const pathOf = (image: Element, k: number) => image.querySelector(`[data-mark=line][data-series="${k}"] path`)!.getAttribute('d')!;
  it('breaks where a figure is missing, and shows one that stands alone', () => {
    const drawn = (ys: (number | null)[]) => draw({ ...viewOf(speedup()), series: [plain('a', ys)] }).image;
    expect(pathOf(drawn([1, 2, null, 4, 5]), 0).match(/M/g)).toHaveLength(2);
    expect(drawn([...Array(10).fill(1), null, 7, null, ...Array(10).fill(2)]).querySelectorAll('.signs .sign')).toHaveLength(1);
  });
  // Line 10 of 17 had the colour and the dots of line 2, and without colours all lines were the same.
  it('gives every line a look of its own, also without colours', () => {
    const look = (image: Element, k: number) => [
      image.querySelector(`[data-mark=line][data-series="${k}"]`)!.getAttribute('stroke-dasharray') ?? 'solid',
      image.querySelector(`.signs [data-series="${k}"] path`)!.getAttribute('d')].join(' ');
    for (const points of [2, 60]) {  // with a sign on each, and on some
      const series = Array.from({ length: 30 }, (_, k) => plain(`series ${k}`, Array.from({ length: points }, (_, i) => k + i)));
      const { image } = draw({ ...viewOf(speedup()), series });
      expect(new Set(series.map((_, k) => look(image, k))).size).toBe(30);
      expect(image.querySelectorAll('[data-mark=line][stroke-dasharray="5 4"]')).toHaveLength(0);
    }
  });
  it('survives missing figures, single points and zeros on log axes', () => {
    const odd = speedup();
    odd.y.log = true;
    odd.series[1]!.points = [point(1, null)];
    odd.series[2]!.points = [point(2, 0, { low: 0, high: 1, mark: 'zero' })];
    expect(drawPlot(odd).image.outerHTML).not.toContain('NaN');
  });
});

describe('Stacked bars', () => {
  const bars = (plot: Plot, width = 700) => drawBars(plot, width, new Colours(old));
  it('draw a segment for each phase of each category, with totals', () => {
    const { image, keys, spots } = bars(ledger());
    const expected = ledger().series.flatMap(({ points }) => points.filter(({ y }) => (y ?? 0) !== 0)).length;
    expect(image.querySelectorAll('[data-mark=bar] rect')).toHaveLength(expected);
    expect(keys.map(({ text }) => text)).toEqual(ledger().series.map(({ name }) => name));
    expect([...image.querySelectorAll('.totals text')].map(({ textContent }) => textContent!.replace(' *', ''))).toEqual(['369.0 ms', '444.0 ms', '1.35 s', '1.55 s']);
    expect(spots[0]!.rows[spots[0]!.rows.length - 1]).toEqual(['all', '369.0 ms']);
  });
  it('are shares: every bar is as long as the others', () => {
    const { image } = bars(ledger());
    const lengths = ledger().categories.map((_, i) => [...image.querySelectorAll('[data-mark=bar]')]
      .flatMap((layer) => [...layer.querySelectorAll('rect')])
      .filter((rect) => rect.getAttribute('x') === image.querySelectorAll('[data-mark=bar]')[0]!.querySelectorAll('rect')[i]!.getAttribute('x'))
      .reduce((all, rect) => all + Number(rect.getAttribute('height')), 0));
    for (const length of lengths) expect(length).toBeCloseTo(lengths[0]!, 3);
    expect(image.textContent).toContain('share of the time of a step');
  });
  it('lie down when their names do not fit side by side, which then stand whole, in lines', () => {
    const name = (i: number) => `batch 256, data cifar10:CACHE/cifar-10-batches-bin, test=test_batch_exact1k.bin, version ${i}`;
    const long = { ...ledger(), categories: ledger().categories.map((_, i) => name(i)) };
    const { image } = bars(long, 360);
    const words = (text: string) => text.replace(/\s/g, '');
    expect(words(image.querySelector('[data-mark="y-axis tick label"]')!.textContent!)).toBe(words(long.categories.map((_, i) => name(i)).join('')));
    expect(image.textContent).not.toContain('…');
  });
});

describe('A figure on the page', () => {
  const render = (figure: Figure = hero(), report = study()) => renderFigure(figure, contextOf(report));
  const buttons = (element: HTMLElement, query: string) => [...element.querySelectorAll<HTMLElement>(`${query} button`)];
  it('has its finding as title and is named to a screen reader by it', () => {
    const element = render();
    expect(element.querySelector('h3')!.textContent).toBe('Two workers with small batches are fastest');
    expect(element.querySelector('.canvas')!.getAttribute('aria-label')).toContain('Two workers with small batches');
    expect([...element.querySelectorAll('svg')].map((image) => image.getAttribute('aria-hidden')).filter((hidden) => hidden !== 'true')).toEqual([]);
  });
  it('changes its view', () => {
    const element = render();
    buttons(element, '.views')[1]!.click();
    expect(element.querySelector('.canvas')!.textContent).toContain('speedup');
    expect(buttons(element, '.views').map((button) => button.getAttribute('aria-pressed'))).toEqual(['false', 'true']);
  });
  it('draws a hidden series when it is asked for, and no axis runs empty without it', () => {
    const element = render();
    const signs = () => element.querySelectorAll('.signs > *').length;
    const text = () => element.querySelector('.canvas')!.textContent!;
    expect([signs(), text().includes('2,048')]).toEqual([16, false]);
    buttons(element, '.legend')[3]!.click();
    expect([signs(), text().includes('2,048')]).toEqual([20, true]);
    for (const i of [0, 1, 2, 3, 4]) buttons(element, '.legend')[i]!.click();
    expect(element.querySelectorAll('.legend button[aria-pressed=true]')).toHaveLength(1);
  });
  it('has the same sign in the legend as in the drawing', () => {
    const element = renderPlot({ ...speedup(), series: Array.from({ length: 10 }, (_, k) => lineOf(`series ${k}`, [point(1, k), point(2, k + 1)])) }, contextOf(old));
    for (let k = 0; k < 10; ++k) {
      expect(element.querySelector(`.legend [data-series="${k}"] .sign path`)!.getAttribute('d'))
        .toBe(element.querySelector(`.signs [data-series="${k}"] path`)!.getAttribute('d'));
    }
  });
  it('has its figures as a table, made when it is opened', () => {
    const element = render();
    const fold = element.querySelector<HTMLDetailsElement>('details.figures')!;
    expect(fold.querySelector('table')).toBeNull();
    fold.open = true;
    fold.dispatchEvent(new Event('toggle'));
    expect(fold.querySelectorAll('tbody tr').length).toBeGreaterThan(8);
    expect([...fold.querySelectorAll('.files button')].map((button) => button.textContent)).toEqual(['CSV', 'SVG', 'PNG']);
  });
  it('that cannot be drawn says why and keeps its figures', () => {
    const bad = { ...speedup(), x: { ...speedup().x } };
    Object.defineProperty(bad.x, 'label', { get() { throw new Error('a fault'); } });
    const element = renderPlot(bad, contextOf(old));
    expect(element.querySelector('.empty')!.textContent).toContain('a fault');
    expect(element.querySelector('details.figures')).not.toBeNull();
  });
  it('without a figure says so and draws nothing', () => {
    expect(renderPlot({ ...speedup(), series: [] }, contextOf(old)).querySelector('.empty')!.textContent).toBe('No figures to draw.');
  });
});

describe('The table of a plot', () => {
  it('has a row for an x or a category, a column for a series', () => {
    const table = plotAsTable(speedup());
    expect(table.columns.map(({ label }) => label)).toEqual(['workers', 'ideal', 'local batch 32', 'local batch 128']);
    expect(table.rows.map((row) => row.map(({ value }) => value))).toEqual([[1, 1, 1, 1], [2, 2, 1.66, 1.74], [4, 4, 1.62, null]]);
    expect(plotAsTable(ledger()).rows.map((row) => row[0]!.text)).toEqual(ledger().categories);
  });
  it('has two rows where a series has two figures at one place', () => {
    const twice = speedup();
    twice.series[1]!.points.push({ ...twice.series[1]!.points[1]!, y: 1.9 });
    expect(plotAsTable(twice).rows.map((row) => row.slice(0, 3).map(({ value }) => value)))
      .toEqual([[1, 1, 1], [2, 2, 1.66], [2, null, 1.9], [4, 4, 1.62]]);
  });
});

describe('A figure whose points share one x', () => {
  const view: View = {
    name: '', x: { label: 'message', unit: 'B', log: true }, y: { label: 'bus bandwidth', unit: 'GB/s', log: false }, marks: [{ axis: 'y', low: 4, high: null, label: 'alone' }],
    series: [lineOf('in training', [point(314880, 2.2, { low: 2, high: 2.5, record: 'scale-weak-w2-b32-r0', n: 15, mark: 'best' }), point(314880, 1.6, { record: 'scale-weak-w4-b32-r0', mark: 'oversubscribed' })]), lineOf('alone, 2 ranks', [point(314880, 3.9)])],
  };
  const dots = (shown = [true, true]) => drawDots(view, { width: 640, looks: new Colours(old).lines(view.series), shown });
  it('has a row a point, named by its set-up or its line, with whisker, ring and value', () => {
    const { image, spots, keys } = dots();
    const texts = [...image.querySelectorAll('text')].map((text) => text.textContent);
    for (const text of ['scale weak w2 b32', 'scale weak w4 b32', 'alone, 2 ranks', '2.20 GB/s', '3.90 GB/s', 'bus bandwidth [GB/s], message 314.9 kB']) expect(texts).toContain(text);
    expect(image.querySelectorAll('.sign')).toHaveLength(3);
    expect(image.querySelectorAll('.sign.special')).toHaveLength(1);
    expect(image.querySelectorAll('.ring')).toHaveLength(1);
    expect(spots.map(({ lane }) => lane)).toEqual([0, 1, 2]);
    expect(spots[0]!.rows).toEqual([['message', '314.9 kB'], ['bus bandwidth', '2.20 GB/s'], ['interval', '2.00 to 2.50 GB/s'], ['n', '15'], ['record', 'scale-weak-w2-b32-r0']]);
    expect(keys.map(({ text }) => text)).toEqual(['interval', 'alone: 4.00 GB/s']);
    expect(dots([false, true]).spots).toHaveLength(1);
  });
  it('is drawn so on the page, and as lines where there are two', () => {
    expect(isOneColumn(view)).toBe(true);
    expect(isOneColumn({ ...view, series: [...view.series, lineOf('other', [point(1, 1)])] })).toBe(false);
    const card = renderFigure({ type: 'figure', id: 'network', finding: 'f', note: '', views: [view] }, contextOf(old));
    expect(card.querySelectorAll('svg.drawing text.axis')).toHaveLength(1);
  });
});
