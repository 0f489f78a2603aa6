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

  /// Colours for the lines of one plot. Two lines of a plot differ as long as the palette lasts: with more names in
  /// the report than colours, the later line moves to the next free one.
  lines(series: readonly { name: string; dashed: boolean }[]): string[] {
    const taken = new Set<number>();
    return series.map(({ name, dashed }) => {
      if (dashed) return variable('--ideal');
      let slot = (this.slots.get(name) ?? 0) % PALETTE;
      for (let tries = 0; tries < PALETTE && taken.has(slot); ++tries) slot = (slot + 1) % PALETTE;
      taken.add(slot);
      return variable(`--series-${slot + 1}`);
    });
  }
}
