// The report as data: the TypeScript side of src/report/document.h, and the check at the door.
//
// Fields carry the names of the C++ structs. What comes in is checked once, here; everything after it relies on
// the types. Fields that this page does not know are ignored, so that the program may add some.

export const SCHEMA = 'paceline-report-1';

const formats = [
  'text', 'integer', 'fixed1', 'fixed2', 'fixed3', 'percent1', 'seconds', 'milliseconds', 'bytes', 'rate', 'scientific',
] as const;
const tones = ['plain', 'finding', 'warning'] as const;
const plotKinds = ['line', 'stacked_bar'] as const;

export type Format = (typeof formats)[number];
export type Tone = (typeof tones)[number];

export interface Column { key: string; label: string; unit: string; format: Format }
export interface Cell {
  text: string;
  value: number | null;
  low: number | null;
  high: number | null;
  mark: string;
  note: string;
}
export interface Table {
  type: 'table';
  id: string;
  title: string;
  definition: string;
  columns: Column[];
  rows: Cell[][];
  footnotes: string[];
}
/// x or y null: a figure that is missing; a line has a gap there.
export interface Point { x: number | null; y: number | null; low: number | null; high: number | null; mark: string }
export interface Series { name: string; points: Point[]; dashed: boolean }
export interface Axis { label: string; unit: string; log: boolean }
export interface Plot {
  type: 'plot';
  id: string;
  kind: (typeof plotKinds)[number];
  title: string;
  caption: string;
  x: Axis;
  y: Axis;
  series: Series[];
  categories: string[];
}
export interface Paragraph { type: 'paragraph'; tone: Tone; text: string }
export type Block = Paragraph | Table | Plot;
export interface Section { id: string; title: string; blocks: Block[] }
export interface Fact { name: string; value: string }
export interface Report {
  title: string;
  subtitle: string;
  warnings: string[];
  facts: Fact[];
  sections: Section[];
}

/// What is wrong with a report, where, and what to do: shown to the reader as it stands.
export class SchemaError extends Error {}

const AGAIN = 'Make the report again: paceline report RECORD.. --html FILE.';

/// One value and the way to it, "sections[2].blocks[0].title".
class At {
  constructor(private readonly value: unknown, readonly path: string) {}

  private fail(rule: string): never {
    const is = this.value === undefined ? 'it is missing' : `it is ${JSON.stringify(this.value)?.slice(0, 60)}`;
    throw new SchemaError(`This report cannot be shown: ${this.path} must be ${rule}, but ${is}. ${AGAIN}`);
  }
  get(name: string): At {
    if (typeof this.value !== 'object' || this.value === null || Array.isArray(this.value)) this.fail('an object');
    return new At((this.value as Record<string, unknown>)[name], this.path ? `${this.path}.${name}` : name);
  }
  list<T>(read: (item: At) => T): T[] {
    if (!Array.isArray(this.value)) this.fail('a list');
    return this.value.map((item, i) => read(new At(item, `${this.path}[${i}]`)));
  }
  text(): string {
    return typeof this.value === 'string' ? this.value : this.fail('a text');
  }
  flag(): boolean {
    return typeof this.value === 'boolean' ? this.value : this.fail('true or false');
  }
  number(): number | null {
    if (this.value === null || this.value === undefined) return null;
    return typeof this.value === 'number' && Number.isFinite(this.value) ? this.value : this.fail('a number or null');
  }
  oneOf<T extends string>(names: readonly T[]): T {
    return names.find((name) => name === this.value) ?? this.fail(`one of ${names.join(', ')}`);
  }
}

const column = (at: At): Column => ({
  key: at.get('key').text(), label: at.get('label').text(), unit: at.get('unit').text(),
  format: at.get('format').oneOf(formats),
});

const cell = (at: At): Cell => ({
  text: at.get('text').text(), value: at.get('value').number(),
  low: at.get('low').number(), high: at.get('high').number(),
  mark: at.get('mark').text(), note: at.get('note').text(),
});

function table(at: At): Table {
  const columns = at.get('columns').list(column);
  const rows = at.get('rows').list((row) => {
    const cells = row.list(cell);
    if (cells.length !== columns.length) {
      throw new SchemaError(
        `This report cannot be shown: ${row.path} has ${cells.length} cells for ${columns.length} columns. ${AGAIN}`);
    }
    return cells;
  });
  return {
    type: 'table', id: at.get('id').text(), title: at.get('title').text(), definition: at.get('definition').text(),
    columns, rows, footnotes: at.get('footnotes').list((note) => note.text()),
  };
}

const point = (at: At): Point => ({
  x: at.get('x').number(), y: at.get('y').number(),
  low: at.get('low').number(), high: at.get('high').number(), mark: at.get('mark').text(),
});

const axis = (at: At): Axis => ({
  label: at.get('label').text(), unit: at.get('unit').text(), log: at.get('log').flag(),
});

const plot = (at: At): Plot => ({
  type: 'plot', id: at.get('id').text(), kind: at.get('kind').oneOf(plotKinds), title: at.get('title').text(),
  caption: at.get('caption').text(), x: axis(at.get('x')), y: axis(at.get('y')),
  series: at.get('series').list((one) => ({
    name: one.get('name').text(), points: one.get('points').list(point), dashed: one.get('dashed').flag(),
  })),
  categories: at.get('categories').list((name) => name.text()),
});

const paragraph = (at: At): Paragraph => ({
  type: 'paragraph', tone: at.get('tone').oneOf(tones), text: at.get('text').text(),
});

const blocks = { paragraph, table, plot };

function block(at: At): Block {
  return blocks[at.get('type').oneOf(Object.keys(blocks) as (keyof typeof blocks)[])](at);
}

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
  const schema = at.get('schema').text();
  if (schema !== SCHEMA) {
    throw new SchemaError(
      `This page shows reports of the schema "${SCHEMA}", but its data says "${schema}": ` +
      `page and program are of different versions. ${AGAIN}`);
  }
  return {
    title: at.get('title').text(),
    subtitle: at.get('subtitle').text(),
    warnings: at.get('warnings').list((warning) => warning.text()),
    facts: at.get('facts').list((fact) => ({ name: fact.get('name').text(), value: fact.get('value').text() })),
    sections: at.get('sections').list((section) => ({
      id: section.get('id').text(), title: section.get('title').text(), blocks: section.get('blocks').list(block),
    })),
  };
}
