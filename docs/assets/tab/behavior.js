// @ts-check
/* What a volunteer sends in place of its gradient. */

import { chances } from "../drawing/chance.js";
import { normal } from "./parameters.js";

/** @typedef {"honest" | "pull" | "scale" | "noise" | "collude"} Behavior */

/** @type {Record<string, number>} */
const FACTORS = { pull: -2, scale: 1000 }; // the first outweighs one honest volunteer
const NOISE = 10; // in lengths of the gradient
const AGREED = 1; // seed of the direction on which those that collude have agreed

/**
 * @param {Float32Array} gradient
 * @param {Behavior} behavior
 * @param {() => number} chance gives numbers from 0 to below 1
 */
export function sent(gradient, behavior, chance) {
  if (behavior === "honest") return gradient;
  if (behavior in FACTORS) return gradient.map((value) => FACTORS[behavior] * value);
  const spread = Math.sqrt(gradient.reduce((squares, value) => squares + value * value, 0) / gradient.length);
  if (behavior === "noise") return gradient.map(() => NOISE * spread * normal(chance));
  const agreed = chances(AGREED, 0); // no longer than an honest gradient is, and the same at every step
  return gradient.map((value) => value + spread * normal(agreed));
}
