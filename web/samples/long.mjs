// A long study: 200 cells, six trainings of 1,000 epochs, 16 ranks in the timeline. Figures come from simple formulas
// with a fixed noise; they are there to see how the page carries size.

import { axis, column, document, figure, mark, section, series, table, timeline, view } from './document.mjs';
import { answers, facts, next } from './study.mjs';

const noise = (i) => Math.sin(12.9898 * i + 4.1) * 0.5 + Math.sin(78.233 * i) * 0.5;

const BATCHES = Array.from({ length: 20 }, (_, i) => Math.round(8 * 2 ** (i / 2)));
const WORKERS = [1, 2, 4, 6, 8, 12, 16, 24, 32, 48];
const CELLS = WORKERS.flatMap((workers, w) => BATCHES.map((batch, b) => {
  const rate = ((4600 * workers ** 0.93 * batch) / (batch + 6 * workers)) * (1 + 0.02 * noise(w * 20 + b));
  return { workers, batch, rate, low: rate * 0.97, high: rate * 1.025, record: `scale-w${workers}-g${batch}`, n: 40 };
}));
const best = CELLS.reduce((a, b) => (a.rate > b.rate ? a : b));
const nameOf = (workers) => `${workers} ${workers === 1 ? 'worker' : 'workers'}`;

const hero = () => figure('hero', 'More workers are faster up to the last', 'What touches the band cannot be told from the best.', [
  view('images/s', axis('global batch', 'images', true), axis('images/s', ''),
    WORKERS.map((workers, w) => series(nameOf(workers), CELLS.filter((c) => c.workers === workers).map((c) => ({ x: c.batch, y: c.rate, low: c.low, high: c.high, mark: c === best ? 'best' : '', record: c.record, n: c.n })), { hidden: w > 0 && w < 5 })),
    [mark('y', best.low, best.high, 'ties with the best')])]);

const EPOCHS = Array.from({ length: 1000 }, (_, i) => i + 1);
const NAMES = ['baseline', 'large batch', 'linear', 'linear and warm-up', 'LARS', 'sync BN'];
const curve = (v, e) => 93 - 3 * v - 70 * Math.exp(-e / (60 + 15 * v)) + 0.4 * noise(e * (v + 1));
const accuracy = () => figure('accuracy', 'After 1,000 epochs the large batch is 3 points behind', '', ['epoch', 'time', 'update'].map((name, k) =>
  view(name, axis(name === 'time' ? 'training time' : name, name === 'time' ? 's' : '', name === 'update'), axis('test accuracy', '%'), NAMES.map((line, v) =>
    series(line, EPOCHS.map((e) => ({ x: [e, e * (1.5 + 0.01 * v), e * (v === 0 ? 160 : 20)][k], y: curve(v, e), low: curve(v, e) - 0.6, high: curve(v, e) + 0.6 })))))));

function steps() {
  const spans = [];
  const lanes = Array.from({ length: 16 }, (_, r) => [`rank ${r}`, `rank ${r}, all-reduce`]).flat();
  for (let step = 0; step < 3; ++step) {
    const start = step * 0.012;
    for (let rank = 0; rank < 16; ++rank) {
      const late = 0.0004 * (1 + noise(step * 16 + rank));
      [[0, 0, 0.0002], [1, 0.0002, 0.0034], [2, 0.0034, 0.0092 + late], [3, 0.0092 + late, 0.0102], [4, 0.0102, 0.0114], [5, 0.0114, 0.012]].forEach(([phase, begin, end]) => spans.push({ lane: 2 * rank, phase, begin: start + begin, end: start + end }));
      spans.push({ lane: 2 * rank + 1, phase: 4, begin: start + 0.006, end: start + 0.0114 });
    }
  }
  return timeline('steps', 'All ranks wait for the slowest', '', lanes, ['data wait', 'forward', 'backward', 'wait for a rank', 'exposed transfer', 'update'], spans);
}

const cells = () => table('cells', 'Every cell', [
  column('way', 'way', '', 'text'), column('batch', 'global batch', '', 'integer'), column('rate', 'throughput', 'images/s', 'rate'), column('step', 'step', 's', 'milliseconds', 'time'),
  column('warmup', 'warm-up', '', 'integer', 'time'), column('busbw', 'busbw', 'GB/s', 'rate', 'network'), column('seen', 'seen', 'B', 'bytes', 'memory'), column('record', 'record', '', 'text', 'record'),
], CELLS.map((c) => ({ way: nameOf(c.workers), batch: c.batch, rate: { value: c.rate, low: c.low, high: c.high }, step: c.batch / c.rate, warmup: 2, busbw: c.workers === 1 ? '-' : 12 + noise(c.batch), seen: 5e7 + (c.batch / c.workers) * 3.5e5, record: c.record })));

export const longReport = () => document({
  title: 'Paceline study: resnet18-cifar on CIFAR-10', subtitle: '48 cores', circumstances: ['CPU, fp32', '600 runs in 5 h'], facts: facts(),
  sections: [
    section('answer', 'Answer', [...answers({ best: { records: [best.record], figure: `Train with ${nameOf(best.workers)}, ${Math.round(best.batch / best.workers)} images each: ${Math.round(best.rate).toLocaleString('en')} images/s` } }), hero(), next()]),
    section('convergence', 'Accuracy', [accuracy()]), section('step', 'A step', [steps()]), section('all-cells', 'Every cell', [cells()]),
  ],
});
