/// Moves labels apart: heights at least `gap` from one another inside [top, bottom], in their order and as near to
/// where they belong as one pass down and one pass up allow.
export function spread(heights: readonly number[], gap: number, top: number, bottom: number): number[] {
  const order = heights.map((_, i) => i).sort((a, b) => heights[a]! - heights[b]!);
  const moved = [...heights];
  let free = top;
  for (const i of order) {
    moved[i] = Math.max(moved[i]!, free);
    free = moved[i]! + gap;
  }
  let limit = bottom;
  for (const i of order.reverse()) {
    moved[i] = Math.min(moved[i]!, limit);
    limit = moved[i]! - gap;
  }
  return moved;
}
