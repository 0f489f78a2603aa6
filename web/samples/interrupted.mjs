// A study that somebody stopped: some questions are open, one figure has a point or two, others are missing.

import { answer, axis, column, document, figure, paragraph, section, series, table, view } from './document.mjs';
import { facts } from './study.mjs';

const open = (id, question, command) => answer(id, { question, certainty: 'not_measured', chip: 'not measured', figure: '–', sentence: 'The study was stopped before this.', command });

export const interruptedReport = () => document({
  title: 'Paceline study: resnet8-cifar on synthetic data', subtitle: 'AMD EPYC, 2 cores', circumstances: ['CPU, bf16', '9 of 82 runs'],
  trust: 'stopped: 9 of 82 runs are here', warnings: ['This study was stopped after 7 s; `paceline study --resume` goes on.'], facts: facts(),
  sections: [
    section('answer', 'Answer', [
      answer('best', { certainty: 'careful', chip: 'unfinished', figure: 'So far: 1 worker, 64 images: 6,591 images/s', sentence: 'Only the batches of one worker were measured.', value: 6591, low: 6462, high: 6621, n: 5, evidence: 'hero', records: ['sweep-b64'], command: 'paceline study --resume' }),
      answer('batch', { question: 'Which batch?', certainty: 'not_decided', chip: 'not decided', figure: '64', unit: 'images', sentence: 'Larger batches were not reached.', value: 6591, evidence: 'hero', records: ['sweep-b64'] }),
      open('workers', 'How many workers?', 'paceline scale'), open('limit', 'What limits?', 'paceline scale'), open('network', 'How fast is the network?', 'paceline comm'), open('accuracy', 'What happens to the accuracy?', 'paceline converge'),
      figure('hero', 'One worker, as far as it was measured', '', [view('images/s', axis('global batch', 'images', true), axis('images/s'), [
        series('1 worker, 2 threads', [[8, 4069, 3724, 4261], [16, 4671, 4532, 4806], [32, 5958, 5914, 6023], [64, 6591, 6462, 6621]].map(([x, y, low, high]) => ({ x, y, low, high, record: `sweep-b${x}`, n: 5, mark: x === 64 ? 'best' : '' }))),
        series('2 workers, a core each', []),
      ])]),
      { type: 'next', steps: [{ title: 'Finish the study', why: '73 of 82 runs are left.', command: 'paceline study --resume', seconds: 53 }], not_answered: [] },
    ]),
    section('convergence', 'Accuracy', [figure('accuracy', 'No training has ended', '', [view('epoch', axis('epoch'), axis('test accuracy', '%'), [series('batch 64', [{ x: 1, y: null }])])])]),
    section('all-cells', 'Every cell', [table('cells', 'Every cell', [column('way', 'way', '', 'text'), column('batch', 'global batch', '', 'integer'), column('rate', 'throughput', 'images/s', 'rate', 'time')],
      [[8, 4069], [16, 4671], [32, 5958], [64, 6591]].map(([batch, rate]) => ({ way: '1 worker, 2 threads', batch, rate })))]),
    section('method', 'How it was measured', [paragraph('plain', 'Each cell runs 2 steps to warm up and 5 steps that count.')], true),
  ],
});
