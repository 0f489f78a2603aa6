// Fields below a prediction's figure, behind one stop of the Tab key until somebody opens them: batch, bandwidth and
// workers. What they give is one line more in the drawing, and a sentence.

import { h } from '../dom';
import { compute, type ClosedForm, type Computed } from '../data/closed-form';
import { formatTime, formatFigure } from '../data/format';
import type { Figure, Point, Series } from '../data/report';

export const TRIED = 'tried';

export const emptySeries = (): Series => ({ name: TRIED, points: [], dashed: false, hidden: false });

const STEPS_A_DOUBLING = 2;
const MOST_DOUBLINGS = 5;
const factorOf = (place: number) => 2 ** (place / STEPS_A_DOUBLING);
const sayFactor = (factor: number) => `${factor < 1 ? factor.toPrecision(2) : factor.toPrecision(factor < 10 ? 2 : 3).replace(/\.0$/, '')} times`;

/// `tried`: the line of each view, whose points are replaced before `redraw`.
export function renderFields(figure: Figure, form: ClosedForm, tried: ReadonlyMap<string, Series>, redraw: () => void): HTMLElement {
  const own = (name: string) => `${figure.id}-${name}`;
  // The first batch is the one that the figure is about.
  const sorted = form.batches.map(({ batch }, i) => ({ batch, i })).sort((a, b) => a.batch - b.batch);
  const batches = h('select', { id: own('batch') }, ...sorted.map(({ batch, i }) => h('option', { value: i, selected: i === 0 }, String(batch))));
  const slider = (name: string, min: number, max: number, value: number) => h('input', { type: 'range', id: own(name), min, max, step: 1, value });
  const bandwidth = slider('bandwidth', -MOST_DOUBLINGS * STEPS_A_DOUBLING, MOST_DOUBLINGS * STEPS_A_DOUBLING, 0);
  const workers = slider('workers', 0, form.workers.length - 1, Math.min(4, form.workers.length - 1));
  const [saidBandwidth, saidWorkers] = [h('output', { for: own('bandwidth') }), h('output', { for: own('workers') })];
  const result = h('p', { 'class': 'prose', 'role': 'status' });
  const field = (name: string, label: string, input: HTMLElement, output?: HTMLElement) =>
    h('label', { class: 'field', for: own(name) }, h('span', {}, label), input, output);

  function show(): Computed[] {
    const batch = form.batches[Number(batches.value)]!;
    const factor = factorOf(Number(bandwidth.value));
    const all = compute(form, batch, factor);
    const one = all[Number(workers.value)]!;
    saidBandwidth.textContent = sayFactor(factor);
    saidWorkers.textContent = String(one.workers);
    bandwidth.setAttribute('aria-valuetext', `${sayFactor(factor)} the measured bandwidth`);
    workers.setAttribute('aria-valuetext', `${one.workers} workers`);
    result.textContent = `${one.workers} ${one.workers === 1 ? 'worker' : 'workers'}, ${batch.batch} images each, ${sayFactor(factor)} the measured bandwidth: ` +
      `${formatTime(one.step)} a step, ${formatFigure(one.rate, 'images/s')}, ${(100 * one.efficiency).toFixed(1)} % efficient` +
      (one.isBound ? ' at most: the network between so many was not measured.' : '.');
    return all;
  }
  function draw() {
    const all = show();
    for (const [name, series] of tried) series.points = all.map((at) => pointOf(at, name));
    redraw();
  }
  for (const input of [batches, bandwidth, workers]) input.addEventListener('input', draw);
  const title = 'Try another batch, bandwidth or number of workers';
  const fields = h('details', { class: 'try' }, h('summary', {}, title), h('fieldset', { 'class': 'recompute', 'aria-label': title },
    field('batch', 'images a worker', batches), field('bandwidth', 'bandwidth', bandwidth, saidBandwidth), field('workers', 'workers', workers, saidWorkers), result));
  show();
  return fields;
}

function pointOf({ workers, rate, efficiency }: Computed, view: string): Point {
  return { x: workers, y: view === 'efficiency' ? 100 * efficiency : rate, low: null, high: null, mark: '', record: '', n: 0 };
}
