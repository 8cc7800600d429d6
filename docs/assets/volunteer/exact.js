// @ts-check
/* Sums that are correctly rounded, whatever the order: Python's math.fsum. */

/**
 * Shewchuk, "Adaptive Precision Floating-Point Arithmetic", 1997: partial sums that do not overlap.
 *
 * @param {Iterable<number>} values finite
 */
export function exactSum(values) {
  /** @type {number[]} */
  let partials = [];
  for (const value of values) {
    let sum = value;
    const rest = [];
    for (const partial of partials) {
      const [large, small] = Math.abs(sum) < Math.abs(partial) ? [partial, sum] : [sum, partial];
      sum = large + small;
      const lost = small - (sum - large);
      if (lost) rest.push(lost);
    }
    partials = [...rest, sum];
  }
  return rounded(partials);
}

/** @param {number[]} partials The smallest first; of two equally near numbers, the even one. */
function rounded(partials) {
  let sum = partials.pop() ?? 0;
  let lost = 0;
  while (partials.length && !lost) {
    const [large, small] = [sum, /** @type {number} */ (partials.pop())];
    sum = large + small;
    lost = small - (sum - large);
  }
  const next = partials.at(-1) ?? 0;
  const twice = 2 * lost;
  if (lost && Math.sign(next) === Math.sign(lost) && sum + twice - sum === twice) sum += twice; // half a unit, and more below it
  return sum;
}
