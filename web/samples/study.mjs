// A quick study of two cores, as the program writes it: every kind of block, the figures of one real run.

import { answer, axis, column, document, figure, mark, paragraph, plot, section, series, table, timeline, view } from './document.mjs';

// id, workers, threads of each, global batch, images/s, low, high, step [ms], mark, n
const CELLS = [
  ['sweep-b8', 1, 2, 8, 4069, 3724, 4261, 1.966], ['sweep-b16', 1, 2, 16, 4671, 4532, 4806, 3.425], ['sweep-b32', 1, 2, 32, 5958, 5914, 6023, 5.371],
  ['sweep-b64', 1, 2, 64, 6591, 6462, 6621, 9.71], ['sweep-b128', 1, 2, 128, 6763, 5055, 7127, 18.93], ['sweep-b256', 1, 2, 256, 7285, 5443, 7377, 35.14],
  ['sweep-b512', 1, 2, 512, 6798, 4013, 7354, 75.32],
  ['scale-w1-b32', 1, 1, 32, 4563, 4475, 4616, 7.013], ['scale-w1-b128', 1, 1, 128, 4225, 4152, 4384, 30.29], ['scale-w1-b512', 1, 1, 512, 3733, 3664, 3867, 137.2],
  ['scale-w2-g32', 2, 1, 32, 8486, 7410, 8627, 3.771], ['scale-w2-g64', 2, 1, 64, 8557, 8409, 8624, 7.48, 'best'], ['scale-w2-g128', 2, 1, 128, 8260, 7729, 8498, 15.5],
  ['scale-w2-g256', 2, 1, 256, 7492, 6606, 7975, 34.17], ['scale-w2-g512', 2, 1, 512, 7460, 7215, 7899, 68.64], ['scale-w2-g1024', 2, 1, 1024, 5935, 4247, 7160, 172.5, 'disturbed'],
  ['scale-w4-g32', 4, 1, 32, 6353, 5825, 8241, 5.037, 'oversubscribed'], ['scale-w4-g128', 4, 1, 128, 7968, 7126, 8328, 16.06, 'oversubscribed'],
  ['scale-w4-g512', 4, 1, 512, 7267, 6425, 7649, 70.46, 'oversubscribed'], ['scale-w4-g2048', 4, 1, 2048, 7136, 4586, 7175, 287, 'oversubscribed'],
].map(([record, workers, threads, batch, rate, low, high, ms, special = '', n = 15]) => ({ record, workers, threads, batch, rate, low, high, ms, mark: special, n }));

const WAYS = [
  ['2 workers, a core each', (c) => c.workers === 2], ['1 worker, 2 threads', (c) => c.workers === 1 && c.threads === 2],
  ['1 worker, 1 core', (c) => c.workers === 1 && c.threads === 1], ['4 workers on 2 cores', (c) => c.workers === 4],
];
const nameOf = (c) => WAYS.find(([, is]) => is(c))[0];
const pointOf = (c) => ({ x: c.batch, y: c.rate, low: c.low, high: c.high, mark: c.mark, record: c.record, n: c.n });
const ratio = (c, base) => ({ y: c.rate / base.rate, low: c.low / base.high, high: c.high / base.low });
const cell = (id) => CELLS.find(({ record }) => record === id);

const STRONG = [[32, 'scale-w1-b32', ['scale-w2-g32', 'scale-w4-g32']], [128, 'scale-w1-b128', ['scale-w2-g128', 'scale-w4-g128']], [512, 'scale-w1-b512', ['scale-w2-g512', 'scale-w4-g512']]];
const WEAK = [[32, 'scale-w1-b32', ['scale-w2-g64', 'scale-w4-g128']], [128, 'scale-w1-b128', ['scale-w2-g256', 'scale-w4-g512']], [512, 'scale-w1-b512', ['scale-w2-g1024', 'scale-w4-g2048']]];

function speedups(lines, kind, of = (c, base) => ratio(c, base)) {
  return lines.map(([batch, one, more]) => series(`${kind} batch ${batch}`, [
    { x: 1, ...of(cell(one), cell(one)), low: null, high: null, record: one, n: 15 },
    ...more.map((id) => ({ x: cell(id).workers, ...of(cell(id), cell(one)), mark: cell(id).mark === 'best' ? '' : cell(id).mark, record: id, n: 15 })),
  ]));
}
const beyond = mark('x', 2.8, null, 'no core for each');
const workers = axis('workers', '', true);

const hero = () => figure('hero', 'Two workers with small batches are fastest', 'What touches the green band cannot be told from the best.', [
  view('images/s', axis('global batch', 'images', true), axis('images/s', ''),
    [...WAYS.map(([name, is]) => series(name, CELLS.filter(is).map(pointOf), { hidden: name.startsWith('4') })),
     series('twice one core', [[64, 9126], [256, 8450], [1024, 7466]].map(([x, y]) => ({ x, y })), { dashed: true })],
    [mark('y', 8409, 8624, 'ties with the best')]),
  view('speedup, batch per worker fixed', workers, axis('speedup', ''),
    [...speedups(WEAK, 'local'), series('ideal', [1, 2].map((x) => ({ x, y: x })), { dashed: true })], [beyond]),
]);

const efficiency = (c, base) => Object.fromEntries(Object.entries(ratio(c, base)).map(([key, value]) => [key, (100 * value) / c.workers * (c.batch === base.batch ? 1 : 1)]));
const per = (name, lines, kind) => view(name, workers, axis('efficiency', '%'), speedups(lines, kind, efficiency), [mark('y', 100, null, ''), beyond]);

const PHASES = ['forward', 'backward', 'update', 'exposed transfer', 'wait for a rank', 'data wait', 'copy, other'];
const LEDGER = [['1 worker', [2.247, 4.285, 0.1193, 0, 0, 0.82, 0.0016]], ['2 workers', [2.712, 4.51, 0.1546, 0.0651, 0.379, 0.2569, 0.0087]], ['4 workers', [5.6, 9.4, 0.31, 0.19, 1.6, 0.34, 0.06]]];

const waterfall = () => ({
  type: 'waterfall', id: 'why', finding: 'With a second worker a step grows from 7.47 to 8.09 ms',
  note: 'Slower kernels first, then waiting. Means of 15 steps, 32 images a worker.',
  from: { name: '1 worker', seconds: 0.0074729 }, to: { name: '2 workers', seconds: 0.0080863 },
  changes: [['slower kernels', 0.00072520, 'two workers share the memory; smaller batches would not help'], ['waiting for the other worker', 0.000379, 'equal threads a worker; at most 4.7 % of a step'],
    ['moving gradients', 0.0000651, 'overlap with backward; at most 0.8 %'], ['copy and other', 0.0000072, ''], ['waiting for data', -0.0005631, '']].map(([name, seconds, hint]) => ({ name, seconds, hint, low: seconds - 0.0001, high: seconds + 0.0001, noise: Math.abs(seconds) < 0.0001 })),
  bars: [{ name: '2 workers', seconds: 0.0080863, parts: [0.0897, 0.0469, 0.0081, 0.0009, -0.0696] }, { name: '4 workers', seconds: 0.0171, parts: [0.42, 0.1, 0.03, 0.002, 0.001] }],
});

/// Three steps of two ranks: begin of each phase in ms, one all-reduce a step.
function steps() {
  const spans = [];
  const add = (lane, phase, begin, end) => spans.push({ lane, phase, begin: begin / 1000, end: end / 1000 });
  const [DATA, FORWARD, BACKWARD, WAIT, TRANSFER, UPDATE] = [0, 1, 2, 3, 4, 5];
  let now = 0;
  for (const [first, second] of [[[0.03, 3.25, 8.45], [0.05, 3.29, 5.32]], [[0.02, 3.15, 5.37], [0.05, 3.21, 5.25]], [[0.02, 2.87, 9.34], [0.04, 2.89, 5.27]]]) {
    const end = Math.max(first[0] + first[1] + first[2], second[0] + second[1] + second[2]) + now;
    [first, second].forEach(([data, forward, backward], rank) => {
      const lane = 2 * rank;
      add(lane, DATA, now, now + data);
      add(lane, FORWARD, now + data, now + data + forward);
      add(lane, BACKWARD, now + data + forward, now + data + forward + backward);
      if (end - (now + data + forward + backward) > 0.001) add(lane, WAIT, now + data + forward + backward, end);
      add(lane, TRANSFER, end, end + 0.06);
      add(lane, UPDATE, end + 0.06, end + 0.26);
      add(lane + 1, WAIT, now + data + forward + backward, end);
      add(lane + 1, TRANSFER, end, end + 0.06);
    });
    now = end + 0.26;
  }
  return timeline('steps', 'Rank 0 is late in two of three steps', 'What stands in one column happens at the same time.',
    ['rank 0', 'rank 0, all-reduce', 'rank 1', 'rank 1, all-reduce'], ['data wait', 'forward', 'backward', 'wait for a rank', 'exposed transfer', 'update'], spans);
}

const network = () => figure('network', 'The gradients of 315 kB reach 43 % of the ceiling', 'The fit goes through all sizes; its residual is 6 %.', [
  view('busbw', axis('message', 'B', true), axis('busbw', 'GB/s'), [
    series('2 ranks, memory', [10, 12, 14, 16, 18, 20, 22, 24].map((e) => { const x = 2 ** e; const y = 12.2 * x / (x + 3.3e5); return { x, y, low: y * 0.9, high: y * 1.08, record: `comm-${e}`, n: 50 }; })),
    series('fit', [10, 12, 14, 16, 18, 20, 22, 24].map((e) => ({ x: 2 ** e, y: 12.1 * 2 ** e / (2 ** e + 3.5e5) })), { dashed: true }),
    series('all-reduce of the training', [{ x: 315250, y: 5.242, low: 3.665, high: 5.944, record: 'scale-w2-g64', n: 15 }]),
  ], [mark('y', 12.2, null, 'ceiling 12.2 GB/s')]),
]);

// name, updates an epoch, test accuracy of each epoch, seconds until its end
const TRAININGS = [
  ['batch 64', 160, [70.25, 86.4, 84.25], [1.683, 3.177, 4.641]], ['batch 512', 20, [21.6, 45.05, 52.55], [1.653, 3.088, 4.474]],
  ['512, linear and warm-up', 20, [25, 49.1, 70.4], [1.491, 3.067, 4.713]], ['512, linear', 20, [10.05, 35.45, 64.15], [1.408, 2.832, 4.271]], ['512, LARS', 20, [21.25, 45.55, 61.8], [1.538, 2.99, 4.395]],
];
const accuracy = () => figure('accuracy', 'Batch 512 saves 3 % of an epoch and costs 32 points', 'One seed; bars are the error of the test set.',
  [['time', axis('training time', 's'), (t, i) => t[3][i]], ['epoch', axis('epoch'), (_, i) => i + 1], ['update', axis('updates', '', true), (t, i) => t[1] * (i + 1)]].map(([name, x, at]) =>
    view(name, x, axis('test accuracy', '%'), TRAININGS.map((t, k) => series(t[0], t[2].map((y, i) => ({ x: at(t, i), y, low: y - 0.9, high: y + 0.9, record: `converge-${k}`, n: 1 })), { hidden: k > 2 })), [mark('y', 80, null, 'target 80 %')])));

const batch = () => figure('batch', 'Above 64 images a batch brings no time and costs memory', '', [
  view('time of an epoch', axis('global batch', 'images', true), axis('time of an epoch', 's'),
    WAYS.slice(0, 3).map(([name, is]) => series(name, CELLS.filter(is).map((c) => ({ x: c.batch, y: 10240 / c.rate, low: 10240 / c.high, high: 10240 / c.low, mark: c.mark, record: c.record, n: c.n }))))),
  view('memory', axis('global batch', 'images', true), axis('memory', 'B'), [
    series('planned', CELLS.filter((c) => c.workers === 1 && c.threads === 2).map((c) => ({ x: c.batch, y: 6e6 + c.batch * 3.4e5, record: c.record }))),
    series('seen', CELLS.filter((c) => c.workers === 1 && c.threads === 2).map((c) => ({ x: c.batch, y: 5.6e7 + c.batch * 3.5e5, record: c.record }))),
  ], [mark('y', 4.2e8, null, 'limit 420 MB')]),
]);

const cells = () => table('cells', 'Every cell', [
  column('way', 'way', '', 'text'), column('batch', 'global batch', '', 'integer'), column('rate', 'throughput', 'images/s', 'rate'),
  column('step', 'step', 's', 'milliseconds', 'time'), column('epoch', 'epoch', 's', 'seconds', 'time'), column('n', 'steps', '', 'integer', 'time'), column('warmup', 'warm-up', '', 'integer', 'time'),
  column('forward', 'forward', '', 'percent1', 'parts'), column('backward', 'backward', '', 'percent1', 'parts'), column('wait', 'wait', '', 'percent1', 'parts'), column('closure', 'closure', '', 'percent1', 'parts'),
  column('busbw', 'busbw', 'GB/s', 'rate', 'network'), column('sent', 'sent a step', 'B', 'bytes', 'network'), column('buckets', 'buckets', '', 'integer', 'network'),
  column('planned', 'planned', 'B', 'bytes', 'memory'), column('seen', 'seen', 'B', 'bytes', 'memory'),
  column('ready', 'ready', 'batches', 'fixed2', 'loader'), column('record', 'record', '', 'text', 'record'),
], CELLS.map((c, i) => ({
  way: nameOf(c), batch: c.batch, rate: { value: c.rate, low: c.low, high: c.high, mark: c.mark === 'oversubscribed' ? '*' : c.mark === 'disturbed' ? '!' : '' },
  step: { value: c.ms / 1000, low: c.batch / c.high, high: c.batch / c.low }, epoch: 10240 / c.rate, n: c.n, warmup: 2,
  forward: 0.31 + 0.01 * (i % 5), backward: 0.56 - 0.01 * (i % 4), wait: c.workers === 1 ? { text: '-', note: 'one worker waits for nobody' } : 0.047 + 0.002 * i, closure: 1,
  busbw: c.workers === 1 ? { text: '-', note: 'one worker moves nothing' } : { value: 5.242 - 0.1 * i, low: 3.665, high: 5.944 }, sent: c.workers === 1 ? 0 : (630500 * (c.workers - 1)) / c.workers, buckets: 1,
  planned: 6e6 + (c.batch / c.workers) * 3.4e5, seen: 5.6e7 + (c.batch / c.workers) * 3.5e5, ready: 2, record: c.record,
})), { footnotes: ['* more worker threads than cores', '! other programs took 0.75 of 2 cores'] });

const ledger = () => plot('ledger', 'stacked_bar', 'Parts of a step', 'Shares of the mean step, 32 images a worker.', axis('cell'), axis('time of a step', 's'),
  PHASES.map((name, k) => series(name, LEDGER.map(([, parts], i) => ({ x: i, y: parts[k] / 1000, mark: i === 2 ? 'oversubscribed' : '' })))), LEDGER.map(([name]) => name));

const loader = () => table('loader', 'The loader keeps up', [column('cell', 'cell', '', 'text'), column('ready', 'ready', 'batches', 'fixed2'), column('wait', 'data wait', 's', 'milliseconds')],
  CELLS.slice(0, 8).map((c) => ({ cell: c.record, ready: 2, wait: { value: 0.00026, low: 0.0002, high: 0.00041 } })), { definition: 'ready: batches that wait in the queue when a step begins, of at most 2.' });

const strip = () => {
  let begin = 0;
  return {
    type: 'strip', id: 'step-times', finding: 'Other programs were at work in 1 of 20 windows', note: 'Steps over the median of their configuration.',
    windows: CELLS.map((c, i) => {
      const slow = c.mark === 'disturbed' ? 1.6 : 1;
      const middle = Array.from({ length: 12 }, (_, k) => Number((slow * (1 + 0.02 * Math.sin(7 * i + 3 * k))).toFixed(3)));
      const window = {
        name: `${nameOf(c)}, ${c.batch / c.workers} images`, record: c.record, mark: c.mark === 'disturbed' ? c.mark : i === 3 ? 'maybe disturbed' : '', begin, seconds: 1.3 + 0.05 * i,
        typical: c.ms / 1000, others: i === 3 ? null : c.mark === 'disturbed' ? 0.75 : 0.02,
        low: middle.map((ratio) => Number((ratio * 0.97).toFixed(3))), middle, high: middle.map((ratio) => Number((ratio * 1.08).toFixed(3))),
      };
      begin += window.seconds;
      return window;
    }),
  };
};

const TRAIN = 'paceline train --model resnet8-cifar --data synthetic,train=10240,test=2000 --workers 2 --local-batch 32 --lr 0.05';

export const answers = (over = {}) => [
  answer('best', { certainty: 'decided', chip: '', figure: 'Train with 2 workers, 32 images each: 8,557 images/s', sentence: '1.88 times one core, 1.17 times the best single worker. Compute is the limit, not communication.',
    value: 8557, low: 8409, high: 8624, n: 15, evidence: 'hero', records: ['scale-w2-g64'], command: TRAIN }),
  answer('batch', { question: 'Which batch?', certainty: 'tie', chip: 'three tie', figure: '32', unit: 'images a worker', sentence: '16 and 64 are as good within the noise. 128 is 12 % slower.', value: 8557, low: 8409, high: 8624, n: 15, evidence: 'hero', records: ['scale-w2-g64', 'scale-w2-g32', 'scale-w2-g128'],
    bars: { title: 'images/s with 8, 16, 32, 64, 128 and 256 images a worker; dark: 32', values: [7480, 8290, 8557, 8398, 7640, 7226], chosen: 2 } }),
  answer('workers', { question: 'How many workers?', certainty: 'decided', chip: 'decided', figure: '2', unit: 'of 2 cores', sentence: '1.88× one core [1.84, 1.92]: 94 % efficient. 4 workers need 4 cores.', value: 1.875, low: 1.836, high: 1.915, n: 15, evidence: 'workers', records: ['scale-w2-g64'], bars: { title: 'images/s with 1 worker and 2 workers; dark: 2 workers', values: [4564, 8557], chosen: 1 } }),
  answer('limit', { question: 'What limits?', certainty: 'decided', chip: 'decided', figure: 'Compute', unit: '91 %', sentence: 'Waiting for the other worker 4.7 %, data 3.2 %, moving gradients 0.8 %.', value: 0.912, evidence: 'why', records: ['scale-w2-g64'] }),
  answer('network', { question: 'How fast is the network?', certainty: 'decided', chip: 'not the limit', figure: '5.2', unit: 'GB/s busbw', sentence: '43 % of what it gives alone. A free network would gain under 1 %.', value: 5.242, low: 3.665, high: 5.944, n: 15, evidence: 'network', records: ['scale-w2-g64'] }),
  answer('accuracy', { question: 'How accurate?', certainty: 'careful', chip: 'one seed', figure: '84 %', unit: 'at batch 64', sentence: 'Batch 512 loses 32 points in 3 epochs; the best remedy returns 18.', value: 84.25, low: 83.44, high: 85.06, n: 1, evidence: 'accuracy', records: ['converge-0'] }),
].map((one) => ({ ...one, ...over[one.id] }));

export const next = () => ({
  type: 'next',
  steps: [
    { title: 'Settle 16, 32 or 64', why: 'Three batches lie within 4 %. Longer windows decide.', command: 'paceline scale --model resnet8-cifar --data synthetic,train=10240,test=2000 --workers 1,2 --batches 16,32,64 --repeats 5 --window-steps 200', seconds: 62 },
    { title: 'Three seeds for the accuracy', why: 'One seed decides nothing.', command: 'paceline converge --model resnet8-cifar --data synthetic --workers 2 --baseline-batch 64 --large-batch 512 --repeats 3 --epochs 10', seconds: 300 },
    { title: 'Leave the network alone', why: 'Compression or overlap could give back 0.8 % of a step at most.', command: '', seconds: null },
  ],
  not_answered: ['4 workers: this machine has 2 cores', 'real images: the data is synthetic', 'two hosts'],
});

export const facts = () => [['CPU', 'AMD EPYC, 2 cores, 1 socket'], ['instructions', 'avx2, avx512f, avx512_bf16'], ['memory', '4.2 GB'], ['build', 'Release, GCC 12.2.0'],
  ['command', '`paceline study --quick`'], ['seed', '1']].map(([name, value]) => ({ name, value }));

export const studyReport = () => document({
  title: 'Paceline study: resnet8-cifar on synthetic data', subtitle: 'AMD EPYC, 2 cores', circumstances: ['CPU, bf16', '82 runs in 60 s', '23 Nov 2026', 'paceline 0.1.0'],
  trust: 'quick study: typical interval ±5 %, widest ±25 %',
  warnings: ['The data is synthetic: times are real, accuracies say nothing about real images.', 'This machine has 2 cores: figures of 4 workers say nothing about 4 cores.',
    'Other programs were at work in 2 of the 10 windows long enough to tell; 71 were too short.'],
  facts: facts(),
  sections: [
    section('answer', 'Answer', [...answers(), hero(), next()]),
    section('batch-size', 'Batch', [batch()]),
    section('how-many', 'Workers', [figure('workers', 'Two workers are 94 % efficient at 32 images each', 'Against one worker on one core.', [per('batch a worker fixed', WEAK, 'local'), per('global batch fixed', STRONG, 'global')])]),
    section('step', 'A step', [waterfall(), steps()]),
    section('collectives', 'Network', [network()]),
    section('convergence', 'Accuracy', [accuracy()]),
    section('windows', 'Single steps', [strip()]),
    section('all-cells', 'Every cell', [cells()]),
    section('parts', 'Parts of a step in every cell', [ledger()], true),
    section('loader-section', 'Loader', [paragraph('finding', 'The loader is fast enough: 2.00 batches are ready in every cell.'), loader()], true),
    section('method', 'How it was measured', [paragraph('plain', 'Each cell runs 2 steps to warm up and 5 steps that count, 3 times. An interval holds the median with 95 %.')], true),
  ],
});

export const parts = { hero, batch, waterfall, steps, network, accuracy, cells, ledger, strip };
