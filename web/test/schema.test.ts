import { describe, expect, it } from 'vitest';
import { sample } from '../build/sample-data.mjs';
import { parseReport, SchemaError } from '../src/data/schema';
import { blockOf, blocksOf, oldJson, oldReport, reportOf, study, tableOf } from './read';

function broken(change: (report: any) => void, json = sample('study')): string {
  const report = JSON.parse(json);
  change(report);
  try {
    parseReport(JSON.stringify(report));
  } catch (error) {
    expect(error).toBeInstanceOf(SchemaError);
    return (error as Error).message;
  }
  return 'no error';
}
const blockIn = (report: any, id: string) => report.sections.flatMap((section: any) => section.blocks).find((block: any) => block.id === id);

describe('A report', () => {
  it.each(['study', 'long', 'interrupted', 'compared', 'golden'])('%s is read whole', (name) => {
    const raw = JSON.parse(sample(name));
    const report = reportOf(name);
    expect(report.sections.map(({ id }) => id)).toEqual(raw.sections.map((section: any) => section.id));
    expect(blocksOf(report)).toHaveLength(raw.sections.flatMap((section: any) => section.blocks).length);
  });
  it('puts points together from a list a field; a list that is left out is empty', () => {
    const { series } = blockOf(study(), 'figure', 'hero').views[0]!;
    expect(series[0]!.points[1]).toEqual({ x: 64, y: 8557, low: 8409, high: 8624, mark: 'best', record: 'scale-w2-g64', n: 15 });
    expect(series[4]!.points[0]).toEqual({ x: 64, y: 9126, low: null, high: null, mark: '', record: '', n: 0 });
    expect(series.map(({ hidden }) => hidden)).toEqual([false, false, false, true, false]);
  });
  it('puts rows together from columns', () => {
    const { rows, columns } = tableOf(study(), 'cells');
    expect([rows.length, columns.length]).toEqual([20, 18]);
    expect(rows[0]![2]).toEqual({ text: '', value: 4069, low: 3724, high: 4261, mark: '', note: '' });
    expect(rows[0]![9]).toEqual({ text: '-', value: null, low: null, high: null, mark: '', note: 'one worker waits for nobody' });
  });
  it('may have fields that this page does not know', () => {
    expect(broken((report) => { report.later = 1; report.sections[0].later = {}; })).toBe('no error');
  });
  it('of another schema is refused with all names', () => {
    const text = broken((report) => { report.schema = 'paceline-report-3'; });
    for (const name of ['1', '2', '3']) expect(text).toContain(`"paceline-report-${name}"`);
  });
  it('with a wrong enum says where and what is allowed', () => {
    expect(broken((report) => { report.sections[0].blocks[0].certainty = 'sure'; }))
      .toContain('sections[0].blocks[0].certainty must be one of decided, tie, not_decided, careful, not_measured, but it is "sure"');
    expect(broken((report) => { report.sections[0].blocks[0].type = 'video'; })).toContain('paragraph, table, plot, answer, next, figure, waterfall, timeline, comparison, strip');
  });
  it('with a missing field names it', () => {
    expect(broken((report) => { delete report.facts[0].value; })).toContain('facts[0].value must be a text, but it is missing');
    expect(broken((report) => { delete blockIn(report, 'why').from.seconds; })).toContain('from.seconds must be a number, but it is missing');
  });
  it('with lists of several lengths is refused', () => {
    expect(broken((report) => { blockIn(report, 'cells').columns[2].value.pop(); })).toContain('columns[2].value must be a list of 20');
    expect(broken((report) => { blockIn(report, 'hero').views[0].series[0].y.pop(); })).toContain('series[0].y must be a list of 6');
    expect(broken((report) => { blockIn(report, 'steps').spans.lane[3] = 9; })).toContain('spans.lane[3] must be less than 4, the lanes, but it is 9');
  });
  it('that is empty or no JSON is said as such', () => {
    expect(() => parseReport(' ')).toThrow(/holds no report/);
    expect(() => parseReport('{"schema":')).toThrow(/is not JSON/);
    expect(() => parseReport('null')).toThrow(SchemaError);
  });
});

describe('A report of the schema before', () => {
  it('is read whole, and what it did not know is empty', () => {
    const report = oldReport();
    expect(report.sections.map(({ id }) => id)).toEqual(JSON.parse(oldJson).sections.map((section: any) => section.id));
    expect([report.circumstances, report.trust, report.sections.some(({ folded }) => folded)]).toEqual([[], '', false]);
    expect(blockOf(report, 'plot', 'weak-speedup').series[1]!.points[0]).toMatchObject({ x: 1, y: 1, record: '', n: 0 });
    expect(tableOf(report, 'scale-weak-time').columns[0]).toEqual({ key: 'local_batch', label: 'local batch', unit: '', format: 'integer', group: '' });
  });
  it('with a row of another length than its head is refused', () => {
    expect(broken((report) => { report.sections[1].blocks[0].rows[2].pop(); }, oldJson)).toContain('sections[1].blocks[0].rows[2] has 8 cells for 9 columns');
  });
});
