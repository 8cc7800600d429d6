// @ts-check
/*
 * Local steps with error feedback, as training/sparse/peer.py makes them: a volunteer learns on its
 * own, hands in the largest elements of what it learned, and keeps the rest for later.
 */

import { AdamW } from "./adamw.js";
import { decode, layoutOf } from "./sparse.js";

/** @typedef {Float32Array<ArrayBuffer>} Numbers */
/** @typedef {{moments?: import("./adamw.js").Moments, residual?: Numbers}} Memory */

export class LocalSteps {
  /** Where the steps of this round began. @type {Numbers | undefined} */
  #start;
  /** Of the steps of this round. @type {number[]} */
  losses = [];

  /**
   * @param {import("../tab/learner.js").Learner} learner
   * @param {{learning_rate: number} & import("./adamw.js").Settings} settings
   * @param {Memory} [memory] to go on from, if it is of this model
   */
  constructor(learner, settings, { moments, residual } = {}) {
    this.learner = learner;
    this.settings = settings;
    this.layout = layoutOf(learner.tensors.map(({ size }) => size));
    const isOfModel = residual?.length === this.layout.elements;
    this.optimizer = new AdamW(learner.tensors, settings, isOfModel ? moments : undefined);
    this.residual = isOfModel ? /** @type {Numbers} */ (residual) : new Float32Array(this.layout.elements);
  }

  /** @param {Numbers} weights that all share, from which a round begins */
  begin(weights) {
    this.losses = [];
    this.#start = weights.map((weight, at) => weight - this.residual[at]);
    this.learner.weights.set(this.#start);
  }

  /** @param {import("../tab/learner.js").Batch} batch @param {number} factor of the peak learning rate */
  step(batch, factor) {
    const { learner, optimizer, settings } = this;
    learner.gradients.fill(0);
    const loss = learner.learn(batch);
    if (optimizer.step(learner.weights, learner.gradients, factor * settings.learning_rate)) this.losses.push(loss);
    return loss;
  }

  /** Add what was learned to what is still to be sent; false where it is of no use. */
  end() {
    const [start, { weights }] = [this.#start, this.learner];
    if (!this.losses.length || !weights.every(Number.isFinite)) return false;
    this.#start = undefined;
    if (start) this.residual = this.residual.map((value, at) => value + Math.fround(start[at] - weights[at]));
    return true;
  }

  /** @param {Uint8Array} content of the update that was taken: it is no longer to be sent */
  settle(content) {
    const { places, values } = decode(content, this.layout);
    places.forEach((place, at) => (this.residual[place] -= values[at]));
  }

  /** Begin again without what is still to be sent. */
  giveUp() {
    this.residual.fill(0);
  }
}
