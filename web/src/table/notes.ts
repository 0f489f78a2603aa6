// The notes of a table's cells, each text once, with a letter: a, b, c, ... A tooltip alone would be lost on
// paper, on a phone and for a screen reader.

import type { Cell } from '../data/report';

/// 0 -> a, 25 -> z, 26 -> aa.
const letters = (i: number): string => (i >= 26 ? letters(Math.floor(i / 26) - 1) : '') + String.fromCharCode(97 + (i % 26));

export class Notes {
  private readonly byText = new Map<string, string>();

  constructor(rows: readonly Cell[][]) {
    for (const { note } of rows.flat()) {
      if (note !== '' && !this.byText.has(note)) this.byText.set(note, letters(this.byText.size));
    }
  }

  letterOf({ note }: Cell): string {
    return this.byText.get(note) ?? '';
  }

  get list(): { letter: string; text: string }[] {
    return [...this.byText].map(([text, letter]) => ({ letter, text }));
  }
}
