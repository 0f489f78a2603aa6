// The order of a table's rows: up, down, and back to the order of the report.

import type { Cell } from '../data/report';

export interface Order { column: number; direction: 'ascending' | 'descending' }

export function nextOrder(order: Order | null, column: number): Order | null {
  if (order?.column !== column) return { column, direction: 'ascending' };
  return order.direction === 'ascending' ? { column, direction: 'descending' } : null;
}

const collator = new Intl.Collator('en', { numeric: true });

function compare(a: Cell, b: Cell): number {
  if (a.value !== null && b.value !== null) return a.value - b.value;
  return collator.compare(a.text, b.text);
}

/// Figures before texts and missing ones, whichever the direction. Equal rows keep the report's order.
export function sortRows<R extends { cells: Cell[] }>(rows: readonly R[], order: Order | null): R[] {
  if (order === null) return [...rows];
  const sign = order.direction === 'ascending' ? 1 : -1;
  return [...rows].sort((one, other) => {
    const a = one.cells[order.column]!;
    const b = other.cells[order.column]!;
    if ((a.value === null) !== (b.value === null)) return a.value === null ? 1 : -1;
    return sign * compare(a, b);
  });
}
