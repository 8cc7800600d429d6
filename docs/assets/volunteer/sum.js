// @ts-check
/**
 * The sum without rounding in between, as `math.fsum`: gradients that cancel give zero.
 * @type {(numbers: number[]) => number}
 */
export function exactSum(numbers) {
  /** @type {number[]} Their sum is exact, and none overlaps another. */
  let partials = [];
  for (const number of numbers) {
    let sum = number;
    const kept = [];
    for (const partial of partials) {
      const [large, small] = Math.abs(sum) < Math.abs(partial) ? [partial, sum] : [sum, partial];
      sum = large + small;
      const lost = small - (sum - large);
      if (lost) kept.push(lost);
    }
    partials = [...kept, sum];
  }
  let total = partials.pop() ?? 0;
  while (partials.length) {
    const before = total;
    const partial = /** @type {number} */ (partials.pop());
    total = before + partial;
    const lost = partial - (total - before);
    if (!lost) continue;
    // Halfway between two numbers, what is left decides.
    const left = partials.at(-1) ?? 0;
    const next = total + 2 * lost;
    return left * lost > 0 && next - total === 2 * lost ? next : total;
  }
  return total;
}
