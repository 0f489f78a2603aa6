// Two studies side by side: pairs that improved, regressed, did not change, and one that cannot be compared.

import { column, document, section, table } from './document.mjs';
import { facts } from './study.mjs';

const PAIRS = [['2 workers, global batch 64', 'improved', 1.12, 1.08, 1.16], ['2 workers, global batch 128', 'improved', 1.07, 1.03, 1.11], ['1 worker, 2 threads, batch 64', 'no_change', 1.002, 0.995, 1.01],
  ['1 worker, 2 threads, batch 256', 'within_noise', 0.97, 0.88, 1.09], ['1 worker, 1 core, batch 512', 'regressed', 0.91, 0.88, 0.95], ['4 workers, global batch 512', 'not_compared', null, null, null]];

export const comparedReport = () => document({
  title: 'Paceline comparison: before and after', subtitle: 'resnet8-cifar on synthetic data', circumstances: ['AMD EPYC, 2 cores'], facts: facts(),
  sections: [section('comparison', 'B over A', [{
    type: 'comparison', id: 'pairs', finding: 'B is 12 % faster at the best cell [8, 16]', note: 'Bars that touch the line at 1 decide nothing.', name_of_ratio: 'images/s, B over A',
    rows: PAIRS.map(([name, word, ratio, low, high]) => ({ name, word, ratio, low, high, before: ratio === null ? '' : '7,640 images/s', after: ratio === null ? '7,267 images/s' : `${Math.round(7640 * ratio).toLocaleString('en')} images/s`, why: ratio === null ? 'A has no such cell' : '' })),
  }, table('settings', 'Settings that differ', [column('setting', 'setting', '', 'text'), column('a', 'A', '', 'text'), column('b', 'B', '', 'text')], [{ setting: 'commit', a: '0123456', b: '89abcde' }, { setting: 'bucket', a: '4 MB', b: '1 MB' }])])],
});
