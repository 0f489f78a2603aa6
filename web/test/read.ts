// The golden report, as the program writes it and as C++ renders it: tests/golden at the root.

import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { largeReport } from '../samples/large.mjs';
import { parseReport, type Plot, type Report, type Table } from '../src/schema';

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
const golden = (name: string) => readFileSync(join(root, 'tests', 'golden', name), 'utf8');

export const goldenJson = golden('sample-report.json');
export const goldenMarkdown = golden('sample-report.md');
export const goldenCsv = golden('sample-scale-weak-time.csv');
export const goldenReport = (): Report => parseReport(goldenJson);
export const bigReport = (): Report => parseReport(JSON.stringify(largeReport()));

const blocks = (report: Report) => report.sections.flatMap((section) => section.blocks);
export function tableOf(report: Report, id: string): Table {
  return blocks(report).find((block): block is Table => block.type === 'table' && block.id === id)!;
}
export function plotOf(report: Report, id: string): Plot {
  return blocks(report).find((block): block is Plot => block.type === 'plot' && block.id === id)!;
}
