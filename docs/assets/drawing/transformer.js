// @ts-check
/* Reads a caption and a picture's codes one position after the other, and says what comes next. */

import { Model } from "../tab/model.js";

export class Transformer extends Model {
  #position = 0;

  /** @param {import("./weights.js").ModelShape} shape */
  constructor(shape) {
    super(shape, 0, true); // a single row fills no tile
  }

  /** @param {Float32Array[]} weights that are all tensors, one after the other */
  take(weights) {
    let start = 0;
    for (const part of weights) {
      this.weights.set(part, start);
      start += part.length;
    }
    this.linear.turn();
  }

  /** Begin a picture. @param {number[]} ids of the caption's words and its padding */
  begin(ids) {
    this.#position = 0;
    for (const token of [this.shape.begin_id, ...ids.map((id, place) => this.token(id, place))]) this.#read("text", token);
  }

  /** @param {number} code Read one more code of the picture. */
  add(code) {
    this.#read("image", code);
  }

  /** Logits of the code that comes next, until it is read. */
  get logits() {
    const { hidden, heads: { image: { logits } } } = this.arrays;
    this.linear.apply(hidden, "image_embedding.weight", "image_bias", logits);
    return logits;
  }

  /** @type {(kind: "text" | "image", id: number) => void} */
  #read(kind, id) {
    const width = this.shape.hidden_size;
    this.arrays.first.set(this.linear.tensor(`${kind}_embedding.weight`).subarray(id * width, (id + 1) * width));
    this.forward(this.#position);
    this.#position += 1;
  }
}
