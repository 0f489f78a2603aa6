// A large study as data: 3 scaling modes x 3 batches x 3 worker counts = 27 cells, sweep, training curves. Figures
// come from a simple formula with a fixed noise; they are there to see how the page carries size, not what is true.

const phases = ['data wait', 'copy', 'forward', 'backward', 'exposed transfer', 'exposed wait', 'update', 'other'];
const cell = (value, spread = 0, mark = '', note = '') =>
  ({ text: '', value, low: spread ? value * (1 - spread) : null, high: spread ? value * (1 + spread) : null, mark, note });
const missing = (note) => ({ text: '-', value: null, low: null, high: null, mark: '', note });
const point = (x, y, spread = 0, mark = '') =>
  ({ x, y, low: spread ? y * (1 - spread) : null, high: spread ? y * (1 + spread) : null, mark });
const column = (key, label, unit, format) => ({ key, label, unit, format });
const axis = (label, unit, log = false) => ({ label, unit, log });
const paragraph = (tone, text) => ({ type: 'paragraph', tone, text });
const plot = (id, kind, title, caption, x, y, series, categories = []) => ({ type: 'plot', id, kind, title, caption, x, y, series, categories });
const noise = (i) => 1 + 0.02 * Math.sin(12.9898 * i + 4.1);

const BATCHES = [32, 128, 512];
const WORKERS = [1, 2, 4, 8, 16];
const CORES = 8;

function cells(mode) {
  return BATCHES.flatMap((batch, i) => WORKERS.map((workers, j) => {
    const local = mode === 'weak' ? batch : batch / workers;
    const compute = (0.012 + local * 0.0105) * noise(i * 7 + j) * Math.max(1, workers / CORES);
    const transfer = workers === 1 ? 0 : (0.03 * (workers - 1)) / workers;
    const wait = workers === 1 ? 0 : 0.012 * Math.log2(workers) * noise(i + j);
    const parts = [0.004, 0.003, compute * 0.34, compute * 0.66, transfer, wait, 0.006, 0.002];
    return { batch, workers, local, global: local * workers, parts, step: parts.reduce((a, b) => a + b), over: workers > CORES };
  }));
}

function scaling(mode, title) {
  const list = cells(mode);
  const base = (c) => list.find((d) => d.batch === c.batch && d.workers === 1);
  const speedup = (c) => (mode === 'weak' ? c.workers : 1) * base(c).step / c.step;
  const mark = (c) => (c.over ? 'oversubscribed' : '');
  const perBatch = (y) => BATCHES.map((batch) => ({
    name: `${mode === 'weak' ? 'local' : 'global'} batch ${batch}`, dashed: false,
    points: list.filter((c) => c.batch === batch).map((c) => point(c.workers, y(c), 0.03, mark(c))),
  }));
  return {
    id: `${mode}-scaling`, title,
    blocks: [
      paragraph('finding', mode === 'weak'
        ? 'Eight workers do the work of 6.9 at local batch 512; at 32 every second step is spent waiting.'
        : 'At global batch 32 more than four workers gain nothing: 4 images a worker do not fill a core.'),
      {
        type: 'table', id: `scale-${mode}-time`, title: `Time, speedup and efficiency: ${mode} scaling`,
        definition: mode === 'weak'
          ? 'E = t_step(1)/t_step(N) at the same local batch; scaled speedup = N E.\nBaseline: one worker without a communicator.'
          : 'S(N) = T(1)/T(N) at the same global batch over the same data; E = S/N.\nBaseline: one worker without a communicator.',
        columns: [
          column(`${mode}_batch`, mode === 'weak' ? 'local batch' : 'global batch', '', 'integer'), column('workers', 'workers', '', 'integer'),
          column('step', 'step', 's', 'milliseconds'), column('rate', 'throughput', 'images/s', 'rate'), column('epoch', 'epoch', 's', 'seconds'),
          column('speedup', mode === 'weak' ? 'scaled speedup' : 'speedup', '', 'fixed2'), column('efficiency', 'efficiency', '', 'percent1'),
          column('sent', 'bytes sent a step', 'B', 'bytes'), column('updates', 'updates', '', 'integer'),
        ],
        rows: list.map((c) => c.batch === 512 && c.workers === 16 && mode === 'weak'
          ? [cell(c.batch), cell(c.workers), ...Array.from({ length: 7 }, () => missing('skipped: the plan needs 61.4 GB and 58.0 GB are available'))]
          : [cell(c.batch), cell(c.workers), cell(c.step, 0.012, c.over ? '*' : ''), cell(c.global / c.step, 0.012, c.over ? '*' : ''),
             cell((50000 / c.global) * c.step, 0.012, c.over ? 'est. *' : 'est.'), cell(speedup(c), 0.02, c.over ? '*' : ''),
             cell(speedup(c) / c.workers, 0.02, c.over ? '*' : ''), cell((2 * (c.workers - 1) * 44695848) / c.workers), cell(Math.floor(50000 / c.global))]),
        footnotes: ['* more worker threads than cores.', 'est.: steps per epoch x median step, from 20 steps.'],
      },
      plot(`${mode}-speedup`, 'line', `${mode === 'weak' ? 'Scaled speedup' : 'Speedup'} against workers`, 'The dashed line is the ideal; distance from it is what scaling costs.',
        axis('workers', '', true), axis('speedup', '', true),
        [{ name: 'ideal', dashed: true, points: WORKERS.map((n) => point(n, n)) }, ...perBatch(speedup)]),
      plot(`${mode}-efficiency`, 'line', 'Efficiency against workers', 'Below one half, the second worker of each pair is wasted.',
        axis('workers', '', true), axis('efficiency', ''), perBatch((c) => speedup(c) / c.workers)),
      plot(`${mode}-ledger`, 'stacked_bar', 'The ledger of a step, mean over ranks', 'What a step is made of, for every cell.',
        axis('cell', ''), axis('time of a step', 's'),
        phases.map((name, k) => ({ name, dashed: false, points: list.map((c, i) => point(i, c.parts[k], 0, mark(c))) })),
        list.map((c) => `batch ${c.batch}, ${c.workers} ${c.workers === 1 ? 'worker' : 'workers'}`)),
      plot(`${mode}-shares`, 'stacked_bar', 'One batch, five worker counts', 'The share of waiting grows with the workers.',
        axis('workers', ''), axis('time of a step', 'ms'),
        phases.map((name, k) => ({ name, dashed: false, points: list.filter((c) => c.batch === 128).map((c, i) => point(i, 1000 * c.parts[k], 0, mark(c))) })),
        WORKERS.map(String)),
      plot(`${mode}-step`, 'line', 'Time of a step against workers', 'Flat is ideal in weak scaling; falling by half is ideal in strong scaling.',
        axis('workers', '', true), axis('time of a step', 's', true), perBatch((c) => c.step)),
    ],
  };
}

export function largeReport() {
  const sweep = Array.from({ length: 11 }, (_, i) => 2 ** (i + 3));
  const rate = (b) => (b / (0.05 + b * 0.0098)) * noise(b);
  const variants = ['baseline', 'large batch', '+ linear scaling', '+ warm-up', '+ LARS', '+ sync BN', '+ label smoothing'];
  const epochs = Array.from({ length: 40 }, (_, i) => i + 1);
  const accuracy = (v, e) => 0.93 - 0.035 * Math.abs(1.2 - v) ** 0.6 - 0.75 * Math.exp(-e / (4 + v)) + 0.006 * Math.sin(e * 1.7 + v);
  return {
    schema: 'paceline-report-1',
    title: 'Paceline report: resnet18-cifar on CIFAR-10',
    subtitle: 'resnet18-cifar (11,173,962 parameters), CIFAR-10, 8 cores, fp32; 27 cells, 3 repeats each',
    warnings: ['6 of 27 cells had more worker threads than cores; they are marked *.', 'The clock frequency moved by 14 % during 3 cells.'],
    facts: [['CPU', 'An example of a processor, 8 cores, 1 socket'], ['instructions', 'avx2, avx512f, avx512_bf16, amx_bf16'], ['memory', '62.8 GB'],
      ['build', 'Release, GCC 12.2.0'], ['command', '`paceline study recipes/cifar-scaling.toml --workers 1,2,4,8,16 --batches 32,128,512`'],
      ['commit', '0123456789abcdef'], ['seed', '1']].map(([name, value]) => ({ name, value })),
    sections: [
      { id: 'summary', title: 'Summary', blocks: [
        paragraph('finding', 'Which batch size? 128: 98.1 images/s, within 5 % of the best (101.9 images/s at 8192).'),
        paragraph('finding', 'How many workers? Eight are 6.9 times as fast as one at local batch 512 (efficiency 86.4 %).'),
        paragraph('plain', 'A plain paragraph explains how the two fit together, at the length that such a paragraph has: a line or two of text, with an option such as `--shard 32` in it, and no more than that.'),
        paragraph('warning', 'Cells marked * had more worker threads than cores: their times say nothing about scaling.')] },
      { id: 'batch', title: 'Which batch size?', blocks: [
        plot('sweep-rate', 'line', 'Throughput against batch', 'The knee is the smallest batch within 5 % of the best.', axis('global batch', 'images', true), axis('throughput', 'images/s'),
          [{ name: '1 worker', dashed: false, points: sweep.map((b) => point(b, rate(b), 0.015, b === 128 ? 'knee' : '')) },
           { name: 'best', dashed: true, points: [point(8, rate(8192)), point(8192, rate(8192))] }]),
        plot('sweep-memory', 'line', 'Peak memory against batch', 'Measured and planned.', axis('global batch', 'images', true), axis('peak memory', 'B', true),
          [{ name: 'plan', dashed: true, points: sweep.map((b) => point(b, 4e8 + b * 2.1e7)) },
           { name: 'measured', dashed: false, points: sweep.map((b) => point(b, (4e8 + b * 2.1e7) * noise(b))) }])] },
      scaling('weak', 'Weak scaling: how many workers?'),
      scaling('strong', 'Strong scaling: one batch, shared'),
      { id: 'convergence', title: 'What does the accuracy pay?', blocks: [
        plot('accuracy', 'line', 'Test accuracy', 'Bands are intervals over three seeds.', axis('epoch', ''), axis('test accuracy', ''),
          variants.map((name, v) => ({ name, dashed: false, points: epochs.map((e) => point(e, accuracy(v, e), 0.012)) }))),
        plot('end', 'line', 'Test accuracy of the last epochs', 'A narrow range far from zero.', axis('epoch', ''), axis('test accuracy', ''),
          variants.slice(0, 3).map((name, v) => ({ name, dashed: false, points: epochs.slice(30).map((e) => point(e, accuracy(v, e), 0.004)) })))] },
      { id: 'collectives', title: 'What does the network give?', blocks: [
        plot('busbw', 'line', 'Bus bandwidth against message size', 'Below 1 MiB latency decides, above it the links do.', axis('message', 'B', true), axis('busbw', 'GB/s', true),
          [2, 4, 8].map((n) => ({ name: `${n} workers`, dashed: false, points: Array.from({ length: 10 }, (_, i) => 2 ** (10 + 2 * i)).map((x) => point(x, 12 / n ** 0.3 * x / (x + 4e5), 0.05)) })))] },
    ],
  };
}
