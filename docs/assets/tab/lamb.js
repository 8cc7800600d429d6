// @ts-check
/* LAMB as in training/optimizer/lamb.py, with states of 32 bits, and its learning rate. */

import { countOf } from "./parameters.js";

/** @typedef {Float32Array} Numbers */

/** @param {Numbers} vector */
function normOf(vector) {
  let squares = 0;
  for (let at = 0; at < vector.length; at += 1) squares += vector[at] * vector[at];
  return Math.sqrt(squares);
}

/**
 * The share of the peak learning rate at a step, counted from 0: training/run/recipes.py.
 * @type {(schedule: {warmup_steps: number, total_steps: number}, step: number) => number}
 */
export function rateFactor({ warmup_steps: warmUp, total_steps: total }, step) {
  if (step < warmUp) return (step + 1) / warmUp;
  return Math.max(total - step, 0) / Math.max(total - warmUp, 1);
}

/** @typedef {{betas: [number, number], epsilon: number, weight_decay: number, max_gradient_norm: number, max_weight_norm: number}} LambSettings */

export class Lamb {
  /**
   * @param {import("./parameters.js").Tensor[]} tensors
   * @param {LambSettings} settings
   */
  constructor(tensors, settings) {
    this.tensors = tensors;
    this.settings = settings;
    this.momentum = new Float32Array(countOf(tensors));
    this.variance = new Float32Array(countOf(tensors));
  }

  /**
   * Gradients that are not finite change nothing.
   * @type {(weights: Numbers, gradients: Numbers, rate: number) => void}
   */
  step(weights, gradients, rate) {
    const { betas: [slow, slower], epsilon, weight_decay: decay, max_gradient_norm: longest, max_weight_norm: heaviest } = this.settings;
    const norm = normOf(gradients);
    if (!Number.isFinite(norm)) return;
    const factor = Math.min(1, longest / Math.max(norm, 1e-30));
    const update = new Float32Array(Math.max(...this.tensors.map(({ size }) => size)));
    for (const { shape, start, size } of this.tensors) {
      const own = weights.subarray(start, start + size);
      const step = update.subarray(0, size);
      for (let index = 0; index < size; index += 1) {
        const gradient = gradients[start + index] * factor;
        const momentum = (this.momentum[start + index] = slow * this.momentum[start + index] + (1 - slow) * gradient);
        const variance = (this.variance[start + index] = slower * this.variance[start + index] + (1 - slower) * gradient * gradient);
        step[index] = momentum / (Math.sqrt(variance) + epsilon) + (shape.length > 1 ? decay * own[index] : 0);
      }
      const [weight, length] = [Math.min(normOf(own), heaviest), normOf(step)];
      const scaled = rate * (weight > 0 && length > 0 ? weight / length : 1);
      for (let index = 0; index < size; index += 1) own[index] -= scaled * step[index];
    }
  }
}
