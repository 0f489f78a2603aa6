// The schema before: paragraphs, tables as lists of rows, plots as lists of points. What it did not know is empty.

import { AGAIN, At, SchemaError } from './at';
import { formats, plotKinds, tones, type Block, type Cell, type Column, type Point, type Series, type Table } from './report';

const column = (at: At): Column => ({
  key: at.get('key').text(), label: at.get('label').text(), unit: at.get('unit').text(),
  format: at.get('format').oneOf(formats), group: '',
});

const cell = (at: At): Cell => ({
  text: at.get('text').text(), value: at.get('value').number(),
  low: at.get('low').number(), high: at.get('high').number(),
  mark: at.get('mark').text(), note: at.get('note').text(),
});

function table(at: At): Table {
  const columns = at.get('columns').list(column);
  const rows = at.get('rows').list((row) => {
    const cells = row.list(cell);
    if (cells.length !== columns.length) {
      throw new SchemaError(
        `This report cannot be shown: ${row.path} has ${cells.length} cells for ${columns.length} columns. ${AGAIN}`);
    }
    return cells;
  });
  return {
    type: 'table', id: at.get('id').text(), title: at.get('title').text(), definition: at.get('definition').text(),
    columns, rows, footnotes: at.get('footnotes').texts(),
  };
}

const point = (at: At): Point => ({
  x: at.get('x').number(), y: at.get('y').number(), low: at.get('low').number(), high: at.get('high').number(),
  mark: at.get('mark').text(), record: '', n: 0,
});

const series = (at: At): Series => ({
  name: at.get('name').text(), points: at.get('points').list(point), dashed: at.get('dashed').flag(), hidden: false,
});

const axis = (at: At) => ({ label: at.get('label').text(), unit: at.get('unit').text(), log: at.get('log').flag() });

function block(at: At): Block {
  switch (at.get('type').oneOf(['paragraph', 'table', 'plot'] as const)) {
    case 'paragraph': return { type: 'paragraph', tone: at.get('tone').oneOf(tones), text: at.get('text').text() };
    case 'table': return table(at);
    case 'plot': return {
      type: 'plot', id: at.get('id').text(), kind: at.get('kind').oneOf(plotKinds), title: at.get('title').text(),
      caption: at.get('caption').text(), x: axis(at.get('x')), y: axis(at.get('y')),
      series: at.get('series').list(series), categories: at.get('categories').texts(),
    };
  }
}

export const readBlocks = (at: At): Block[] => at.list(block);
