import { describe, expect, it } from 'vitest';
import { csvOfSeries, toCsv } from '../src/data/csv';
import { Later } from '../src/later';
import { Links } from '../src/plots/links';
import { Notes } from '../src/table/notes';
import { nextOrder, sortRows } from '../src/table/sort';
import type { Cell, Table } from '../src/data/report';
import { constantColumns, renderTable as renderWith } from '../src/table/table';
import { blockOf, golden, oldReport, programReport, study, tableOf } from './read';

const renderTable = (table: Table, links = new Links()) => renderWith(table, { links, later: new Later() });
const cell = (value: number | null, text = '', note = ''): Cell => ({ text, value, low: null, high: null, mark: '', note });
const scaling = (): Table => tableOf(oldReport(), 'scale-weak-time');
const firstColumn = (element: HTMLElement) => [...element.querySelectorAll('tbody tr')].map((row) => row.children[3]!.querySelector('.value')!.textContent);

describe('CSV', () => {
  it('is the same as the one that C++ writes', () => expect(toCsv(tableOf(programReport(), 'scale-weak-time'))).toBe(golden('sample-scale-weak-time.csv')));
  it('writes small and large figures as C++ does, with an exponent of two digits', () => {
    const column = { key: 't', label: 't', unit: 's', format: 'seconds' as const, group: '' };
    const values = [5e-5, 0.0001, 1.25e-7, 123456789012, 1e12, -3.5e-10, 0, 0.1 + 0.2];
    const table: Table = { ...scaling(), columns: [column], rows: values.map((value) => [cell(value)]) };
    expect(toCsv(table)).toBe('t [s]\n5e-05\n0.0001\n1.25e-07\n123456789012\n1e+12\n-3.5e-10\n0\n0.3\n');
  });
  it('quotes commas, quotes and line ends', () => {
    const table: Table = { ...scaling(), columns: [{ key: 'a', label: 'a', unit: '', format: 'text', group: '' }], rows: [[cell(null, 'x, "y"\nz')]] };
    expect(toCsv(table)).toBe('a\n"x, ""y""\nz"\n');
  });
});

describe('Sorting', () => {
  const rows = [cell(10), cell(null, '-'), cell(9), cell(100)].map((one) => ({ cells: [one] }));
  const values = (direction: 'ascending' | 'descending') => sortRows(rows, { column: 0, direction }).map(({ cells }) => cells[0]!.value);
  it('is by figures, with the missing ones last both ways', () => {
    expect(values('ascending')).toEqual([9, 10, 100, null]);
    expect(values('descending')).toEqual([100, 10, 9, null]);
  });
  it('goes up, down and back to the report', () => {
    const up = nextOrder(null, 2);
    const down = nextOrder(up, 2);
    expect([up?.direction, down?.direction, nextOrder(down, 2)]).toEqual(['ascending', 'descending', null]);
    expect(nextOrder(down, 1)).toEqual({ column: 1, direction: 'ascending' });
  });
});

describe('A table on the page', () => {
  it('has a caption, a head for every column and a row for every row', () => {
    const element = renderTable(scaling());
    expect(element.querySelector('caption')!.textContent).toContain('Time and efficiency, weak scaling');
    expect(element.querySelectorAll('thead th[scope=col]')).toHaveLength(9);
    expect(element.querySelectorAll('tbody th[scope=row]')).toHaveLength(6);
  });
  it('shows figure, interval and mark', () => {
    const time = renderTable(scaling()).querySelectorAll('tbody tr')[2]!.children[3]!;
    expect(time.querySelector('.value')!.textContent).toBe('912.0');
    expect(time.querySelector('.interval')!.textContent).toBe('880.4–961.1');
    expect(time.querySelector('.mark')!.textContent).toBe('*');
  });
  it('says definition, footnotes and notes in words below it', () => {
    const below = renderTable(scaling()).querySelector('.under')!.textContent!;
    expect(below).toContain('E = t_step(1)/t_step(N)');
    expect(below).toContain('* more worker threads than cores.');
    expect(below).toMatch(/a skipped: the plan needs 9.1\sGB/);
  });
  it('sorts by a click on a head and says so to a screen reader', () => {
    const element = renderTable(scaling());
    const head = element.querySelectorAll('thead th')[3]!;
    head.querySelector('button')!.click();
    expect(head.getAttribute('aria-sort')).toBe('ascending');
    expect(firstColumn(element)).toEqual(['369.0', '444.0', '912.0', '1,353', '1,553', '–']);
    head.querySelector('button')!.click();
    expect(firstColumn(element)[0]).toBe('1,553');
    head.querySelector('button')!.click();
    expect(head.getAttribute('aria-sort')).toBe('none');
  });
  it('says the name of a group once', () => {
    const rows = [...renderTable(scaling()).querySelectorAll('tbody tr')].map((row) => row.className);
    expect(rows).toEqual(['', 'again', 'again', 'group', 'again', 'again']);
  });
});

describe('The table of all cells', () => {
  const cells = () => tableOf(study(), 'cells');
  const heads = (element: HTMLElement) => [...element.querySelectorAll('thead th')].map((head) => head.textContent!.replace(/ \[.*/, ''));
  const press = (element: HTMLElement, text: string) => [...element.querySelectorAll<HTMLElement>('.views button')].find((button) => button.textContent === text)!.click();
  const type = (element: HTMLElement, text: string) => {
    const input = element.querySelector('input')!;
    input.value = text;
    input.dispatchEvent(new Event('input'));
    return [...element.querySelectorAll('tbody tr')].length;
  };
  it('says once what is the same in every row', () => {
    expect(constantColumns(cells()).map((i) => cells().columns[i]!.key)).toEqual(['n', 'warmup', 'closure', 'buckets', 'ready']);
    const element = renderTable(cells());
    expect(element.querySelector('.constant')!.textContent).toBe('In every row: steps 15 · warm-up 2 · closure 100.0 % · buckets 1 · ready 2.00 batches');
    expect(heads(element)).not.toContain('closure');
  });
  it('shows the groups of columns that are switched on', () => {
    const element = renderTable(cells());
    expect(heads(element).slice(0, 5)).toEqual(['way', 'global batch', 'throughput', 'step', 'epoch']);
    expect(heads(element)).not.toContain('busbw');
    press(element, 'network');
    expect(heads(element)).toContain('busbw');
    press(element, 'time');
    expect(heads(element)).not.toContain('step');
    expect(heads(element)[0]).toBe('way');
  });
  it('filters rows by all words, whichever columns are shown', () => {
    const element = renderTable(cells());
    expect(type(element, '2 workers,')).toBe(6);
    expect(element.querySelector('.count')!.textContent).toBe('6 of 20');
    expect(type(element, 'SCALE-W2-G64')).toBe(1);
    expect(type(element, 'nothing like it')).toBe(0);
    expect(type(element, '')).toBe(20);
  });
  it('lights the row of a record, and says which record its own row is', () => {
    const links = new Links();
    const element = renderTable(cells(), links);
    links.light('scale-w2-g64');
    expect(element.querySelector('tr.lit')!.textContent).toContain('8,557');
    links.light('');
    expect(element.querySelector('tr.lit')).toBeNull();
    const lit: string[] = [];
    links.add((record) => lit.push(record));
    element.querySelectorAll('tbody tr')[2]!.dispatchEvent(new Event('pointerenter'));
    expect(lit).toEqual(['sweep-b32']);
  });
  it('is one stop of the Tab key at its heads, whatever it shows', () => {
    const element = renderTable(cells());
    press(element, 'memory');
    expect(element.querySelectorAll('thead button[tabindex="0"]')).toHaveLength(1);
  });
});

it('The points of a figure as CSV: a row each, with record and samples', () => {
  const lines = csvOfSeries(blockOf(study(), 'figure', 'hero').views[0]!).split('\n');
  expect(lines[0]).toBe('series,global batch [images],images/s,low,high,mark,record,n');
  expect(lines).toContain('"2 workers, a core each",64,8557,8409,8624,best,scale-w2-g64,15');
  expect(lines).toContain('twice one core,256,8450,,,,,');
  expect(lines).toHaveLength(1 + 20 + 3 + 1);
});

describe('A column of figures', () => {
  const column = (marks: string[], notes: string[]) => {
    const table: Table = { ...scaling(), columns: [{ key: 'a', label: 'a', unit: '', format: 'text', group: '' }, { key: 'v', label: 'v', unit: '', format: 'fixed1', group: '' }] };
    table.rows = marks.map((mark, i) => [cell(null, `row ${i}`), { ...cell(i), mark, note: notes[i] ?? '' }]);
    return [...renderTable(table).querySelectorAll('tbody td')];
  };
  it('keeps room for a note in every cell when one has it, and for a short mark', () => {
    const cells = column(['*', ''], ['', 'why']);
    expect(cells.map((one) => one.querySelectorAll('sup').length)).toEqual([1, 1]);
    expect(cells.map((one) => one.querySelector('sup')!.textContent)).toEqual(['', 'a']);
    expect(cells.map((one) => one.querySelector('.mark')!.getAttribute('style'))).toEqual(['min-width:0.6em', 'min-width:0.6em']);
  });
  it('has long marks below its figures, where they move none', () => {
    const cells = column(['* emulated', ''], []);
    expect(cells[0]!.querySelector('.mark.below')!.textContent).toBe('* emulated');
    expect(cells[1]!.querySelector('.mark')).toBeNull();
  });
});

it('Notes have one letter a text, after z come two', () => {
  const notes = new Notes([Array.from({ length: 28 }, (_, i) => cell(null, '-', `note ${i % 27}`))]);
  expect(notes.list.map(({ letter }) => letter).slice(24)).toEqual(['y', 'z', 'aa']);
  expect(notes.letterOf(cell(null, '-', 'note 0'))).toBe('a');
  expect(notes.letterOf(cell(1))).toBe('');
});

it('Very many notes fold behind the first, and none is lost', () => {
  const many = { ...scaling(), footnotes: Array.from({ length: 30 }, (_, i) => `note ${i}`) };
  const element = renderTable(many);
  expect(element.querySelectorAll('.notes li')).toHaveLength(32);
  expect(element.querySelector('.under details:not(.definition) summary')!.textContent).toBe('22 more notes');
});

it('A column without a label is named by its key to a screen reader', () => {
  const table = scaling();
  table.columns[8]!.label = '';
  expect(renderTable(table).querySelectorAll('thead th')[8]!.textContent).toBe('epoch_speedup');
});
