// @ts-check
/* The local steps' optimizer: torch.optim.AdamW, with vectors that do not decay, and clipped gradients. */

import { countOf } from "../tab/parameters.js";

/** @typedef {Float32Array<ArrayBuffer>} Numbers */
/** @typedef {{betas: [number, number], weight_decay: number, max_gradient_norm: number}} Settings */
/** @typedef {{steps: number, momentum: Numbers, variance: Numbers}} Moments */

const EPSILON = 1e-8;
const SMALLEST = 1e-6; // added to a norm, as clip_grad_norm_ does

export class AdamW {
  /**
   * @param {import("../tab/parameters.js").Tensor[]} tensors
   * @param {Settings} settings
   * @param {Moments} [moments] to go on from
   */
  constructor(tensors, settings, moments) {
    this.tensors = tensors;
    this.settings = settings;
    const elements = countOf(tensors);
    this.moments = moments ?? { steps: 0, momentum: new Float32Array(elements), variance: new Float32Array(elements) };
  }

  /**
   * False where the gradients are not finite; then nothing changes.
   * @type {(weights: Float32Array, gradients: Float32Array, rate: number) => boolean}
   */
  step(weights, gradients, rate) {
    const { betas: [slow, slower], weight_decay: decay, max_gradient_norm: longest } = this.settings;
    const norm = Math.sqrt(gradients.reduce((squares, value) => squares + value * value, 0));
    if (!Number.isFinite(norm)) return false;
    const { moments, moments: { momentum, variance } } = this;
    moments.steps += 1;
    const factor = Math.min(1, longest / (norm + SMALLEST));
    const size = rate / (1 - slow ** moments.steps);
    const correction = Math.sqrt(1 - slower ** moments.steps);
    for (const { shape, start, size: count } of this.tensors) {
      const kept = shape.length > 1 ? 1 - rate * decay : 1;
      for (let at = start; at < start + count; at += 1) {
        const gradient = gradients[at] * factor;
        momentum[at] += (1 - slow) * (gradient - momentum[at]);
        variance[at] = slower * variance[at] + (1 - slower) * gradient * gradient;
        weights[at] = weights[at] * kept - (size * momentum[at]) / (Math.sqrt(variance[at]) / correction + EPSILON);
      }
    }
    return true;
  }
}
