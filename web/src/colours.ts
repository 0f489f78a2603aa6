// One colour for one name, over the whole report: a reader learns "local batch 128 is orange" or "forward is
// blue" once. Colours are CSS variables, so that light, dark and print need no redraw.

import type { Report } from './schema';

/// Phases of a step have fixed colours: computing is cold (blue, green), waiting and moving is warm, the rest grey.
/// Any other name takes the next free one of the palette.
const phases: Record<string, string> = {
  'compute': '--compute', 'forward': '--forward', 'backward': '--backward', 'update': '--update',
  'copy': '--copy', 'data wait': '--data-wait',
  'communication': '--transfer', 'exposed': '--transfer', 'exposed transfer': '--transfer',
  'exposed communication': '--transfer', 'overlapped': '--overlapped',
  'exposed wait': '--peer-wait', 'wait for a rank': '--peer-wait', 'waiting for a rank': '--peer-wait',
  'evaluation': '--evaluation', 'checkpoint': '--checkpoint', 'other': '--other', 'copy, other': '--other',
};

/// The length of the palette --series-1, --series-2, ... in theme.css.
export const PALETTE = 8;

export const variable = (name: string) => `var(${name})`;

/// A colour for words: a line needs 3:1 against the paper, letters need 4.5:1 (WCAG 1.4.3).
export const readable = (colour: string) => `color-mix(in srgb, ${colour} 75%, var(--ink))`;

/// A line's look: its colour, the place of that in the palette, and how many lines of the plot had it before.
export interface Look { colour: string; slot: number; round: number }

export class Colours {
  private readonly slots = new Map<string, number>();

  /// Names are numbered in the order in which the report shows them; dashed lines (ideals, bounds) stay grey.
  constructor(report: Report) {
    for (const { blocks } of report.sections) {
      for (const block of blocks) {
        if (block.type !== 'plot') continue;
        for (const { name, dashed } of block.series) {
          if (dashed || (block.kind === 'stacked_bar' && phases[name.toLowerCase()])) continue;
          if (!this.slots.has(name)) this.slots.set(name, this.slots.size);
        }
      }
    }
  }

  phase(name: string): string {
    return variable(phases[name.toLowerCase()] ?? `--series-${((this.slots.get(name) ?? 0) % PALETTE) + 1}`);
  }

  /// How the lines of one plot look. Two lines of a plot differ in colour and sign as long as the palette lasts (with
  /// more names in the report than colours, the later line moves to the next free one), and behind it in their dashes.
  lines(series: readonly { name: string; dashed: boolean }[]): Look[] {
    const uses: number[] = Array(PALETTE).fill(0);
    return series.map(({ name, dashed }) => {
      if (dashed) return { colour: variable('--ideal'), slot: 0, round: 0 };
      const own = (this.slots.get(name) ?? 0) % PALETTE;
      let slot = own;
      for (let tries = 1; tries < PALETTE; ++tries) {
        const next = (own + tries) % PALETTE;
        if (uses[next]! < uses[slot]!) slot = next;
      }
      return { colour: variable(`--series-${slot + 1}`), slot, round: uses[slot]!++ };
    });
  }
}
