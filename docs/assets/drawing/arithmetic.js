// @ts-check
/* The operations that a transformer is made of, on plain arrays of numbers. */

/** @typedef {Float32Array | Float64Array} Numbers */

const NORM_EPSILON = 1e-5; // of torch.nn.LayerNorm

/**
 * A matrix times a vector, plus a bias.
 * @param {Numbers} matrix row by row
 * @param {Numbers | undefined} bias
 * @param {Numbers} vector
 */
export function linear(matrix, bias, vector) {
  const width = vector.length;
  const out = new Float64Array(matrix.length / width);
  for (let row = 0, at = 0; row < out.length; row += 1) {
    let sum = bias ? bias[row] : 0;
    for (let column = 0; column < width; column += 1, at += 1) sum += matrix[at] * vector[column];
    out[row] = sum;
  }
  return out;
}

/** @type {(vector: Numbers, weight: Numbers, bias: Numbers) => Float64Array<ArrayBuffer>} */
export function layerNorm(vector, weight, bias) {
  let [sum, squares] = [0, 0];
  for (const value of vector) sum += value;
  const mean = sum / vector.length;
  for (const value of vector) squares += (value - mean) ** 2;
  const scale = 1 / Math.sqrt(squares / vector.length + NORM_EPSILON);
  return Float64Array.from(vector, (value, index) => (value - mean) * scale * weight[index] + bias[index]);
}

/** @param {number} value The exact GELU: the value times the normal distribution's share below it. */
export const gelu = (value) => (value / 2) * (1 + erf(value / Math.SQRT2));

/**
 * The error function by a series whose terms are all of one sign, so that nothing cancels: Abramowitz
 * and Stegun, Handbook of Mathematical Functions, 7.1.6.
 * @type {(x: number) => number}
 */
export function erf(x) {
  if (Math.abs(x) > 6) return Math.sign(x); // the rest is below what a double distinguishes from 1
  let term = x;
  let sum = x;
  for (let odd = 3; Math.abs(term) > Math.abs(sum) * Number.EPSILON; odd += 2) {
    term *= (2 * x * x) / odd;
    sum += term;
  }
  return (2 / Math.sqrt(Math.PI)) * Math.exp(-x * x) * sum;
}

/**
 * Positive numbers that sum to 1 and grow with the given ones.
 * @type {(values: Numbers | number[]) => Float64Array<ArrayBuffer>}
 */
export function softmax(values) {
  let highest = -Infinity;
  for (const value of values) highest = Math.max(highest, value);
  const out = Float64Array.from(values, (value) => Math.exp(value - highest));
  const sum = out.reduce((before, value) => before + value, 0);
  return out.map((value) => value / sum);
}
