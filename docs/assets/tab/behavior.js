// @ts-check
/* What a volunteer sends in place of its gradient: calculator/swarm/attacks.py has "pull". */

import { normal } from "./parameters.js";

/** @typedef {"honest" | "pull" | "noise"} Behavior */

const PULL = -2; // outweighs one honest volunteer
const NOISE = 10; // in lengths of the gradient

/**
 * @param {Float32Array} gradient
 * @param {Behavior} behavior
 * @param {() => number} chance gives numbers from 0 to below 1
 */
export function sent(gradient, behavior, chance) {
  if (behavior === "honest") return gradient;
  if (behavior === "pull") return gradient.map((value) => PULL * value);
  const spread = Math.sqrt(gradient.reduce((squares, value) => squares + value * value, 0) / gradient.length);
  return gradient.map(() => NOISE * spread * normal(chance));
}
