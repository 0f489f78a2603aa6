import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { compute, stepSeconds } from '../src/data/closed-form';
import { readClosedForm } from '../src/data/schema';
import { renderFigure } from '../src/plots/figure';
import type { Figure, Point } from '../src/data/report';
import { contextOf, study } from './read';

interface Case { name: string; form: unknown; steps: { batch: number; bandwidth: number; seconds: number[] }[] }
const path = join(dirname(fileURLToPath(import.meta.url)), '..', '..', 'tests', 'analysis', 'predict', 'closed_form_cases.json');
const cases = JSON.parse(readFileSync(path, 'utf8')) as Case[];

describe('The closed form', () => {
  it.each(cases)('gives the steps of the program: $name', ({ form: written, steps }) => {
    const form = readClosedForm(written);
    expect(steps.length).toBeGreaterThan(3);
    for (const { batch, bandwidth, seconds } of steps) {
      seconds.forEach((expected, k) => expect(Math.abs(stepSeconds(form, form.batches[batch]!, k, bandwidth) / expected - 1)).toBeLessThan(1e-9));
    }
  });
  it('is as efficient as the fewest workers are by themselves', () => {
    const form = readClosedForm(cases[0]!.form);
    expect(compute(form, form.batches[0]!, 1)[0]!.efficiency).toBe(1);
  });
});

describe('The fields', () => {
  const point = (x: number): Point => ({ x, y: x * 100, low: null, high: null, mark: '', record: '', n: 0 });
  const axis = (label: string) => ({ label, unit: '', log: true });
  const figureOf = (): Figure => ({
    type: 'figure', id: 'prediction', finding: 'Predicted', note: '', recomputed: readClosedForm(cases[1]!.form),
    views: [{ name: 'images/s', x: axis('workers'), y: axis('images/s'), marks: [], finding: '', note: '', series: [{ name: 'predicted', points: [1, 2, 8].map(point), dashed: false, hidden: false }] }],
  });
  const move = (card: HTMLElement, name: string, to: string) => {
    const field = card.querySelector<HTMLInputElement>(`#prediction-${name}`)!;
    field.value = to;
    field.dispatchEvent(new Event('input'));
  };

  it('say the step of what they are set to', () => {
    const card = renderFigure(figureOf(), contextOf(study()));
    const form = readClosedForm(cases[1]!.form);
    move(card, 'workers', '3');
    move(card, 'bandwidth', '4');
    const said = card.querySelector('.recompute [role=status]')!.textContent!;
    const { workers, efficiency } = compute(form, form.batches[0]!, 4)[3]!;
    expect(said).toContain(`${workers} workers`);
    expect(said).toContain('4 times the measured bandwidth');
    expect(said).toContain(`${(100 * efficiency).toFixed(1)} % efficient`);
  });
  it('draw one line more once they are moved', () => {
    const card = renderFigure(figureOf(), contextOf(study()));
    expect(card.querySelectorAll('.signs [data-series="1"]').length).toBe(0);
    move(card, 'bandwidth', '-4');
    expect(card.querySelectorAll('.signs [data-series="1"]').length).toBeGreaterThan(0);
  });
  it('have a label each', () => {
    const card = renderFigure(figureOf(), contextOf(study()));
    for (const name of ['batch', 'bandwidth', 'workers']) expect(card.querySelector(`label[for="prediction-${name}"]`)).not.toBeNull();
  });
});
