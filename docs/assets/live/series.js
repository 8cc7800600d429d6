// @ts-check
/* From the columns of a run to the points of a line. */

import { firstAtLeast } from "./progress.js";

/**
 * Times that never go back: a step's time is the middle of its volunteers' clocks.
 * @type {(values: number[]) => number[]}
 */
export function growing(values) {
  let highest = -Infinity;
  return values.map((value) => (highest = Math.max(highest, value)));
}

/**
 * The running mean whose older values fade by `weight` a step, free of the pull to its start.
 * What is not a number is left out.
 * @param {number[]} values
 * @param {number} weight from 0, which changes nothing, to below 1
 */
export function smooth(values, weight) {
  let [mean, mass] = [0, 0];
  return values.map((value) => {
    if (!Number.isFinite(value)) return NaN;
    mean = weight * mean + (1 - weight) * value;
    mass = weight * mass + (1 - weight);
    return mean / mass;
  });
}

/**
 * The mean of each value and of those before it, `steps` of them at most. What is not a number is
 * left out.
 * @type {(values: number[], steps: number) => number[]}
 */
export function recentMeans(values, steps) {
  return values.map((_, index) => {
    const recent = values.slice(Math.max(0, index + 1 - steps), index + 1).filter(Number.isFinite);
    return recent.reduce((sum, value) => sum + value, 0) / recent.length;
  });
}

/** Sums from the start; what is not a number counts as nothing. @type {(values: number[]) => number[]} */
export function cumulative(values) {
  let sum = 0;
  return values.map((value) => (sum += Number.isFinite(value) ? value : 0));
}

/**
 * The points that matter between two places: of all that fall into one of `columns` columns the
 * first, the lowest, the highest and the last, so that the line looks as if all were drawn. One
 * point more at each end lets the line run to the edge.
 * @param {number[]} places that never go back
 * @param {number[]} values
 * @param {[number, number]} range
 * @param {number} columns
 * @returns {number[]} indices
 */
export function thin(places, values, [low, high], columns) {
  const first = Math.max(0, firstAtLeast(places, low) - 1);
  const end = Math.min(places.length, firstAtLeast(places, high) + 2);
  const width = (high - low) / columns || 1;
  /** @type {number[]} */
  const kept = [];
  let index = first;
  while (index < end) {
    const column = Math.floor((places[index] - low) / width);
    const extremes = { first: -1, lowest: -1, highest: -1, last: -1 };
    for (; index < end && Math.floor((places[index] - low) / width) === column; index += 1) {
      if (Number.isFinite(values[index])) widen(extremes, values, index);
    }
    const picked = new Set(Object.values(extremes).filter((one) => one >= 0));
    kept.push(...[...picked].sort((a, b) => a - b));
  }
  return kept;
}

/** @type {(extremes: {first: number, lowest: number, highest: number, last: number}, values: number[], index: number) => void} */
function widen(extremes, values, index) {
  if (extremes.first < 0) extremes.first = extremes.lowest = extremes.highest = index;
  if (values[index] < values[extremes.lowest]) extremes.lowest = index;
  if (values[index] > values[extremes.highest]) extremes.highest = index;
  extremes.last = index;
}

/**
 * The value at a place of a line through points.
 * @param {number[]} places growing
 * @param {number[]} values
 * @param {number} place
 */
export function interpolate(places, values, place) {
  const after = firstAtLeast(places, place);
  if (after >= places.length) return values[values.length - 1];
  if (after === 0 || places[after] === place) return values[after];
  const share = (place - places[after - 1]) / (places[after] - places[after - 1]);
  return values[after - 1] + share * (values[after] - values[after - 1]);
}
