import { describe, expect, it } from 'vitest';
import { Colours } from '../src/colours';
import { renderPlot } from '../src/plot';
import { drawBars } from '../src/plot-bar';
import { drawLines } from '../src/plot-line';
import { plotAsTable } from '../src/plot-table';
import type { Plot } from '../src/schema';
import { spread } from '../src/spread';
import { ticksFor } from '../src/ticks';
import { bigReport, goldenReport, plotOf } from './read';

const colours = () => new Colours(goldenReport());
const speedup = (): Plot => plotOf(goldenReport(), 'weak-speedup');
const ledger = (): Plot => plotOf(goldenReport(), 'ledger');
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
  it('belong to names over the whole report', () => {
    const report = bigReport();
    const all = new Colours(report);
    const seen = new Map<string, string>();
    for (const id of ['weak-speedup', 'weak-efficiency', 'weak-step']) {
      const { series } = plotOf(report, id);
      all.lines(series).forEach(({ colour }, i) => {
        const { name } = series[i]!;
        expect(seen.get(name) ?? colour).toBe(colour);
        seen.set(name, colour);
      });
    }
    expect(new Set(seen.values()).size).toBe(seen.size);
  });
  it('of the phases are fixed', () => {
    expect(colours().phase('backward')).toBe('var(--backward)');
    expect(colours().phase('data wait')).toBe('var(--data-wait)');
  });
  it('differ within a plot while the palette lasts', () => {
    const report = bigReport();
    const lines = new Colours(report).lines(plotOf(report, 'accuracy').series);
    expect(new Set(lines.map(({ colour }) => colour)).size).toBe(7);
  });
});

describe('A line plot', () => {
  it('draws each series, the ideal dashed, and marked points in their shape', () => {
    const { image, legend } = drawLines(speedup(), 640, colours());
    expect(image.querySelectorAll('[stroke-dasharray="5 4"]')).toHaveLength(1);
    expect(image.querySelectorAll('.mark-shape')).toHaveLength(1);
    expect(legend).toContainEqual({ sign: 'diamond', text: 'oversubscribed' });
    expect(image.querySelector('.ends')!.textContent).toBe('ideallocal batch 32local batch 128');
  });
  it('moves names apart where several lines end together before the edge', () => {
    const several = speedup();
    const line = (name: string, y: number) => ({ name, dashed: false, points: [1, 2].map((x) => ({ x, y: y * x, low: null, high: null, mark: '' })) });
    several.series = [several.series[0]!, line('large batch', 0.5), line('+ linear scaling', 0.51), line('+ warm-up', 0.52)];
    const names = [...drawLines(several, 640, colours()).image.querySelectorAll('.ends text')].slice(1);
    const heights = names.map((name) => Number(name.getAttribute('y'))).sort((a, b) => a - b);
    for (let i = 1; i < heights.length; ++i) expect(heights[i]! - heights[i - 1]!).toBeGreaterThanOrEqual(12);
    expect(new Set(names.map((name) => name.getAttribute('x'))).size).toBe(1);
  });
  it('names its series in the legend where there is no room at the line ends', () => {
    const { image, legend } = drawLines(speedup(), 320, colours());
    expect(image.querySelector('.ends')).toBeNull();
    expect(legend.map(({ text }) => text)).toEqual(['ideal', 'local batch 32', 'local batch 128', 'oversubscribed', 'interval']);
  });
  const plain = (name: string, ys: (number | null)[]) =>
    ({ name, dashed: false, points: ys.map((y, i) => ({ x: i + 1, y, low: null, high: null, mark: '' })) });
  const lineOf = (image: Element, k: number) => image.querySelector(`[aria-label=line][data-series="${k}"] path`)!.getAttribute('d')!;
  it('breaks where a figure is missing, and shows one that stands alone', () => {
    const drawn = (ys: (number | null)[]) => drawLines({ ...speedup(), series: [plain('a', ys)] }, 640, colours()).image;
    expect(lineOf(drawn([1, 2, null, 4, 5]), 0).match(/M/g)).toHaveLength(2);
    expect(drawn([...Array(10).fill(1), null, 7, null, ...Array(10).fill(2)]).querySelectorAll('.signs .sign')).toHaveLength(1);
  });
  it('has in the legend a name that another line would strike through', () => {
    const crossed = { ...speedup(), series: [plain('rising', [1, 2, 3, 4]), plain('short', [1.02])] };
    const { image, legend } = drawLines(crossed, 640, colours());
    expect([...image.querySelectorAll('.ends text')].map(({ textContent }) => textContent)).toEqual(['rising']);
    expect(legend.map(({ text }) => text)).toEqual(['short']);
  });
  // Line 10 of 17 had the colour and the dots of line 2, and without colours all lines were the same.
  it('gives every line a look of its own, also without colours', () => {
    const look = (image: Element, k: number) => [
      image.querySelector(`[aria-label=line][data-series="${k}"]`)!.getAttribute('stroke-dasharray') ?? 'solid',
      image.querySelector(`.signs[data-series="${k}"] .sign`)!.getAttribute('d')].join(' ');
    for (const points of [2, 60]) {  // with a sign on each, and on some
      const many = { ...speedup(), series: Array.from({ length: 30 }, (_, k) => plain(`series ${k}`, Array.from({ length: points }, (_, i) => k + i))) };
      const { image, legend } = drawLines(many, 640, colours());
      expect(new Set(many.series.map((_, k) => look(image, k))).size).toBe(30);
      expect(image.querySelectorAll('[aria-label=line][stroke-dasharray="5 4"]')).toHaveLength(0);
      expect(new Set(legend.filter(({ sign }) => sign === 'line').map(({ look }) => `${look!.slot} ${look!.round}`)).size).toBe(30);
    }
  });
  it('has the same sign in the legend as in the drawing', () => {
    const element = renderPlot({ ...speedup(), series: Array.from({ length: 10 }, (_, k) => plain(`series ${k}`, [k, k + 1])) }, colours());
    for (let k = 0; k < 10; ++k)
      expect(element.querySelector(`.legend [data-series="${k}"] .sign`)!.getAttribute('d'))
        .toBe(element.querySelector(`.signs[data-series="${k}"] .sign`)!.getAttribute('d'));
  });
  it('survives missing figures, single points and zeros on log axes', () => {
    const odd = speedup();
    odd.y.log = true;
    odd.series[1]!.points = [{ x: 1, y: null, low: null, high: null, mark: '' }];
    odd.series[2]!.points = [{ x: 2, y: 0, low: 0, high: 1, mark: 'zero' }];
    expect(drawLines(odd, 640, colours()).image.outerHTML).not.toContain('NaN');
  });
});

describe('Stacked bars', () => {
  const segments = (image: Element) => image.querySelectorAll('[aria-label=bar] rect').length;
  it('draw a segment for each phase of each category, with totals', () => {
    const { image, legend } = drawBars(ledger(), 700, colours());
    const expected = ledger().series.flatMap(({ points }) => points.filter(({ y }) => (y ?? 0) !== 0)).length;
    expect(segments(image)).toBe(expected);
    expect(legend.map(({ text }) => text)).toEqual(ledger().series.map(({ name }) => name));
    expect(image.querySelector('.totals text')!.textContent).toBe('369 ms');
  });
  it('are shares: every bar is as long as the others, its time stands at its end and in the tooltip', () => {
    const { image } = drawBars(ledger(), 700, colours());
    const lengths = ledger().categories.map((_, i) => [...image.querySelectorAll('[aria-label=bar]')]
      .flatMap((layer) => [...layer.querySelectorAll('rect')])
      .filter((rect) => rect.getAttribute('x') === image.querySelectorAll('[aria-label=bar]')[0]!.querySelectorAll('rect')[i]!.getAttribute('x'))
      .reduce((all, rect) => all + Number(rect.getAttribute('height')), 0));
    for (const length of lengths) expect(length).toBeCloseTo(lengths[0]!, 3);
    expect([...image.querySelectorAll('.totals text')].map(({ textContent }) => textContent)).toEqual(['369 ms', '444 ms', '1,350 ms', '1,550 ms']);
    expect(image.textContent).toContain('share of the time of a step');
  });
  it('lie down when their names do not fit side by side', () => {
    const height = (width: number) => Number(drawBars(plotOf(bigReport(), 'weak-ledger'), width, colours()).image.getAttribute('height'));
    expect(height(700)).toBe(15 * 22 + 62);
    expect(height(4000)).toBe(380);
  });
});

it('Bars that lie have their whole names, in lines', () => {
  const name = (i: number) => `batch 256, data cifar10:CACHE/cifar-10-batches-bin, test=test_batch_exact1k.bin, version ${i}`;
  const long = { ...ledger(), categories: ledger().categories.map((_, i) => name(i)) };
  const { image } = drawBars(long, 360, colours());
  const words = (text: string) => text.replace(/\s/g, '');
  expect(words(image.querySelector('[aria-label="y-axis tick label"]')!.textContent!)).toBe(words(long.categories.map((_, i) => name(i)).join('')));
  expect(image.textContent).not.toContain('…');
});

describe('A plot on the page', () => {
  it('says title, caption and what it is to a screen reader', () => {
    const element = renderPlot(speedup(), colours());
    expect(element.querySelector('h3')!.textContent).toBe('Scaled speedup against workers');
    expect(element.querySelector('[role=img]')!.getAttribute('aria-label')).toContain('Two workers keep');
  });
  it('has its figures as a table', () => {
    const table = plotAsTable(speedup());
    expect(table.columns.map(({ label }) => label)).toEqual(['workers', 'ideal', 'local batch 32', 'local batch 128']);
    expect(table.rows.map((row) => row.map(({ value }) => value))).toEqual([[1, 1, 1, 1], [2, 2, 1.66, 1.74], [4, 4, 1.62, null]]);
    expect(plotAsTable(ledger()).rows.map((row) => row[0]!.text)).toEqual(ledger().categories);
  });
  it('has two rows of figures where a series has two at one place', () => {
    const twice = speedup();
    twice.series[1]!.points.push({ ...twice.series[1]!.points[1]!, y: 1.9 });
    expect(plotAsTable(twice).rows.map((row) => row.slice(0, 3).map(({ value }) => value)))
      .toEqual([[1, 1, 1], [2, 2, 1.66], [2, null, 1.9], [4, 4, 1.62]]);
  });
  it('that cannot be drawn says why and keeps its figures', () => {
    const bad = { ...speedup(), kind: 'line' as const, x: { ...speedup().x } };
    Object.defineProperty(bad.x, 'label', { get() { throw new Error('a fault'); } });
    const element = renderPlot(bad, colours());
    expect(element.querySelector('.empty')!.textContent).toContain('a fault');
    expect(element.querySelector('details.figures')).not.toBeNull();
  });
  it('without a figure says so and draws nothing', () => {
    const empty = { ...speedup(), series: [] };
    expect(renderPlot(empty, colours()).querySelector('.empty')!.textContent).toBe('No figures to draw.');
  });
});
