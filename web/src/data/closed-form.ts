// The closed form of a step: the twin of src/analysis/predict/closed_form.h, which says the formulas. Both are held to
// tests/analysis/predict/closed_form_cases.json.

/// Of a number of workers: equally likely factors on own work of the slowest, and seconds of each reduction.
export interface FormWorkers { workers: number; largest: number[]; latency: number[]; moving: number[] }
/// Of a local batch: lists by number of workers, in seconds.
export interface FormBatch { batch: number; missed: number; loader: number; compute: number[]; work: number[]; dataWait: number[]; queue: number[] }
export interface ClosedForm { backwardPart: number; ready: number[]; workers: FormWorkers[]; batches: FormBatch[] }

/// Seconds of a step; `bandwidth` is a factor on the measured one.
export function stepSeconds(form: ClosedForm, batch: FormBatch, k: number, bandwidth: number): number {
  const { workers, largest, latency, moving } = form.workers[k]!;
  const work = batch.work[k]!;
  const waited = (factor: number) => {
    const backward = form.backwardPart * (batch.compute[k]! + (factor - 1) * work);
    let end = 0;
    latency.forEach((seconds, j) => { end = Math.max(backward * form.ready[j]!, end) + seconds + moving[j]! / bandwidth; });
    return (factor - 1) * work + Math.max(0, end - backward);
  };
  const seconds = work + largest.reduce((sum, factor) => sum + waited(factor) / largest.length, 0);
  const rest = seconds - batch.dataWait[k]!;
  const late = Math.max(0, batch.loader - rest);
  return rest + batch.queue[k]! + late + (workers > 1 ? batch.missed : 0);
}

/// `isBound`: nothing is known of the reductions among so many; the step is at least, the rest at most.
export interface Computed { workers: number; step: number; rate: number; efficiency: number; isBound: boolean }

/// Every number of workers, in weak scaling; efficiency against the fewest at the same batch.
export function compute(form: ClosedForm, batch: FormBatch, bandwidth: number): Computed[] {
  const alone = stepSeconds(form, batch, 0, bandwidth);
  return form.workers.map(({ workers, latency }, k) => {
    const step = stepSeconds(form, batch, k, bandwidth);
    return { workers, step, rate: workers * batch.batch / step, efficiency: alone / step, isBound: workers > 1 && latency.length === 0 && form.ready.length > 1 };
  });
}
