// One value of a parsed JSON and the way to it, "sections[2].blocks[0].title": the check at the door.

const isFigure = (item: unknown): item is number => typeof item === 'number' && Number.isFinite(item);
const isNumber = (item: unknown): item is number | null => item === null || isFigure(item);
const isText = (item: unknown): item is string => typeof item === 'string';

/// What is wrong with a report, where, and what to do: shown to the reader as it stands.
export class SchemaError extends Error {}

export const AGAIN = 'Make the report again: paceline report RECORD.. --html FILE.';

export class At {
  constructor(private readonly value: unknown, readonly path: string) {}

  fail(rule: string): never {
    const is = this.value === undefined ? 'it is missing' : `it is ${JSON.stringify(this.value)?.slice(0, 60)}`;
    throw new SchemaError(`This report cannot be shown: ${this.path} must be ${rule}, but ${is}. ${AGAIN}`);
  }
  get(name: string): At {
    if (typeof this.value !== 'object' || this.value === null || Array.isArray(this.value)) this.fail('an object');
    return new At((this.value as Record<string, unknown>)[name], this.path ? `${this.path}.${name}` : name);
  }
  get isThere(): boolean {
    return this.value !== undefined && this.value !== null;
  }
  /// Items for which `isPlain` holds are taken as they stand; only others are worth the way to them: curves are long.
  list<T>(read: (item: At) => T, isPlain: (item: unknown) => item is T = (_): _ is T => false): T[] {
    if (!Array.isArray(this.value)) this.fail('a list');
    return this.value.map((item: unknown, i) => (isPlain(item) ? item : read(new At(item, `${this.path}[${i}]`))));
  }
  /// A list that is left out where it would hold nothing: `length` times `nothing` then.
  listOr<T>(length: number, nothing: T, read: (item: At) => T, isPlain?: (item: unknown) => item is T): T[] {
    if (!this.isThere) return Array<T>(length).fill(nothing);
    const items = this.list(read, isPlain);
    return items.length === length ? items : this.fail(`a list of ${length}`);
  }
  numbers(): (number | null)[] {
    return this.list((item) => item.number(), isNumber);
  }
  numbersOr(length: number): (number | null)[] {
    return this.listOr(length, null, (item) => item.number(), isNumber);
  }
  figuresOr(length: number): number[] {
    return this.listOr(length, 0, (item) => item.figure(), isFigure);
  }
  countsOr(length: number): number[] {
    return this.listOr(length, 0, (item) => item.count());
  }
  textsOr(length: number): string[] {
    return this.listOr(length, '', (item) => item.text(), isText);
  }
  text(): string {
    return typeof this.value === 'string' ? this.value : this.fail('a text');
  }
  texts(): string[] {
    return this.list((item) => item.text(), isText);
  }
  flag(): boolean {
    return typeof this.value === 'boolean' ? this.value : this.fail('true or false');
  }
  number(): number | null {
    if (this.value === null || this.value === undefined) return null;
    return typeof this.value === 'number' && Number.isFinite(this.value) ? this.value : this.fail('a number or null');
  }
  figure(): number {
    return this.number() ?? this.fail('a number');
  }
  count(): number {
    const value = this.figure();
    return Number.isInteger(value) && value >= 0 ? value : this.fail('a whole number from 0 on');
  }
  oneOf<T extends string>(names: readonly T[]): T {
    return names.find((name) => name === this.value) ?? this.fail(`one of ${names.join(', ')}`);
  }
}
