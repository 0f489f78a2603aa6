// Reports to test with: the golden one of the program in today's schema and in the one before (tests/golden at the
// root), and the samples.

import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { sample } from '../build/sample-data.mjs';
import { Colours } from '../src/plots/colours';
import type { Context } from '../src/plots/figure';
import { Later } from '../src/later';
import { Links } from '../src/plots/links';
import { Sized } from '../src/plots/sized';
import { Tip } from '../src/plots/tip';
import { parseReport } from '../src/data/schema';
import type { Block, Plot, Report, Table } from '../src/data/report';

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
export const golden = (name: string) => readFileSync(join(root, 'tests', 'golden', name), 'utf8');

export const oldJson = golden('sample-report-1.json');
export const oldReport = (): Report => parseReport(oldJson);
export const programReport = (): Report => parseReport(golden('sample-report.json'));
export const reportOf = (name: string): Report => parseReport(sample(name));
export const study = (): Report => reportOf('study');

export const blocksOf = (report: Report): Block[] => report.sections.flatMap((section) => section.blocks);
export function blockOf<T extends Block['type']>(report: Report, type: T, id: string): Extract<Block, { type: T }> {
  return blocksOf(report).find((block): block is Extract<Block, { type: T }> => block.type === type && 'id' in block && block.id === id)!;
}
export const tableOf = (report: Report, id: string): Table => blockOf(report, 'table', id);
export const plotOf = (report: Report, id: string): Plot => blockOf(report, 'plot', id);

export function contextOf(report: Report): Context {
  const later = new Later();
  return { colours: new Colours(report), tip: new Tip(), links: new Links(), later, sized: new Sized(later) };
}
