// What is drawn by hand: waterfall, timeline, comparison, strip; and the way through all drawings.

import { describe, expect, it } from 'vitest';
import { renderGallery } from '../src/page/gallery';
import { renderComparison } from '../src/plots/comparison';
import type { Spot } from '../src/plots/drawing';
import { nearest, next } from '../src/plots/explore';
import { renderHeatmap, shadesOf } from '../src/plots/heatmap';
import { Labels } from '../src/plots/labels';
import { renderStrip } from '../src/plots/strip';
import { Range, renderTimeline } from '../src/plots/timeline';
import { renderWaterfall } from '../src/plots/waterfall';
import { blockOf, contextOf, programReport, reportOf, study } from './read';

const press = (element: HTMLElement, ...keys: string[]) => {
  const canvas = element.querySelector<HTMLElement>('.canvas')!;
  document.body.append(element);
  for (const key of keys) canvas.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));
};

describe('A waterfall', () => {
  const block = () => blockOf(study(), 'waterfall', 'why');
  it('has a bar for each change, which begins where the one above ended, and closes at the second time', () => {
    const element = renderWaterfall(block(), contextOf(study()));
    const bars = [...element.querySelectorAll('.change')].map((bar) => ({ left: Number(bar.getAttribute('x')), width: Number(bar.getAttribute('width')) }));
    expect(bars).toHaveLength(5);
    expect(bars[1]!.left).toBeCloseTo(bars[0]!.left + bars[0]!.width, 3);
    expect(element.querySelectorAll('.total')).toHaveLength(2);
    const [, total] = element.querySelectorAll('.total');
    const last = bars[4]!;  // a shorter time: its bar ends where the total does, at its left
    expect(Number(total!.getAttribute('x')) + Number(total!.getAttribute('width'))).toBeCloseTo(last.left, 0);
  });
  it('says times and changes in one unit, with the sign', () => {
    const text = renderWaterfall(block(), contextOf(study())).querySelector('.canvas')!.textContent!;
    for (const part of ['7.47 ms', '8.09 ms', '+0.725', '+0.379', '-0.563', 'time [ms]']) expect(text).toContain(part);
  });
  it('gives a hint in words, also where nothing can be pointed at', () => {
    expect(renderWaterfall(block(), contextOf(study())).querySelectorAll('.hints dt')).toHaveLength(3);
  });
});

describe('What each number of workers loses', () => {
  const block = () => blockOf(study(), 'waterfall', 'why');
  const width = (rect: Element) => Number(rect.getAttribute('width'));
  it('stacks its parts behind what arrives, a bar a number, and shows a gain as what stands beyond the step', () => {
    const element = renderWaterfall(block(), contextOf(study()));
    expect(element.querySelectorAll('.arrives')).toHaveLength(2);
    expect(element.querySelectorAll('.loss')).toHaveLength(4 + 5);  // of two workers one part is a gain
    expect(element.querySelectorAll('.gain')).toHaveLength(1);
    const [two, four] = [...element.querySelectorAll('.arrives')];
    expect(width(two!) / width(four!)).toBeCloseTo(0.924 / 0.447, 1);
    expect(element.querySelector('.canvas')!.textContent).toContain('92.4 %');
  });
  it('has none for one number of workers, nor for a report of before it', () => {
    const one = { ...block(), bars: block().bars.slice(0, 1) };
    expect(renderWaterfall(one, contextOf(study())).querySelectorAll('.arrives')).toHaveLength(0);
    expect(renderWaterfall({ ...block(), bars: [] }, contextOf(study())).querySelectorAll('.change')).toHaveLength(5);
  });
  it('draws grey what is within noise', () => {
    const fills = [...renderWaterfall(block(), contextOf(study())).querySelectorAll('.change')].map((bar) => bar.getAttribute('fill'));
    expect(fills.filter((fill) => fill === 'var(--other)').length).toBeGreaterThanOrEqual(2);
  });
});

describe('A timeline', () => {
  const block = () => blockOf(study(), 'timeline', 'steps');
  it('has a rectangle a span, names where they fit, and its phases as legend', () => {
    const element = renderTimeline(block(), contextOf(study()));
    expect(element.querySelectorAll('.span')).toHaveLength(block().spans.length);
    expect(element.querySelectorAll('.inside').length).toBeGreaterThan(3);
    expect([...element.querySelectorAll('.legend li')].map((key) => key.textContent)).toEqual(block().phases);
  });
  it('zooms and walks by keys; the tip has the duration', () => {
    const context = contextOf(study());
    const element = renderTimeline(block(), context);
    const spans = () => element.querySelectorAll('.span').length;
    press(element, 'ArrowRight', 'ArrowRight');
    expect(context.tip.live.textContent).toContain('forward: lane rank 0, duration 3.25 ms');
    press(element, '+', '+', '+');
    expect(spans()).toBeLessThan(block().spans.length);
    // Beyond the edge the part that is shown moves along.
    press(element, ...Array(8).fill('ArrowRight'));
    expect(context.tip.live.textContent).toContain('lane rank 0, duration');
    press(element, '0');
    expect(spans()).toBe(block().spans.length);
  });
  it('shows a part of the time that never leaves it', () => {
    const range = new Range(0, 10);
    range.zoom(0.5, 2);
    expect([range.from, range.to]).toEqual([1, 6]);
    range.pan(100);
    expect([range.from, range.to]).toEqual([5, 10]);
    range.reveal(1, 2);
    expect([range.from, range.to]).toEqual([1, 6]);
    range.zoom(1e-9);
    expect(range.to - range.from).toBeCloseTo(0.001, 9);
    range.zoom(1e9);
    expect(range.isWhole).toBe(true);
  });
});

describe('A comparison', () => {
  const render = () => renderComparison(blockOf(reportOf('compared'), 'comparison', 'pairs'), contextOf(reportOf('compared')));
  it('has a line a pair, best first, each with its word', () => {
    const words = [...render().querySelectorAll('.canvas .strong')].map((text) => text.textContent);
    expect(words).toEqual(['+12.0 %  improved', '+7.0 %  improved', '+0.2 %  no change', '-3.0 %  within noise', '-9.0 %  regressed']);
    expect(render().querySelectorAll('circle')).toHaveLength(5);
  });
  it('lists what cannot be compared, with the reason', () => {
    expect(render().querySelector('.hints')!.textContent).toBe('4 workers, global batch 512A has no such cell');
  });
});

describe('A comparison of which nothing is compared', () => {
  it('has no axis, and names cells with one reason together', () => {
    const block = blockOf(reportOf('compared'), 'comparison', 'pairs');
    const refused = { ...block, rows: block.rows.map((row) => ({ ...row, word: 'not_compared' as const, ratio: null, why: 'another model' })) };
    const element = renderComparison(refused, contextOf(reportOf('compared')));
    expect(element.querySelector('svg')).toBeNull();
    expect(element.querySelectorAll('dt')).toHaveLength(1);
    expect(element.querySelector('dd')!.textContent).toBe('another model');
  });
});

describe('A heat map', () => {
  const report = programReport();
  it('shades a confusion by the part of its row, right and wrong apart, and says each cell', () => {
    const block = blockOf(report, 'heatmap', 'confusion');
    const shades = shadesOf(block);
    expect(shades[0]).toBeCloseTo(0.1 + 0.9 * 0.812, 3);  // 812 of 1,000 cats
    expect(shades[1]).toBe(1);                             // the largest confusion
    const context = contextOf(report);
    const element = renderHeatmap(block, context);
    expect(element.querySelectorAll('rect.cell')).toHaveLength(6);
    expect(element.querySelectorAll('rect.cell[style*="--transfer"]')).toHaveLength(4);
    press(element, 'Home', 'ArrowRight');
    expect(context.tip.live.textContent).toContain('shows cat, taken for dog: images 131, note 13.1 % of cat');
  });
  it('has a ring on the best, and a frame where nothing was measured', () => {
    const element = renderHeatmap(blockOf(report, 'heatmap', 'search-grid'), contextOf(report));
    expect(element.querySelectorAll('.ring')).toHaveLength(1);
    expect(element.querySelectorAll('rect.none')).toHaveLength(1);
    expect([...element.querySelectorAll('.legend .key')].map((key) => key.textContent)).toEqual(['darker: more validation accuracy', 'best']);
  });
});

describe('A gallery', () => {
  const block = () => programReport().sections.flatMap(({ blocks }) => blocks).find((one) => one.type === 'gallery')!;
  it('shows pictures with their words, and the rows without one as a table', () => {
    const element = renderGallery(block(), contextOf(programReport()));
    const images = [...element.querySelectorAll('img')];
    expect(images.map(({ alt }) => alt)).toEqual(['image number 17, shows cat, taken for dog, probability 99.8 %']);
    expect(images[0]!.getAttribute('src')).toMatch(/^data:image\/jpeg;base64,/);
    expect(element.querySelector('details summary')!.textContent).toBe('1 more');
    const without = renderGallery({ ...block(), pictures: ['', ''] }, contextOf(programReport()));
    expect(without.querySelectorAll('img')).toHaveLength(0);
    expect(without.querySelectorAll('tbody tr')).toHaveLength(2);
  });
});

describe('The strip of steps', () => {
  const block = () => blockOf(study(), 'strip', 'step-times');
  it('stops at every window and says what others did, or that it is not known', () => {
    const context = contextOf(study());
    press(renderStrip(block(), context), 'Home');
    expect(context.tip.live.textContent).toContain('other programs 0.02 cores');
    press(renderStrip(block(), context), 'Home', 'ArrowRight', 'ArrowRight', 'ArrowRight');
    expect(context.tip.live.textContent).toContain('other programs not known');
  });
  it('has hollow bars for windows that were disturbed or may have been, and a row a window in its table', () => {
    const element = renderStrip(block(), contextOf(study()));
    expect([...element.querySelectorAll('.canvas path[fill="var(--card)"]')]).toHaveLength(2);
    expect(element.querySelector('.legend')!.textContent).toContain('disturbed, or not known');
    const details = element.querySelector<HTMLDetailsElement>('details.figures')!;
    details.open = true;
    details.dispatchEvent(new Event('toggle'));
    expect(details.querySelectorAll('tbody tr')).toHaveLength(block().windows.length);
  });
  it('draws a window without steps and a study of nothing but one as well', () => {
    const one = { ...block(), windows: [{ ...block().windows[0]!, low: [], middle: [], high: [], seconds: 0 }] };
    expect(renderStrip(one, contextOf(study())).querySelector('.canvas svg')).not.toBeNull();
  });
});

describe('The way through a drawing', () => {
  const spot = (lane: number, x: number, y: number): Spot => ({ key: `${lane}:${x}`, lane, x, y, title: '', rows: [], record: '' });
  const spots = [spot(0, 10, 50), spot(0, 20, 50), spot(0, 30, 50), spot(1, 12, 10), spot(1, 28, 10)];
  it('by keys goes along a lane, and to the nearest of the next', () => {
    const keys = (from: Spot | null, ...list: string[]) => list.reduce<Spot | null>((at, key) => next(spots, at, key), from);
    expect(keys(null, 'ArrowRight')).toBe(spots[0]);
    expect(keys(spots[0]!, 'ArrowRight', 'ArrowRight', 'ArrowRight')).toBe(spots[2]);
    expect(keys(spots[2]!, 'ArrowDown')).toBe(spots[4]);
    expect(keys(spots[4]!, 'Home')).toBe(spots[3]);
    expect(keys(spots[3]!, 'x')).toBeNull();
  });
  it('by pointer is the nearest spot in reach, or the area that holds it', () => {
    expect(nearest(spots, 21, 55)).toBe(spots[1]);
    expect(nearest(spots, 300, 300)).toBeNull();
    const area = { ...spot(2, 100, 100), box: { left: 60, right: 140, top: 90, bottom: 110 } };
    expect(nearest([...spots, area], 62, 91)).toBe(area);
  });
});

it('A text in a plot takes the first place that is free, or none', () => {
  const labels = new Labels({ left: 0, right: 200, top: 0, bottom: 100 }, [[{ x: 0, y: 20 }, { x: 200, y: 20 }]]);
  const place = (...ys: number[]) => labels.place('a name', ys.map((y) => ({ x: 10, y, anchor: 'start' as const })))?.getAttribute('y') ?? null;
  expect(place(20, 60)).toBe('60');  // the line goes through the first
  expect(place(60, 80)).toBe('80');  // taken
  expect(place(60, 300)).toBeNull();
});
