// @ts-check
/*
 * Averaging part by part: each member of a group averages one part of the vector for all. The rules
 * are those of training/averaging/aggregation.py, which a test holds them against.
 */

/** @typedef {Float32Array} Numbers */
/** @typedef {"mean" | "centered-clip"} Aggregation */

// As in training/averaging/aggregation.py.
const RULE = { radius: 1, iterations: 3, longest: 10, farthest: 3 };
const HEAVIEST = 2; // in medians of the weights

/**
 * Where each member's part begins and ends: equal parts, as even as whole numbers allow.
 * @param {number} count of numbers
 * @param {number} members
 */
export const partsOf = (count, members) => Array.from({ length: members }, (_, index) => ({
  start: Math.floor((index * count) / members),
  end: Math.floor(((index + 1) * count) / members),
}));

/**
 * One vector of many. Those of weight zero are ignored; where all are zero, all count the same.
 * @param {Numbers[]} vectors
 * @param {number[]} weights not below 0
 * @param {Aggregation} aggregation
 */
export function aggregate(vectors, weights, aggregation) {
  const given = weights.some(Boolean) ? weights : weights.map(() => 1);
  const heard = cut(vectors.filter((_, index) => given[index]), RULE.longest);
  const shares = given.filter(Boolean);
  return aggregation === "mean" ? mean(heard, shares) : clippedAroundMedian(heard, shares);
}

/** @type {(vectors: Numbers[], weights: number[]) => Float32Array<ArrayBuffer>} */
function mean(vectors, weights) {
  const total = sum(weights);
  const out = new Float32Array(vectors[0].length);
  vectors.forEach((vector, index) => addScaled(out, vector, weights[index] / total));
  return out;
}

/**
 * CenteredClip from the median on; its radius is the median of the distances.
 * @type {(vectors: Numbers[], weights: number[]) => Numbers}
 */
function clippedAroundMedian(vectors, weights) {
  if (vectors.length < 3) return mean(cut(vectors, 1), weights); // neither of two is the majority
  const start = coordinateMedian(vectors);
  const distances = vectors.map((vector) => distance(vector, start));
  const middle = median(distances);
  if (!middle) return start; // most say exactly the same
  const heaviest = HEAVIEST * median(weights);
  const near = vectors.map((_, index) => index).filter((index) => distances[index] <= RULE.farthest * middle);
  const shares = near.map((index) => Math.min(weights[index], heaviest));
  return centeredClip(near.map((index) => vectors[index]), RULE.radius * middle, shares, start);
}

/** @type {(vectors: Numbers[], radius: number, weights: number[], start: Numbers) => Numbers} */
function centeredClip(vectors, radius, weights, start) {
  const total = sum(weights);
  let center = start;
  for (let done = 0; done < RULE.iterations; done += 1) {
    const moved = center.slice();
    vectors.forEach((vector, index) => {
      const factor = (weights[index] / total) * Math.min(1, radius / Math.max(distance(vector, center), 1e-30));
      addScaled(moved, vector, factor);
      addScaled(moved, center, -factor);
    });
    center = moved;
  }
  return center;
}

/** @param {Numbers[]} vectors */
function coordinateMedian(vectors) {
  const column = new Float32Array(vectors.length);
  const [low, high] = [Math.floor((vectors.length - 1) / 2), Math.floor(vectors.length / 2)];
  return vectors[0].map((_, at) => {
    vectors.forEach((vector, index) => (column[index] = vector[at]));
    column.sort();
    return (column[low] + column[high]) / 2;
  });
}

/**
 * Clip vectors whose norm is far above the median norm of those that are not zero.
 * @param {Numbers[]} vectors
 * @param {number} longest in multiples of the median norm
 */
function cut(vectors, longest) {
  const lengths = vectors.map((vector) => Math.sqrt(vector.reduce((squares, value) => squares + value * value, 0)));
  const some = lengths.filter(Boolean).sort((a, b) => a - b);
  const bound = longest * some[Math.floor((some.length - 1) / 2)]; // the lower of two
  return vectors.map((vector, index) => (lengths[index] > bound ? vector.map((value) => value * (bound / lengths[index])) : vector));
}

/** @param {number[]} numbers */
const sum = (numbers) => numbers.reduce((before, number) => before + number, 0);

/** @param {number[]} numbers */
function median(numbers) {
  const sorted = numbers.toSorted((a, b) => a - b);
  return (sorted[Math.floor((sorted.length - 1) / 2)] + sorted[Math.floor(sorted.length / 2)]) / 2;
}

/** @param {Numbers} one @param {Numbers} other */
function distance(one, other) {
  let squares = 0;
  for (let at = 0; at < one.length; at += 1) squares += (one[at] - other[at]) ** 2;
  return Math.sqrt(squares);
}

/** @param {Numbers} into @param {Numbers} vector @param {number} factor */
function addScaled(into, vector, factor) {
  for (let at = 0; at < into.length; at += 1) into[at] += factor * vector[at];
}
