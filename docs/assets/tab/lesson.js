// @ts-check
/* The file that benchmarks/lesson.py packs: pictures to learn from, and how. */

import { Weights } from "../drawing/weights.js";

/**
 * @typedef {object} Recipe What the file says beside what every model says of itself.
 * @property {import("./lamb.js").LambSettings & {learning_rate: number}} optimizer
 * @property {{warmup_steps: number, total_steps: number}} schedule
 * @property {{learning_rate: number} & import("../volunteer/adamw.js").Settings} local steps
 * @property {import("../volunteer/shared.js").OuterSettings} outer
 * @property {number} round steps' sequences between two exchanges of sparse updates
 * @property {number} layer_scale
 * @property {number} target_batch
 * @property {number} micro_batch
 * @property {number} compression_threshold numbers of a tensor from which 8 bits are taken
 * @property {string[]} captions that are drawn while the model learns
 */
/** @typedef {import("../drawing/weights.js").About & Recipe} About */

export class Lesson {
  /** @param {ArrayBuffer} file */
  constructor(file) {
    this.weights = new Weights(file);
    this.about = /** @type {About} */ (this.weights.about);
    this.words = this.weights.bytes("lesson.words");
    this.codes = this.weights.bytes("lesson.codes");
  }

  /**
   * Captions and codes of pictures taken by chance.
   * @param {number} count
   * @param {() => number} chance gives numbers from 0 to below 1
   * @returns {import("./learner.js").Batch}
   */
  batch(count, chance) {
    const { text_length: length, image_side: side } = this.about.model;
    const [text, codes] = [new Uint8Array(count * length), new Uint8Array(count * side ** 2)];
    for (let place = 0; place < count; place += 1) {
      const picture = Math.floor((chance() * this.words.length) / length);
      text.set(this.words.subarray(picture * length, (picture + 1) * length), place * length);
      codes.set(this.codes.subarray(picture * side ** 2, (picture + 1) * side ** 2), place * side ** 2);
    }
    return { text, codes };
  }
}
