// @ts-check
/* Numbers and sentences as Python adds and writes them: exact ties are rounded to the even digit. */

/**
 * @param {number} value
 * @param {number} digits 0 or 2
 */
export function fixed(value, digits) {
  const scale = 10 ** digits;
  // Only halves (eighths with two digits) can lie exactly between two texts.
  const isTie = digits ? Number.isInteger(8 * value) && !Number.isInteger(4 * value) : Number.isInteger(2 * value) && !Number.isInteger(value);
  if (!isTie) return value.toFixed(digits);
  const below = Math.floor(value * scale);
  return ((below % 2 === 0 ? below : below + 1) / scale).toFixed(digits);
}

/** @param {number} value With six digits at most. */
export const general = (value) => String(Number(value.toPrecision(6)));

/**
 * The sum without rounding in between, as `math.fsum`: gradients that cancel give zero.
 *
 * @param {number[]} numbers
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

/**
 * The length of a vector as `math.dist` rounds it: texts of lengths at a tie are Python's, too.
 *
 * @param {number[]} numbers
 */
export function exactLength(numbers) {
  const squares = numbers.flatMap(square);
  const root = Math.sqrt(exactSum(squares));
  if (!root) return 0;
  const excess = exactSum([...squares, ...square(root).map((part) => -part)]);
  return root + excess / (2 * root);
}

/** @param {number} number Its square without rounding, as a sum of two numbers. */
function square(number) {
  const shifted = number * (2 ** 27 + 1);
  const high = shifted - (shifted - number);
  const low = number - high;
  const rounded = number * number;
  return [rounded, high * high - rounded + 2 * high * low + low * low];
}

/**
 * A sentence with values in place of their names.
 *
 * @param {string} sentence such as "{bad} of {all}"
 * @param {Record<string, string | number>} values
 */
export const filled = (sentence, values) => sentence.replace(/\{(\w+)\}/g, (_, name) => String(values[name]));
