// What sample documents are made of: the JSON of to_json (src/report/document.h), schema 2, from points and rows.

const isNothing = (value) => value === null || value === undefined || value === '' || value === 0;

/// One field of all things, or nothing where none has it.
function listOf(things, name, get = (thing) => thing[name]) {
  const list = things.map((thing) => get(thing) ?? (name === 'n' ? 0 : name === 'mark' || name === 'record' || name === 'text' || name === 'note' ? '' : null));
  return list.every(isNothing) ? {} : { [name]: list };
}

const round = (value) => (typeof value === 'number' ? Number(value.toPrecision(7)) : value ?? null);

/// points: [{ x, y, low?, high?, mark?, record?, n? }]
export const series = (name, points, { dashed = false, hidden = false } = {}) => ({
  name, dashed, hidden, x: points.map(({ x }) => round(x)), y: points.map(({ y }) => round(y)),
  ...listOf(points, 'low', ({ low }) => round(low)), ...listOf(points, 'high', ({ high }) => round(high)),
  ...listOf(points, 'mark'), ...listOf(points, 'record'), ...listOf(points, 'n'),
});
export const axis = (label, unit = '', log = false) => ({ label, unit, log });
export const view = (name, x, y, lines, marks = []) => ({ name, x, y, series: lines, marks });
export const mark = (kind, low, high, label) => ({ axis: kind, low, high, label });
export const figure = (id, finding, note, views) => ({ type: 'figure', id, finding, note, views });
export const plot = (id, kind, title, caption, x, y, lines, categories = []) => ({ type: 'plot', id, kind, title, caption, x, y, series: lines, categories });
export const paragraph = (tone, text) => ({ type: 'paragraph', tone, text });
export const answer = (id, fields) => ({
  type: 'answer', id, question: '', certainty: 'decided', chip: '', figure: '', unit: '', sentence: '', value: null, low: null, high: null, n: 0,
  evidence: '', records: [], command: '', ...fields,
});
export const section = (id, title, blocks, folded = false) => ({ id, title, folded, blocks });
export const column = (key, label, unit, format, group = '') => ({ key, label, unit, format, group });

/// rows: a list of objects, each with a cell under the column's key: a number, a text, or { value, low, high, mark, note, text }.
export function table(id, title, columns, rows, { definition = '', footnotes = [] } = {}) {
  const cellOf = (row, key) => {
    const cell = row[key];
    if (typeof cell === 'number') return { value: cell };
    return typeof cell === 'string' ? { text: cell } : cell ?? { text: '-' };
  };
  return {
    type: 'table', id, title, definition, footnotes, rows: rows.length,
    columns: columns.map((one) => {
      const cells = rows.map((row) => cellOf(row, one.key));
      const figures = ['value', 'low', 'high'].map((name) => listOf(cells, name, (cell) => round(cell[name])));
      return { ...one, ...Object.assign({}, ...figures), ...listOf(cells, 'text'), ...listOf(cells, 'mark'), ...listOf(cells, 'note') };
    }),
  };
}
export function timeline(id, finding, note, lanes, phases, spans) {
  const list = (name) => spans.map((span) => round(span[name]));
  return { type: 'timeline', id, finding, note, lanes, phases, spans: { lane: list('lane'), phase: list('phase'), begin: list('begin'), end: list('end') } };
}
export const document = (fields) => ({
  schema: 'paceline-report-2', title: '', subtitle: '', circumstances: [], trust: '', warnings: [], facts: [], sections: [], ...fields,
});
