// Restores the JSON of a report from the form in which a page carries it: the other side of src/report/pack.h, which
// has the format.

import { SchemaError } from './at';

export const PACKED = 'paceline-packed-1';

type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
type Shape = (string | [name: string, value: Json])[];

const spoilt = (what: string): never => {
  throw new SchemaError(`The packed data of this page is spoilt: ${what}. Make the report again: paceline report RECORD.. --html FILE.`);
};
const number = (mark: string) => Number(mark.slice(2));

class Reader {
  private readonly values: Json[];
  private readonly shapes: Shape[];
  private readonly read = new Map<number, Json>();
  private readonly under = new Set<number>(); // being read: a value that holds itself has no end

  constructor(packed: { values: Json[]; shapes: Json }) {
    this.values = packed.values;
    this.shapes = this.unpack(packed.shapes) as Shape[];
  }

  unpack(value: Json): Json {
    if (typeof value === 'string') return this.text(value);
    if (!Array.isArray(value)) return value;
    const [mark, ...rest] = value;
    if (typeof mark === 'string' && mark.startsWith('~:')) return this.object(number(mark), rest);
    if (mark === '~*') return this.runs(rest);
    if (mark === '~[') {
      const list = this.unpack(rest[0]!);
      const indices = this.unpack(rest[1]!);
      if (!Array.isArray(list) || !Array.isArray(indices)) return spoilt('a selection is of no list');
      return indices.map((i) => list[i as number] ?? spoilt(`a list has no element ${String(i)}`));
    }
    return value.map((item) => this.unpack(item));
  }

  /// The same object for each reference: nothing of a report is changed after it was read.
  private text(text: string): Json {
    if (!text.startsWith('~')) return text;
    if (text.startsWith('~~')) return text.slice(1);
    const at = Number(text.slice(1));
    const known = this.read.get(at);
    if (known !== undefined) return known;
    if (this.under.has(at) || !(at in this.values)) return spoilt(`value ${at} ${this.under.has(at) ? 'holds itself' : 'is missing'}`);
    this.under.add(at);
    const made = this.unpack(this.values[at]!);
    this.under.delete(at);
    this.read.set(at, made);
    return made;
  }

  private object(shape: number, values: Json[]): Json {
    const names = this.shapes[shape] ?? spoilt(`shape ${shape} is missing`);
    let next = 0;
    return Object.fromEntries(names.map((one) => (typeof one === 'string' ? [one, this.unpack(values[next++] ?? null)] : one)));
  }

  private runs(runs: Json[]): Json {
    const list: Json[] = [];
    for (let i = 0; i < runs.length; i += 2) {
      const item = this.unpack(runs[i]!);
      for (let k = runs[i + 1] as number; k > 0; --k) list.push(item);
    }
    return list;
  }
}

/// The value of a parsed JSON; of another one that is not packed, itself.
export function unpack(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || (value as { schema?: unknown }).schema !== PACKED) return value;
  const packed = value as { values: Json[]; shapes: Json; report: Json };
  if (!Array.isArray(packed.values) || !Array.isArray(packed.shapes)) return spoilt('it has no values or no shapes');
  return new Reader(packed).unpack(packed.report);
}
