// @ts-check
/*
 * Computes what calculator/swarm/plane.py does, until Python is there, from the same constants and
 * sentences: they are in the page. A test compares every number and text of the two.
 */

import { grouped } from "../digits.js";
import { exactLength, exactSum, filled, fixed, general } from "./numbers.js";

/** @typedef {[number, number]} Vector */
/** @typedef {{name: string, path: Vector[], error: number, angle: number | null}} Result */
/** @typedef {{attack: string, bad: any[], bad_count: string, radius: string, iterations: string, start: string}} State */
/**
 * @typedef {object} Constants Those of calculator/swarm/plane.py and attacks.py.
 * @property {Vector[]} honest
 * @property {number} half_width
 * @property {number} half_height
 * @property {number} margin
 * @property {number} close
 * @property {number} arrived
 * @property {Record<string, number>} factors
 * @property {number} just_inside
 * @property {number} apart
 * @property {Record<string, string>} sentences
 */

/**
 * @param {State} state
 * @param {Constants} constants
 */
export const aggregate = (state, constants) => new Plane(constants).answer(state);

class Plane {
  /** @param {Constants} constants */
  constructor(constants) {
    this.constants = constants;
  }

  /** @param {State} state */
  answer(state) {
    const { honest, half_width: halfWidth, half_height: halfHeight, sentences } = this.constants;
    const radius = Number(state.radius);
    const iterations = Number(state.iterations);
    const count = Number(state.bad_count);
    const bad = state.attack === "hand" ? this.#placed(state.bad, count) : this.#attack(state.attack, count, radius);
    const aim = mean(honest);
    const vectors = [...honest, ...bad];
    const median = /** @type {Vector} */ ([0, 1].map((axis) => middle(vectors.map((vector) => vector[axis]))));
    const results = Object.entries({
      mean: [mean(vectors)],
      median: [median],
      "centered-clip": clipped(vectors, radius, iterations, state.start === "median" ? median : [0, 0]),
    }).map(([name, path]) => {
      const last = path[path.length - 1];
      return { name, path, error: distance(last, aim), angle: angle(last, aim) };
    });
    const spread = Math.sqrt(honest.reduce((sum, vector) => sum + distance(vector, aim) ** 2, 0) / honest.length);
    const middleDistance = middle(vectors.map((vector) => distance(vector, median)));
    const finding = this.#lessons(results, bad, spread, radius).map((name) => sentences[name]).join(" ");
    const [meanError, medianError, clipError] = results.map(({ error }) => short(error));
    const summary = filled(sentences.summary, { bad: bad.length, all: vectors.length, mean: meanError, median: medianError, clip: clipError });
    const place = (/** @type {Vector} */ vector) => this.#place(vector);
    return {
      attack: state.attack,
      start: state.start,
      honest: honest.map(place),
      bad: bad.map(place),
      honest_mean: place(aim),
      results: Object.fromEntries(results.map(({ name, path, error, angle: turned }) => {
        const drawn = path.map(place);
        return [name, { error, angle: turned, path: drawn, ...drawn[drawn.length - 1] }];
      })),
      radius,
      iterations,
      reach: (100 * radius) / Math.hypot(halfWidth, halfHeight) / Math.SQRT2,
      figures: {
        honest: String(honest.length),
        bad: String(bad.length),
        radius: general(radius),
        iterations: String(iterations),
        spread: fixed(spread, 2),
        middle_distance: short(middleDistance),
        finding,
        summary: `${summary} ${finding}`,
        ...Object.assign({}, ...results.map((result) => this.#texts(result, spread))),
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
  #placed(given, count) {
    const { half_width: halfWidth, half_height: halfHeight } = this.constants;
    const points = given.slice(0, count).map((point) => /** @type {Vector} */ (
      "x" in point ? [point.x, point.y] : [(point.left / 50 - 1) * halfWidth, (1 - point.top / 50) * halfHeight]));
    return [...points, ...this.#attack("pull", count, 1).slice(points.length)];
  }

  /**
   * @param {string} kind
   * @param {number} count
   * @param {number} radius
   * @returns {Vector[]}
   */
  #attack(kind, count, radius) {
    const { honest, factors, just_inside: inside, apart } = this.constants;
    const numbers = Array.from({ length: count }, (_, index) => index);
    if (kind in factors) {
      return numbers.map((index) => /** @type {Vector} */ (honest[index % honest.length].map((number) => factors[kind] * number)));
    }
    const [x, y] = mean(honest);
    const length = exactLength([x, y]);
    const away = radius * inside;
    const [left, top] = [x + (away * y) / length, y - (away * x) / length];
    return numbers.map((index) => {
      const turn = 2 * Math.PI * (index / count);
      return [left + apart * radius * Math.cos(turn), top + apart * radius * Math.sin(turn)];
    });
  }

  /** @param {Vector} vector Where it is drawn, in percent of the picture. */
  #place([x, y]) {
    const { half_width: halfWidth, half_height: halfHeight, margin } = this.constants;
    const reach = Math.max(Math.abs(x) / halfWidth, Math.abs(y) / halfHeight);
    const outside = reach > margin;
    const factor = outside ? margin / reach : 1;
    return { x, y, left: 50 * (1 + (factor * x) / halfWidth), top: 50 * (1 - (factor * y) / halfHeight), outside };
  }

  /**
   * @param {Result} result
   * @param {number} spread
   */
  #verdict({ error, angle: turned }, spread) {
    if (error <= this.constants.close * spread) return "close";
    if (error <= spread) return "fair";
    return (turned ?? 0) > 90 ? "backwards" : "off";
  }

  /**
   * The names of the sentences about a state.
   *
   * @param {Result[]} results
   * @param {Vector[]} bad
   * @param {number} spread
   * @param {number} radius
   */
  #lessons([average, median, clip], bad, spread, radius) {
    const many = bad.length - this.constants.honest.length;
    const found = many < 0
      ? [bad.length ? this.#verdict(average, spread) : "none", near(median.error <= spread, clip.error <= spread)]
      : [many ? "most" : "half"];
    const [before, center] = clip.path.slice(-2);
    if (distance(before, center) > this.constants.arrived * radius) return [...found, "moving"];
    const isClipped = bad.some((one) => distance(one, center) > radius);
    return bad.length && !isClipped ? [...found, "inside"] : found;
  }

  /**
   * @param {Result} result
   * @param {number} spread
   */
  #texts(result, spread) {
    const { name, path, error, angle: turned } = result;
    return {
      [`${name}.vector`]: path[path.length - 1].map((number) => short(number).replace("-", "\u2212")).join(", "),
      [`${name}.error`]: short(error),
      [`${name}.angle`]: turned === null ? "none" : `${fixed(turned, 0)}°`,
      [`${name}.verdict`]: this.#verdict(result, spread),
    };
  }
}

/** @param {boolean} median @param {boolean} clip The name of the sentence about the two that are near the honest mean. */
function near(median, clip) {
  if (median) return clip ? "both" : "median";
  return clip ? "clip" : "neither";
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

/** @param {number} value */
function short(value) {
  const rounded = Number(fixed(value, 2)) + 0; // no minus sign before zero
  return Math.abs(rounded) >= 100 ? grouped(Number(fixed(rounded, 0))) : fixed(rounded, 2);
}
