// A report as the page uses it: the structs of src/report/document.h, rows and points put together again.

import type { ClosedForm } from './closed-form';

export const formats = [
  'text', 'integer', 'fixed1', 'fixed2', 'fixed3', 'percent1', 'seconds', 'milliseconds', 'bytes', 'rate', 'scientific',
] as const;
export const tones = ['plain', 'finding', 'warning'] as const;
export const plotKinds = ['line', 'stacked_bar'] as const;
export const certainties = ['decided', 'tie', 'not_decided', 'careful', 'not_measured'] as const;
export const words = ['improved', 'regressed', 'no_change', 'within_noise', 'not_decided', 'not_compared'] as const;

export type Format = (typeof formats)[number];
export type Tone = (typeof tones)[number];
export type Certainty = (typeof certainties)[number];
export type Word = (typeof words)[number];

/// Columns of one `group` are shown and hidden together; those of the group '' always stand.
export interface Column { key: string; label: string; unit: string; format: Format; group: string }
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
/// x or y null: a figure that is missing; a line has a gap there. n = 0: the samples are not said.
export interface Point {
  x: number | null;
  y: number | null;
  low: number | null;
  high: number | null;
  mark: string;
  record: string;
  n: number;
}
export interface Series { name: string; points: Point[]; dashed: boolean; hidden: boolean }
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
export interface Answer {
  type: 'answer';
  id: string;
  question: string;
  certainty: Certainty;
  chip: string;
  figure: string;
  unit: string;
  sentence: string;
  value: number | null;
  low: number | null;
  high: number | null;
  n: number;
  evidence: string;
  records: string[];
  command: string;
  bars: Bars | null;
}
/// images/s of the candidates of a choice, and which was chosen.
export interface Bars { title: string; values: (number | null)[]; chosen: number }
export interface Step { title: string; why: string; command: string; seconds: number | null }
export interface Next { type: 'next'; steps: Step[]; not_answered: string[] }
/// axis 'y': a level, or a band up to `high`; axis 'x': hatched from `low` on.
export interface Mark { axis: 'x' | 'y'; low: number; high: number | null; label: string }
/// finding and note: of this view, where they are not the figure's; else ''.
export interface View { name: string; x: Axis; y: Axis; series: Series[]; marks: Mark[]; finding: string; note: string }
/// `recomputed`: the reader may compute it again.
export interface Figure { type: 'figure'; id: string; finding: string; note: string; views: View[]; recomputed?: ClosedForm }
/// `noise`: the interval from `low` to `high` holds 0.
export interface Change { name: string; seconds: number; hint: string; low: number | null; high: number | null; noise: boolean }
/// The changes of another number of workers, as parts of its step; what is left of 1 is its efficiency.
export interface LossBar { name: string; seconds: number; parts: number[] }
export interface Waterfall {
  type: 'waterfall';
  id: string;
  finding: string;
  note: string;
  from: { name: string; seconds: number };
  to: { name: string; seconds: number };
  changes: Change[];
  bars: LossBar[];
}
export interface Span { lane: number; phase: number; begin: number; end: number }
export interface Timeline { type: 'timeline'; id: string; finding: string; note: string; lanes: string[]; phases: string[]; spans: Span[] }
export interface Pair {
  name: string;
  word: Word;
  ratio: number | null;
  low: number | null;
  high: number | null;
  before: string;
  after: string;
  why: string;
  mark: string;
}
export interface Comparison { type: 'comparison'; id: string; finding: string; note: string; name_of_ratio: string; rows: Pair[] }
/// The steps of a measured window in groups: fastest, median and slowest of each over `typical`, the median step of the
/// configuration. `others`: cores that other programs kept busy; null: not known.
export interface Window {
  name: string; record: string; mark: string; begin: number; seconds: number; typical: number; others: number | null;
  low: number[]; middle: number[]; high: number[];
}
export interface Strip { type: 'strip'; id: string; finding: string; note: string; windows: Window[] }

/// Cells row by row. `confusion`: counts of classes taken for classes, right where both names are equal.
export interface Heatmap {
  type: 'heatmap';
  id: string;
  finding: string;
  note: string;
  row_label: string;
  column_label: string;
  value: Column;
  rows: string[];
  columns: string[];
  confusion: boolean;
  cells: Cell[];
}
/// A picture (JPEG in base64, or '') for each row.
export interface Gallery { type: 'gallery'; table: Table; pictures: string[] }

export type Block = Paragraph | Table | Plot | Answer | Next | Figure | Waterfall | Timeline | Comparison | Strip | Heatmap | Gallery;
export interface Section { id: string; title: string; folded: boolean; blocks: Block[] }
export interface Fact { name: string; value: string }
export const verdicts = ['pass', 'fail', 'not_decided', 'not_measured'] as const;
export type Verdict = (typeof verdicts)[number];
export interface Expectation {
  text: string;
  verdict: Verdict;
  figure: string;
  mark: string;
  why: string;
  value: number | null;
  low: number | null;
  high: number | null;
}
export interface Report {
  title: string;
  subtitle: string;
  circumstances: string[];
  trust: string;
  warnings: string[];
  expectations: Expectation[];
  facts: Fact[];
  sections: Section[];
}
