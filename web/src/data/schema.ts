// Reads a report out of JSON: the TypeScript side of to_json (src/report/document.h). What comes in is checked once,
// here; everything after it relies on the types. Fields that this page does not know are ignored, so that the
// program may add some.

import { AGAIN, At, SchemaError } from './at';
import type { ClosedForm } from './closed-form';
import {
  certainties, formats, plotKinds, tones, verdicts, words,
  type Answer, type Axis, type Bars, type Block, type Cell, type Comparison, type Expectation, type Figure, type Gallery, type Heatmap, type Next, type Paragraph, type Plot, type Point,
  type Report, type Section, type Series, type Strip, type Table, type Timeline, type View, type Waterfall,
} from './report';
import { readBlocks as readBlocks1 } from './schema-1';

/// As the program writes it, for tests.
export const readClosedForm = (value: unknown): ClosedForm => closedForm(new At(value, 'form'));

export { SchemaError } from './at';

export const SCHEMAS = ['paceline-report-2', 'paceline-report-1'] as const;

const axis = (at: At): Axis => ({
  label: at.get('label').text(), unit: at.get('unit').text(), log: at.get('log').flag(),
});

const paragraph = (at: At): Paragraph => ({
  type: 'paragraph', tone: at.get('tone').oneOf(tones), text: at.get('text').text(),
});

/// A list a field becomes a list of points.
function series(at: At): Series {
  const x = at.get('x').numbers();
  const y = at.get('y').numbersOr(x.length);
  const low = at.get('low').numbersOr(x.length);
  const high = at.get('high').numbersOr(x.length);
  const mark = at.get('mark').textsOr(x.length);
  const record = at.get('record').textsOr(x.length);
  const n = at.get('n').countsOr(x.length);
  return {
    name: at.get('name').text(), dashed: at.get('dashed').flag(), hidden: at.get('hidden').flag(),
    points: x.map((value, i): Point =>
      ({ x: value, y: y[i]!, low: low[i]!, high: high[i]!, mark: mark[i]!, record: record[i]!, n: n[i]! })),
  };
}

function table(at: At): Table {
  const length = at.get('rows').count();
  const columns = at.get('columns').list((one) => ({
    column: {
      key: one.get('key').text(), label: one.get('label').text(), unit: one.get('unit').text(),
      format: one.get('format').oneOf(formats), group: one.get('group').text(),
    },
    text: one.get('text').textsOr(length), mark: one.get('mark').textsOr(length), note: one.get('note').textsOr(length),
    value: one.get('value').numbersOr(length), low: one.get('low').numbersOr(length), high: one.get('high').numbersOr(length),
  }));
  return {
    type: 'table', id: at.get('id').text(), title: at.get('title').text(), definition: at.get('definition').text(),
    footnotes: at.get('footnotes').texts(), columns: columns.map(({ column }) => column),
    rows: Array.from({ length }, (_, i) => columns.map((one): Cell => ({
      text: one.text[i]!, value: one.value[i]!, low: one.low[i]!, high: one.high[i]!, mark: one.mark[i]!, note: one.note[i]!,
    }))),
  };
}

const plot = (at: At): Plot => ({
  type: 'plot', id: at.get('id').text(), kind: at.get('kind').oneOf(plotKinds), title: at.get('title').text(),
  caption: at.get('caption').text(), x: axis(at.get('x')), y: axis(at.get('y')),
  series: at.get('series').list(series), categories: at.get('categories').texts(),
});

const answer = (at: At): Answer => ({
  type: 'answer', id: at.get('id').text(), question: at.get('question').text(), certainty: at.get('certainty').oneOf(certainties),
  chip: at.get('chip').text(), figure: at.get('figure').text(), unit: at.get('unit').text(), sentence: at.get('sentence').text(),
  value: at.get('value').number(), low: at.get('low').number(), high: at.get('high').number(), n: at.get('n').count(),
  evidence: at.get('evidence').text(), records: at.get('records').texts(), command: at.get('command').text(),
  bars: at.get('bars').isThere ? bars(at.get('bars')) : null,
});
const bars = (at: At): Bars => ({ title: at.get('title').text(), values: at.get('values').numbers(), chosen: at.get('chosen').count() });

const next = (at: At): Next => ({
  type: 'next', not_answered: at.get('not_answered').texts(),
  steps: at.get('steps').list((step) => ({
    title: step.get('title').text(), why: step.get('why').text(), command: step.get('command').text(), seconds: step.get('seconds').number(),
  })),
});

/// What every drawing says beside itself.
const said = (at: At) => ({ id: at.get('id').text(), finding: at.get('finding').text(), note: at.get('note').text() });

const view = (at: At): View => ({
  name: at.get('name').text(), x: axis(at.get('x')), y: axis(at.get('y')), series: at.get('series').list(series),
  finding: at.get('finding').isThere ? at.get('finding').text() : '', note: at.get('note').isThere ? at.get('note').text() : '',
  marks: at.get('marks').list((mark) => ({
    axis: mark.get('axis').oneOf(['x', 'y'] as const), low: mark.get('low').figure(), high: mark.get('high').number(), label: mark.get('label').text(),
  })),
});

const figuresOf = (at: At) => at.list((one) => one.figure());

function closedForm(at: At): ClosedForm {
  const ready = figuresOf(at.get('ready'));
  const workers = at.get('workers').list((one) => ({
    workers: one.get('workers').count(), largest: figuresOf(one.get('largest')), latency: figuresOf(one.get('latency')), moving: figuresOf(one.get('moving')),
  }));
  const listOf = (one: At) => { const list = figuresOf(one); return list.length === workers.length ? list : one.fail(`a list of ${workers.length}, the numbers of workers`); };
  return {
    backwardPart: at.get('backward_part').figure(), ready, workers,
    batches: at.get('batches').list((one) => ({
      batch: one.get('batch').figure(), missed: one.get('missed').figure(), loader: one.get('loader').figure(),
      compute: listOf(one.get('compute')), work: listOf(one.get('work')), dataWait: listOf(one.get('data_wait')), queue: listOf(one.get('queue')),
    })),
  };
}

const figure = (at: At): Figure => ({
  type: 'figure', ...said(at), views: at.get('views').list(view), ...(at.get('recomputed').isThere && { recomputed: closedForm(at.get('recomputed')) }),
});

const time = (at: At) => ({ name: at.get('name').text(), seconds: at.get('seconds').figure() });

/// Intervals and bars came later: a report without them is drawn as it was.
function waterfall(at: At): Waterfall {
  const changes = at.get('changes').list((change) => ({
    ...time(change), hint: change.get('hint').text(), low: change.get('low').number(), high: change.get('high').number(),
    noise: change.get('noise').isThere && change.get('noise').flag(),
  }));
  const bar = (one: At) => ({ ...time(one), parts: one.get('parts').listOr(changes.length, 0, (part) => part.figure()) });
  return {
    type: 'waterfall', ...said(at), from: time(at.get('from')), to: time(at.get('to')), changes,
    bars: at.get('bars').isThere ? at.get('bars').list(bar) : [],
  };
}

function timeline(at: At): Timeline {
  const lanes = at.get('lanes').texts();
  const phases = at.get('phases').texts();
  const spans = at.get('spans');
  const lane = spans.get('lane').list((item) => (item.count() < lanes.length ? item.count() : item.fail(`less than ${lanes.length}, the lanes`)));
  const phase = spans.get('phase').listOr(lane.length, 0, (item) => (item.count() < phases.length ? item.count() : item.fail(`less than ${phases.length}, the phases`)));
  const begin = spans.get('begin').figuresOr(lane.length);
  const end = spans.get('end').figuresOr(lane.length);
  return {
    type: 'timeline', ...said(at), lanes, phases,
    spans: lane.map((one, i) => ({ lane: one, phase: phase[i]!, begin: begin[i]!, end: end[i]! })),
  };
}

const comparison = (at: At): Comparison => ({
  type: 'comparison', ...said(at), name_of_ratio: at.get('name_of_ratio').text(),
  rows: at.get('rows').list((row) => ({
    name: row.get('name').text(), word: row.get('word').oneOf(words), ratio: row.get('ratio').number(),
    low: row.get('low').number(), high: row.get('high').number(),
    before: row.get('before').text(), after: row.get('after').text(), why: row.get('why').text(), mark: row.get('mark').isThere ? row.get('mark').text() : '',
  })),
});

const expectation = (at: At): Expectation => ({
  text: at.get('text').text(), verdict: at.get('verdict').oneOf(verdicts), figure: at.get('figure').text(), mark: at.get('mark').text(),
  why: at.get('why').text(), value: at.get('value').number(), low: at.get('low').number(), high: at.get('high').number(),
});

const strip = (at: At): Strip => ({
  type: 'strip', ...said(at),
  windows: at.get('windows').list((window) => {
    const low = window.get('low').list((one) => one.figure());
    return {
      name: window.get('name').text(), record: window.get('record').text(), mark: window.get('mark').text(), begin: window.get('begin').figure(),
      seconds: window.get('seconds').figure(), typical: window.get('typical').figure(), others: window.get('others').number(),
      low, middle: window.get('middle').figuresOr(low.length), high: window.get('high').figuresOr(low.length),
    };
  }),
});

function heatmap(at: At): Heatmap {
  const rows = at.get('rows').texts();
  const columns = at.get('columns').texts();
  const size = rows.length * columns.length;
  const cells = at.get('cells');
  const what = at.get('value');
  const [value, low, high] = [cells.get('value').numbersOr(size), cells.get('low').numbersOr(size), cells.get('high').numbersOr(size)];
  const [mark, note] = [cells.get('mark').textsOr(size), cells.get('note').textsOr(size)];
  return {
    type: 'heatmap', ...said(at), row_label: at.get('row_label').text(), column_label: at.get('column_label').text(), rows, columns, confusion: at.get('confusion').flag(),
    value: { key: 'value', label: what.get('label').text(), unit: what.get('unit').text(), format: what.get('format').oneOf(formats), group: '' },
    cells: value.map((one, i): Cell => ({ text: '-', value: one, low: low[i]!, high: high[i]!, mark: mark[i]!, note: note[i]! })),
  };
}

function gallery(at: At): Gallery {
  const rows = table(at.get('table'));
  return { type: 'gallery', table: rows, pictures: at.get('pictures').textsOr(rows.rows.length) };
}

const blocks = { paragraph, table, plot, answer, next, figure, waterfall, timeline, comparison, strip, heatmap, gallery };

function block(at: At): Block {
  return blocks[at.get('type').oneOf(Object.keys(blocks) as (keyof typeof blocks)[])](at);
}

const section2 = (at: At): Section => ({
  id: at.get('id').text(), title: at.get('title').text(), folded: at.get('folded').flag(), blocks: at.get('blocks').list(block),
});
const section1 = (at: At): Section => ({
  id: at.get('id').text(), title: at.get('title').text(), folded: false, blocks: readBlocks1(at.get('blocks')),
});

/// Reads a report out of JSON text. Errors: SchemaError, a sentence with the place, the rule and the next step.
export function parseReport(json: string): Report {
  if (json.trim() === '') {
    throw new SchemaError('This page holds no report: it is the empty page that the program fills. ' + AGAIN);
  }
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (error) {
    throw new SchemaError(`The data of this page is not JSON (${(error as Error).message}). ${AGAIN}`);
  }
  const at = new At(value, '');
  const named = at.get('schema').text();
  const schema = SCHEMAS.find((one) => one === named);
  if (schema === undefined) {
    throw new SchemaError(
      `This page shows reports of the schemas "${SCHEMAS.join('" and "')}", but its data says "${named}": ` +
      `page and program are of different versions. ${AGAIN}`);
  }
  const isOld = schema === 'paceline-report-1';
  return {
    title: at.get('title').text(),
    subtitle: at.get('subtitle').text(),
    circumstances: isOld ? [] : at.get('circumstances').texts(),
    trust: isOld ? '' : at.get('trust').text(),
    warnings: at.get('warnings').texts(),
    expectations: at.get('expectations').isThere ? at.get('expectations').list(expectation) : [],
    facts: at.get('facts').list((fact) => ({ name: fact.get('name').text(), value: fact.get('value').text() })),
    sections: at.get('sections').list(isOld ? section1 : section2),
  };
}
