// @ts-check
/*
 * Computes what calculator/swarm/plane.py does, until Python is there. A test compares every number
 * and text of the two.
 */

import { exactLength, exactSum, fixed, general, whole } from "./numbers.js";

/** @typedef {[number, number]} Vector */
/** @typedef {{name: string, path: Vector[], error: number, angle: number | null}} Result */

// Values of calculator/swarm/plane.py and attacks.py.
/** @type {Vector[]} */
const HONEST = [[3.2, 1.1], [2.3, 2.2], [4.1, 1.7], [3, 2.9], [2.4, 0.8], [3.9, 0.7], [3.6, 2.3]];
const HALF_WIDTH = 8;
const HALF_HEIGHT = 5;
const MARGIN = 0.96;
/** @type {Record<string, number>} */
const FACTORS = { pull: -2, flip: -1, scale: 1000 };
const JUST_INSIDE = 0.92;
const APART = 0.08;
const CLOSE = 0.5;
const ARRIVED = 0.05;

/**
 * @param {{attack: string, bad: any[], bad_count: string, radius: string, iterations: string, start: string}} state
 */
export function aggregate(state) {
  const radius = Number(state.radius);
  const iterations = Number(state.iterations);
  const count = Number(state.bad_count);
  const bad = state.attack === "hand" ? placed(state.bad, count) : attack(state.attack, count, radius);
  const aim = mean(HONEST);
  const vectors = [...HONEST, ...bad];
  const median = /** @type {Vector} */ ([0, 1].map((axis) => middle(vectors.map((vector) => vector[axis]))));
  const results = Object.entries({
    mean: [mean(vectors)],
    median: [median],
    "centered-clip": clipped(vectors, radius, iterations, state.start === "median" ? median : [0, 0]),
  }).map(([name, path]) => {
    const last = path[path.length - 1];
    return { name, path, error: distance(last, aim), angle: angle(last, aim) };
  });
  const spread = Math.sqrt(HONEST.reduce((sum, vector) => sum + distance(vector, aim) ** 2, 0) / HONEST.length);
  const middleDistance = middle(vectors.map((vector) => distance(vector, median)));
  const lesson = finding(results, bad, spread, radius);
  return {
    attack: state.attack,
    start: state.start,
    honest: HONEST.map(place),
    bad: bad.map(place),
    honest_mean: place(aim),
    results: Object.fromEntries(results.map(({ name, path, error, angle: turned }) => {
      const drawn = path.map(place);
      return [name, { error, angle: turned, path: drawn, ...drawn[drawn.length - 1] }];
    })),
    radius,
    iterations,
    reach: (100 * radius) / Math.hypot(HALF_WIDTH, HALF_HEIGHT) / Math.SQRT2,
    figures: {
      honest: String(HONEST.length),
      bad: String(bad.length),
      radius: general(radius),
      iterations: String(iterations),
      spread: fixed(spread, 2),
      middle_distance: short(middleDistance),
      finding: lesson,
      summary: `${bad.length} bad of ${vectors.length} volunteers. Distance from the honest mean: mean ${short(results[0].error)}, median ${short(results[1].error)}, CenteredClip ${short(results[2].error)}. ${lesson}`,
      ...Object.assign({}, ...results.map((result) => texts(result, spread))),
    },
  };
}

/**
 * The points that were put by hand; those that are missing pull.
 *
 * @param {any[]} given
 * @param {number} count
 * @returns {Vector[]}
 */
function placed(given, count) {
  const points = given.slice(0, count).map((point) => /** @type {Vector} */ (
    "x" in point ? [point.x, point.y] : [(point.left / 50 - 1) * HALF_WIDTH, (1 - point.top / 50) * HALF_HEIGHT]));
  return [...points, ...attack("pull", count, 1).slice(points.length)];
}

/**
 * @param {string} kind
 * @param {number} count
 * @param {number} radius
 * @returns {Vector[]}
 */
function attack(kind, count, radius) {
  const numbers = Array.from({ length: count }, (_, index) => index);
  if (kind in FACTORS) {
    return numbers.map((index) => /** @type {Vector} */ (HONEST[index % HONEST.length].map((number) => FACTORS[kind] * number)));
  }
  const [x, y] = mean(HONEST);
  const length = exactLength([x, y]);
  const away = radius * JUST_INSIDE;
  const [left, top] = [x + (away * y) / length, y - (away * x) / length];
  return numbers.map((index) => {
    const turn = 2 * Math.PI * (index / count);
    return [left + APART * radius * Math.cos(turn), top + APART * radius * Math.sin(turn)];
  });
}

/** @param {Vector[]} vectors @returns {Vector} */
function mean(vectors) {
  const share = 1 / vectors.length;
  return /** @type {Vector} */ ([0, 1].map((axis) => exactSum(vectors.map((vector) => vector[axis] * share))));
}

/** @param {number[]} numbers The median. */
function middle(numbers) {
  const sorted = numbers.toSorted((one, other) => one - other);
  const half = sorted.length / 2;
  return Number.isInteger(half) ? (sorted[half - 1] + sorted[half]) / 2 : sorted[Math.floor(half)];
}

/**
 * The centers of CenteredClip, the start in front.
 *
 * @param {Vector[]} vectors
 * @param {number} radius
 * @param {number} iterations
 * @param {Vector} start
 */
function clipped(vectors, radius, iterations, start) {
  const path = [start];
  for (let done = 0; done < iterations; done += 1) {
    const center = path[done];
    const moved = /** @type {Vector} */ ([...center]);
    for (const vector of vectors) {
      const away = distance(vector, center);
      const factor = (1 / vectors.length) * (away ? Math.min(1, radius / away) : 1);
      for (const axis of [0, 1]) moved[axis] += factor * (vector[axis] - center[axis]);
    }
    path.push(moved);
  }
  return path;
}

/** @param {Vector} one @param {Vector} other */
const distance = (one, other) => exactLength([one[0] - other[0], one[1] - other[1]]);

/** @param {Vector} one @param {Vector} other In degrees; null if one of them is zero. */
function angle(one, other) {
  if (!one.some(Boolean) || !other.some(Boolean)) return null;
  const turn = Math.abs(Math.atan2(one[1], one[0]) - Math.atan2(other[1], other[0]));
  return (Math.min(turn, 2 * Math.PI - turn) * 180) / Math.PI;
}

/** @param {Vector} vector Where it is drawn, in percent of the picture. */
function place([x, y]) {
  const reach = Math.max(Math.abs(x) / HALF_WIDTH, Math.abs(y) / HALF_HEIGHT);
  const outside = reach > MARGIN;
  const factor = outside ? MARGIN / reach : 1;
  return { x, y, left: 50 * (1 + (factor * x) / HALF_WIDTH), top: 50 * (1 - (factor * y) / HALF_HEIGHT), outside };
}

/**
 * @param {number} error
 * @param {number | null} turned
 * @param {number} spread
 */
function verdictOf(error, turned, spread) {
  if (error <= CLOSE * spread) return "close";
  if (error <= spread) return "fair";
  return (turned ?? 0) > 90 ? "backwards" : "off";
}

/** @type {Record<string, string>} */
const ABOUT_MEAN = {
  close: "The bad gradients hardly move the mean.",
  fair: "The bad gradients pull the mean aside.",
  off: "The bad gradients spoil the mean.",
  backwards: "The mean points backward and would undo what the model has learned.",
};

/**
 * @param {Result[]} results
 * @param {Vector[]} bad
 * @param {number} spread
 * @param {number} radius
 */
function finding([average, median, clip], bad, spread, radius) {
  const many = bad.length - HONEST.length;
  const first = many < 0
    ? `${bad.length ? ABOUT_MEAN[verdictOf(average.error, average.angle, spread)] : "No one is bad, so the mean is exact."} ${aboutOthers(median.error <= spread, clip.error <= spread)}`
    : `${many ? "Most volunteers are bad" : "As many volunteers are bad as honest"}: no average can tell whom to believe, and the bad ones decide the result.`;
  const [before, center] = clip.path.slice(-2);
  if (distance(before, center) > ARRIVED * radius) return `${first} CenteredClip is still on its way: it needs more iterations.`;
  const isClipped = bad.some((one) => distance(one, center) > radius);
  return bad.length && !isClipped ? `${first} No bad gradient is clipped, because none is farther away than the radius.` : first;
}

/**
 * @param {boolean} median
 * @param {boolean} clip
 */
function aboutOthers(median, clip) {
  if (median && clip) return "The median and CenteredClip stay near the honest mean.";
  if (median) return "The median stays near the honest mean, CenteredClip does not.";
  if (clip) return "CenteredClip stays near the honest mean, the median does not.";
  return "Neither the median nor CenteredClip is near the honest mean.";
}

/**
 * @param {Result} result
 * @param {number} spread
 */
function texts({ name, path, error, angle: turned }, spread) {
  return {
    [`${name}.vector`]: path[path.length - 1].map((number) => short(number).replace("-", "\u2212")).join(", "),
    [`${name}.error`]: short(error),
    [`${name}.angle`]: turned === null ? "none" : `${fixed(turned, 0)}°`,
    [`${name}.verdict`]: verdictOf(error, turned, spread),
  };
}

/** @param {number} value */
function short(value) {
  const rounded = Number(fixed(value, 2)) + 0; // no minus sign before zero
  return Math.abs(rounded) >= 100 ? whole(Number(fixed(rounded, 0))) : fixed(rounded, 2);
}
