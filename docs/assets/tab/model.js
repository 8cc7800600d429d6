// @ts-check
/* The text-to-image transformer of training/model/, on rows as in layers.js. */

import { Block } from "./block.js";
import { normalize } from "./layers.js";
import { Linear } from "./linear.js";
import { arraysOf } from "./memory.js";
import { tensorsOf } from "./parameters.js";
import { placesOf } from "./places.js";

export class Model {
  /**
   * @param {import("../drawing/weights.js").ModelShape} shape
   * @param {number} batch whole sequences at a time; 0 for one, a position at a time, without gradients
   * @param {boolean} plain see Arithmetic
   */
  constructor(shape, batch, plain) {
    const places = placesOf(shape);
    this.shape = shape;
    this.length = places.length;
    this.tensors = tensorsOf(shape);
    this.arrays = arraysOf(shape, this.tensors, batch, places, plain);
    this.linear = new Linear(this.arrays, this.tensors);
    this.blocks = shape.kinds.map((_, depth) => new Block(this.linear, this.arrays, places, shape, depth));
    this.weights = this.arrays.weights;
  }

  /** Padding has a token for each place. @type {(id: number, place: number) => number} */
  token(id, place) {
    return id === this.shape.padding_id ? this.shape.text_vocabulary_size + place : id;
  }

  /** From embeddings in `first` to hidden states. @param {number} at Position of the first row. */
  forward(at) {
    const { arrays: { first, second, normal: mean, hidden, finalNorm }, linear } = this;
    second.set(first);
    for (const block of this.blocks) block.forward(at);
    for (let index = 0; index < mean.length; index += 1) mean[index] = (first[index] + second[index]) / 2;
    normalize(mean, linear.tensor("final_norm.weight"), linear.tensor("final_norm.bias"), finalNorm, hidden);
  }
}
