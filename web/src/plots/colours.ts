// One colour for one name, over the whole report: a reader learns "local batch 128 is orange" or "forward is
// blue" once. Names that never meet in one drawing may share one. Colours are CSS variables, so that light, dark and print need no redraw.

import type { Report, Series } from '../data/report';
import { isBest } from './marks';

/// Phases of a step have fixed colours: computing is cold (blue, green), waiting and moving is warm, the rest grey.
/// Any other name takes the next free one of the palette.
const phases: Record<string, string> = {
  'compute': '--compute', 'forward': '--forward', 'backward': '--backward', 'update': '--update',
  'copy': '--copy', 'data wait': '--data-wait',
  'communication': '--overlapped', 'exposed': '--transfer', 'exposed transfer': '--transfer',
  'exposed communication': '--transfer', 'overlapped': '--overlapped',
  'exposed wait': '--peer-wait', 'wait for a rank': '--peer-wait', 'waiting for a rank': '--peer-wait',
  'smaller batch': '--forward', 'sharing': '--backward', 'slowest worker': '--peer-wait', 'jitter': '--evaluation', 'other waiting': '--checkpoint',
  'exposed latency': '--overlapped',
  'evaluation': '--evaluation', 'checkpoint': '--checkpoint', 'other': '--other', 'copy, other': '--other',
};

/// Phases whose colour is light: letters on them are dark.
const light = new Set(['--forward', '--data-wait', '--copy', '--evaluation', '--overlapped', '--other']);

/// What a change of a step is about, by the words of its name.
const causes: [RegExp, string][] = [
  [/data/i, '--data-wait'], [/wait/i, '--peer-wait'], [/transfer|gradient|network|communic/i, '--transfer'], [/kernel|comput/i, '--compute'],
  [/update/i, '--update'], [/copy|other/i, '--other'],
];

/// The length of the palette --series-1, --series-2, ... in theme.css.
export const PALETTE = 8;

export const variable = (name: string) => `var(${name})`;

/// A colour for words: a line needs 3:1 against the paper, letters need 4.5:1 (WCAG 1.4.3).
export const readable = (colour: string) => `color-mix(in srgb, ${colour} 75%, var(--ink))`;

/// A line's look: its colour, the place of that in the palette, and how many lines of the plot had it before.
export interface Look { colour: string; slot: number; round: number }

export class Colours {
  private readonly slots = new Map<string, number>();

  /// The colour of the line that holds the best point: the page's answer wears it too.
  readonly best: string;

  /// A name takes the first colour that is free where the report first shows it; dashed lines (ideals, bounds) stay grey.
  constructor(report: Report) {
    let best: string | null = null;
    const add = (series: readonly Series[], isPhases: boolean) => {
      for (const { name, dashed, points } of series) {
        if (dashed || (isPhases && phases[name.toLowerCase()])) continue;
        if (!this.slots.has(name)) this.slots.set(name, free(series.map((other) => this.slots.get(other.name))));
        if (points.some(({ mark }) => isBest(mark))) best ??= name;
      }
    };
    const free = (taken: readonly (number | undefined)[]) => {
      const slots = Array.from({ length: PALETTE }, (_, slot) => slot);
      return slots.find((slot) => !taken.includes(slot)) ?? this.slots.size % PALETTE;
    };
    for (const { blocks } of report.sections) {
      for (const block of blocks) {
        if (block.type === 'figure') for (const { series } of block.views) add(series, false);
        if (block.type === 'plot') add(block.series, block.kind === 'stacked_bar');
      }
    }
    this.best = best === null ? variable('--accent') : variable(`--series-${(this.slots.get(best)! % PALETTE) + 1}`);
  }

  phase(name: string): string {
    return variable(phases[name.toLowerCase()] ?? `--series-${((this.slots.get(name) ?? 0) % PALETTE) + 1}`);
  }

  /// Whether a phase is waiting for another: striped, for beside computing and moving no grey tells it apart.
  isWait(name: string): boolean {
    return phases[name.toLowerCase()] === '--peer-wait';
  }

  /// Of letters on a phase's colour.
  on(name: string): string {
    return light.has(phases[name.toLowerCase()] ?? '') ? 'var(--on-light)' : 'var(--on-dark)';
  }

  /// Of a change of a time: its phase's, as far as its name says one; otherwise warm for longer, green for shorter.
  change(name: string, seconds: number): string {
    const phase = phases[name.toLowerCase()] ?? causes.find(([words]) => words.test(name))?.[1];
    return variable(phase ?? (seconds > 0 ? '--slower' : '--faster'));
  }

  /// How the lines of one plot look. Two lines of a plot differ in colour and sign as long as the palette lasts (with
  /// more names in the report than colours, the later line moves to the next free one), and behind it in their dashes.
  /// Those that are shown at first choose first.
  lines(series: readonly { name: string; dashed: boolean; hidden?: boolean }[]): Look[] {
    const uses: number[] = Array(PALETTE).fill(0);
    const order = series.map((_, k) => k).sort((a, b) => Number(series[a]!.hidden ?? false) - Number(series[b]!.hidden ?? false) || a - b);
    const looks: Look[] = [];
    for (const k of order) looks[k] = look(this, series[k]!);
    return looks;
    function look({ slots }: Colours, { name, dashed }: { name: string; dashed: boolean }): Look {
      if (dashed) return { colour: variable('--ideal'), slot: 0, round: 0 };
      const own = (slots.get(name) ?? 0) % PALETTE;
      let slot = own;
      for (let tries = 1; tries < PALETTE; ++tries) {
        const next = (own + tries) % PALETTE;
        if (uses[next]! < uses[slot]!) slot = next;
      }
      return { colour: variable(`--series-${slot + 1}`), slot, round: uses[slot]!++ };
    }
  }
}
