import { describe, expect, it } from 'vitest';
import { SchemaError } from '../src/data/at';
import { parseData, parseReport } from '../src/data/schema';
import { unpack } from '../src/data/unpack';
import { golden } from './read';

const packed = (report: unknown, values: unknown[] = [], shapes: unknown[] = []) => unpack({ schema: 'paceline-packed-1', shapes, values, report });

describe('The packed data of a page', () => {
  it('is the report that the program writes for other tools, in the same order', () => {
    expect(JSON.stringify(parseData(golden('sample-report-packed.json')))).toBe(JSON.stringify(JSON.parse(golden('sample-report.json'))));
    expect(parseReport(golden('sample-report-packed.json'))).toEqual(parseReport(golden('sample-report.json')));
  });
  it('has texts, runs, selections and shapes', () => {
    expect(packed(['~0', '~~0', 'plain', ['~*', 2, 3, '~0', 1], ['~[', '~1', [2, 0]]], ['shared', [5, 6, 7]])).toEqual(['shared', '~0', 'plain', [2, 2, 2, 'shared'], [7, 5]]);
    expect(JSON.stringify(packed([['~:0', 1], ['~:1', '~0', null]], ['b'], [['a', ['unit', '']], [['first', true], 'x', 'y']])))
      .toBe('[{"a":1,"unit":""},{"first":true,"x":"b","y":null}]');
  });
  it.each([['a value that is not there', ['~7'], []], ['a value that holds itself', ['~0'], [['~0']]], ['a shape that is not there', [['~:3', 1]], []],
    ['a selection of a number', [['~[', 4, [0]]], []], ['an element that is not there', [['~[', [1], [3]]], []]])('with %s says so', (_, report, values) => {
    expect(() => packed(report, values)).toThrow(SchemaError);
    expect(() => packed(report, values)).toThrow(/is spoilt: .* paceline report/);
  });
  it('leaves alone what is not packed', () => {
    expect(unpack({ schema: 'paceline-report-2', title: '~0' })).toEqual({ schema: 'paceline-report-2', title: '~0' });
    expect(unpack(null)).toBeNull();
  });
});
