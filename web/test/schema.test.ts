import { describe, expect, it } from 'vitest';
import { parseReport, SchemaError } from '../src/schema';
import { bigReport, goldenJson, goldenReport } from './read';

function broken(change: (report: any) => void): string {
  const report = JSON.parse(goldenJson);
  change(report);
  try {
    parseReport(JSON.stringify(report));
  } catch (error) {
    expect(error).toBeInstanceOf(SchemaError);
    return (error as Error).message;
  }
  return 'no error';
}

describe('A report', () => {
  it('of the program and a large one are read whole', () => {
    expect(goldenReport().sections.map(({ id }) => id)).toEqual(JSON.parse(goldenJson).sections.map((s: any) => s.id));
    expect(bigReport().sections).toHaveLength(6);
  });
  it('may have fields that this page does not know', () => {
    expect(broken((report) => { report.later = 1; report.sections[0].later = {}; })).toBe('no error');
  });
  it('of another schema is refused with both names', () => {
    const text = broken((report) => { report.schema = 'paceline-report-2'; });
    expect(text).toContain('"paceline-report-1"');
    expect(text).toContain('"paceline-report-2"');
  });
  it('with a wrong enum says where and what is allowed', () => {
    expect(broken((report) => { report.sections[0].blocks[0].tone = 'loud'; }))
      .toContain('sections[0].blocks[0].tone must be one of plain, finding, warning, but it is "loud"');
    expect(broken((report) => { report.sections[0].blocks[0].type = 'video'; })).toContain('paragraph, table, plot');
  });
  it('with a missing field names it', () => {
    expect(broken((report) => { delete report.facts[0].value; })).toContain('facts[0].value must be a text, but it is missing');
  });
  it('with a row of another length than its head is refused', () => {
    expect(broken((report) => { report.sections[1].blocks[0].rows[2].pop(); })).toContain('sections[1].blocks[0].rows[2] has 8 cells for 9 columns');
  });
  it('that is empty or no JSON is said as such', () => {
    expect(() => parseReport(' ')).toThrow(/holds no report/);
    expect(() => parseReport('{"schema":')).toThrow(/is not JSON/);
    expect(() => parseReport('null')).toThrow(SchemaError);
  });
});
