import { describe, expect, it } from 'vitest';
import { parseReport } from '../src/data/schema';
import { renderPage } from '../src/page/page';
import { golden } from './read';

const json = (expectations: unknown) => JSON.stringify({ ...JSON.parse(golden('sample-report.json')), expectations });
const one = { text: 'efficiency >= 0.9', verdict: 'fail', figure: '87.1 % [85.8, 88.4]', mark: 'disturbed', why: 'It is at least this.', value: 0.871, low: 0.858, high: 0.884 };

describe('What the user expected', () => {
  it('stands above the answers, a line each, with verdict, figure, mark and reason in words', () => {
    const verdicts = ['pass', 'fail', 'not_decided', 'not_measured'];
    const page = renderPage(parseReport(json(verdicts.map((verdict) => ({ ...one, verdict })))), '');
    const lines = [...page.querySelectorAll('.expectations li')];
    expect(lines.map(({ className }) => className)).toEqual(verdicts);
    expect(lines.map((line) => line.querySelector('.chip')!.textContent)).toEqual(['✓pass', '✗fail', '?not decided', '–not measured']);
    expect(lines[1]!.textContent).toBe('✗failefficiency >= 0.987.1 % [85.8, 88.4]~ disturbedIt is at least this.');
    expect(page.querySelector('.expectations')!.compareDocumentPosition(page.querySelector('.best')!)).toBe(Node.DOCUMENT_POSITION_FOLLOWING);
  });
  it('is not there where nothing was expected', () => {
    expect(renderPage(parseReport(json(undefined)), '').querySelector('.expectations')).toBeNull();
  });
  it('of an unknown verdict is refused with its place', () => {
    expect(() => parseReport(json([{ ...one, verdict: 'perhaps' }]))).toThrow('expectations[0].verdict must be one of pass, fail');
  });
});
