// @ts-check
/*
 * The optimizers of the two ways to train together: LAMB on averaged gradients, as in
 * training/optimizer/lamb.py with states of 32 bits, and AdamW for local steps, as torch.optim's.
 */

/** @typedef {import("./parameters.js").Tensor} Tensor */
/** @typedef {Float32Array} Numbers */

/** @param {Numbers} vector */
export function lengthOf(vector) {
  let squares = 0;
  for (let at = 0; at < vector.length; at += 1) squares += vector[at] * vector[at];
  return Math.sqrt(squares);
}

/**
 * The share of the peak learning rate at a step, counted from 0: training/run/schedule.py.
 *
 * @param {{warmup_steps: number, total_steps: number}} schedule
 * @param {number} step
 */
export function rateFactor({ warmup_steps: warmUp, total_steps: total }, step) {
  if (step < warmUp) return (step + 1) / warmUp;
  return Math.max(total - step, 0) / Math.max(total - warmUp, 1);
}

class Moments {
  /** @param {Tensor[]} tensors */
  constructor(tensors) {
    const count = tensors.reduce((sum, { size }) => sum + size, 0);
    this.tensors = tensors;
    this.momentum = new Float32Array(count);
    this.variance = new Float32Array(count);
  }
}

/** @typedef {{betas: [number, number], epsilon: number, weight_decay: number, max_gradient_norm: number, max_weight_norm: number}} LambSettings */

export class Lamb extends Moments {
  /**
   * @param {Tensor[]} tensors
   * @param {LambSettings} settings
   */
  constructor(tensors, settings) {
    super(tensors);
    this.settings = settings;
  }

  /**
   * Gradients that are not finite change nothing.
   *
   * @param {Numbers} weights
   * @param {Numbers} gradients
   * @param {number} rate
   */
  step(weights, gradients, rate) {
    const { betas: [slow, slower], epsilon, weight_decay: decay, max_gradient_norm: longest, max_weight_norm: heaviest } = this.settings;
    const norm = lengthOf(gradients);
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
      const [weight, length] = [Math.min(lengthOf(own), heaviest), lengthOf(step)];
      const scaled = rate * (weight > 0 && length > 0 ? weight / length : 1);
      for (let index = 0; index < size; index += 1) own[index] -= scaled * step[index];
    }
  }
}

export class AdamW extends Moments {
  #steps = 0;

  /**
   * @param {Tensor[]} tensors
   * @param {{betas: [number, number], epsilon: number, weight_decay: number, max_gradient_norm: number}} settings
   */
  constructor(tensors, settings) {
    super(tensors);
    this.settings = settings;
  }

  /**
   * @param {Numbers} weights
   * @param {Numbers} gradients
   * @param {number} rate
   */
  step(weights, gradients, rate) {
    const { betas: [slow, slower], epsilon, weight_decay: decay, max_gradient_norm: longest } = this.settings;
    const norm = lengthOf(gradients);
    if (!Number.isFinite(norm)) return;
    this.#steps += 1;
    const factor = Math.min(1, longest / (norm + 1e-6));
    const [first, second] = [1 - slow ** this.#steps, Math.sqrt(1 - slower ** this.#steps)];
    for (const { shape, start, size } of this.tensors) {
      const kept = shape.length > 1 ? 1 - rate * decay : 1;
      for (let at = start; at < start + size; at += 1) {
        const gradient = gradients[at] * factor;
        this.momentum[at] = slow * this.momentum[at] + (1 - slow) * gradient;
        this.variance[at] = slower * this.variance[at] + (1 - slower) * gradient * gradient;
        weights[at] = weights[at] * kept - ((rate / first) * this.momentum[at]) / (Math.sqrt(this.variance[at]) / second + epsilon);
      }
    }
  }
}
