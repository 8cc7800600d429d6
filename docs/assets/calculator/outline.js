// @ts-check
// The outlines of the parts of a curve of memory, for a picture of 1,000 by 1,000 that is stretched.

/** @typedef {{x: number, tops: number[]}} Place Where a point begins, and how high each of its parts reaches. */

const WIDTH = 1000;
const HEIGHT = 1000;

/** @type {(points: Place[], at: number) => number} */
export const endOf = (points, at) => points[at + 1]?.x ?? 1;

/**
 * The outline of a part: along its top from left to right, along what it stands on back.
 * @type {(points: Place[], part: number) => string}
 */
export function outline(points, part) {
  const ends = points.map((_, at) => across(endOf(points, at)));
  const starts = points.map(({ x }) => across(x)).reverse();
  const tops = points.map((point) => height(point.tops[part]));
  const feet = points.map((point) => height(point.tops[part - 1] ?? 0)).reverse();
  return `M0,${HEIGHT}${stairs(tops, ends)}${stairs(feet, starts)}Z`;
}

/**
 * A line to each height in turn, and level from there to its end; equal heights are one stair.
 * @type {(heights: string[], ends: string[]) => string}
 */
function stairs(heights, ends) {
  return heights.map((height, at) => (height === heights[at + 1] ? "" : `V${height}H${ends[at]}`)).join("");
}

/** @param {number} share */
const across = (share) => (WIDTH * share).toFixed(2);

/** @param {number} share */
const height = (share) => (HEIGHT * (1 - share)).toFixed(1);
