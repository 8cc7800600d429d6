// @ts-check
/*
 * The transformer as a thing that learns: losses and gradients of a batch. A test holds every gradient
 * against PyTorch's.
 */

import { crossEntropy, normalizeBack } from "./layers.js";
import { Model } from "./model.js";

/** @typedef {import("../drawing/weights.js").ModelShape} ModelShape */
/** @typedef {Float32Array} Numbers */
/** @typedef {{text: ArrayLike<number>, codes: ArrayLike<number>}} Batch text: ids of the words, 0 for none; both one sequence after the other */

const IMAGE_WEIGHT = 7; // of the image loss against the text loss's 1

export class Learner extends Model {
  /**
   * @param {ModelShape} shape
   * @param {number} batch sequences at a time
   * @param {boolean} [plain] see Arithmetic
   */
  constructor(shape, batch, plain = false) {
    super(shape, batch, plain);
    this.batch = batch;
    this.gradients = this.arrays.gradients;
  }

  /**
   * Adds the gradients of a batch's loss to `gradients`.
   * @param {Batch} batch
   * @returns {number} (text + 7 image) / 8, of the batch's mean cross-entropies
   */
  learn({ text, codes }) {
    const named = Int32Array.from(text, (id, at) => this.token(id, at % this.shape.text_length));
    this.linear.turn();
    this.#embed(named, codes);
    this.forward(0);
    const loss = this.#finish(named, codes);
    for (const block of this.blocks.toReversed()) block.backward();
    this.#embedBack(named, codes);
    return loss;
  }

  /** @type {(text: Int32Array, codes: ArrayLike<number>) => void} */
  #embed(text, codes) {
    const { first } = this.arrays;
    const [words, pictures] = [this.linear.tensor("text_embedding.weight"), this.linear.tensor("image_embedding.weight")];
    const width = this.shape.hidden_size;
    this.#eachToken(text, codes, (row, id, isText) => {
      first.set((isText ? words : pictures).subarray(id * width, (id + 1) * width), row * width);
    });
  }

  /** @type {(text: Int32Array, codes: ArrayLike<number>) => void} */
  #embedBack(text, codes) {
    const { first, second } = this.arrays;
    const [words, pictures] = [this.linear.gradient("text_embedding.weight"), this.linear.gradient("image_embedding.weight")];
    const width = this.shape.hidden_size;
    this.#eachToken(text, codes, (row, id, isText) => {
      const into = isText ? words : pictures;
      for (let index = 0; index < width; index += 1) into[id * width + index] += first[row * width + index] + second[row * width + index];
    });
  }

  /**
   * The tokens that are read: one that begins, the caption, the picture's codes without the last.
   * @type {(text: Int32Array, codes: ArrayLike<number>, take: (row: number, id: number, isText: boolean) => void) => void}
   */
  #eachToken(text, codes, take) {
    const { text_length: words, image_side: side, begin_id: begin } = this.shape;
    for (let sequence = 0, row = 0; sequence < this.batch; sequence += 1) {
      take(row++, begin, true);
      for (let place = 0; place < words; place += 1) take(row++, text[sequence * words + place], true);
      for (let place = 0; place < side ** 2 - 1; place += 1) take(row++, codes[sequence * side ** 2 + place], false);
    }
  }

  /** The loss; the streams become their gradients. @type {(text: Int32Array, codes: ArrayLike<number>) => number} */
  #finish(text, codes) {
    const { first, second, hidden, finalNorm, heads } = this.arrays;
    const { linear, shape: { hidden_size: width } } = this;
    this.#exchange((target, at, from) => target.set(hidden.subarray(from, from + width), at));
    const loss = this.#head("text", heads.text, text, 1) + this.#head("image", heads.image, codes, IMAGE_WEIGHT);
    this.#exchange((target, at, from) => hidden.set(target.subarray(at, at + width), from));
    first.fill(0);
    normalizeBack(hidden, linear.tensor("final_norm.weight"), finalNorm, first, linear.gradient("final_norm.weight"), linear.gradient("final_norm.bias"));
    for (let at = 0; at < first.length; at += 1) second[at] = first[at] /= 2;
    return loss;
  }

  /**
   * Calls `copy` with the place of each row of hidden states in its head, and in the sequence.
   * @type {(copy: (target: Numbers, at: number, from: number) => void) => void}
   */
  #exchange(copy) {
    const { text, image } = this.arrays.heads;
    const { hidden_size: width, text_length: words, image_side: side } = this.shape;
    for (let row = 0; row < this.batch * this.length; row += 1) {
      const [sequence, place] = [Math.floor(row / this.length), row % this.length];
      if (place < words) copy(text.hidden, (sequence * words + place) * width, row * width);
      else copy(image.hidden, (sequence * side ** 2 + place - words) * width, row * width);
    }
  }

  /**
   * One head's share of the loss; its hidden states become their gradients.
   * @param {"text" | "image"} kind
   * @param {{rows: number, hidden: Numbers, read: Numbers, logits: Numbers}} head
   * @param {ArrayLike<number>} targets
   * @param {number} weight of this loss against the other's
   */
  #head(kind, { rows, hidden, read, logits }, targets, weight) {
    const [name, bias] = [`${kind}_embedding.weight`, `${kind}_bias`];
    const factor = weight / (1 + IMAGE_WEIGHT) / rows;
    this.linear.apply(hidden, name, bias, logits);
    const loss = crossEntropy(logits, logits.length / rows, targets, factor);
    read.set(hidden);
    this.linear.back(logits, read, name, bias, hidden);
    return loss * factor;
  }
}
