// @ts-check
/* Everything that a model computes with, in the one memory that WebAssembly multiplies in. */

import { Arithmetic } from "./matrix.js";
import { countOf } from "./parameters.js";

/** @typedef {import("../drawing/weights.js").ModelShape} ModelShape */
/** @typedef {ReturnType<typeof arraysOf>} Arrays */

/**
 * @param {ModelShape} shape
 * @param {import("./parameters.js").Tensor[]} tensors
 * @param {number} batch see Model
 * @param {import("./places.js").Places} places
 * @param {boolean} plain see Arithmetic
 */
export function arraysOf(shape, tensors, batch, { length, most }, plain) {
  const [width, inner, expanded] = [shape.hidden_size, shape.heads * shape.head_size, shape.feed_forward_multiplier * shape.hidden_size];
  const [words, codes] = [shape.text_vocabulary_size + shape.text_length, shape.image_vocabulary_size];
  const [rows, past, parameters] = [batch * length || 1, (batch || 1) * length, countOf(tensors)];
  /** @param {(count: number) => Float32Array} allocate */
  const arrange = (allocate) => {
    const array = (/** @type {number} */ count) => allocate(rows * count);
    const head = (/** @type {number} */ own, /** @type {number} */ choices) => ({
      rows: own,
      hidden: allocate(own * width),
      read: allocate(own * width),
      logits: allocate(own * choices),
    });
    const normal = array(width);
    // Read a position at a time, a sequence needs what later positions shift from, and attend to.
    const norm = () => ({ input: array(width), scale: array(1), normal: batch ? normal : allocate(past * width) });
    return {
      weights: allocate(parameters),
      gradients: allocate(batch && parameters),
      turned: allocate(parameters), // matrices with rows and columns exchanged
      kept: shape.kinds.map(() => ({
        attentionNorm: norm(), attentionInput: array(width), queryKeyValue: allocate(past * 3 * inner),
        shares: array(shape.heads * most), mixed: array(inner), attentionOut: array(width),
        feedForwardNorm: norm(), feedForwardInput: array(width), expanded: array(2 * expanded),
        gates: array(expanded), slopes: array(expanded), gated: array(expanded), feedForwardOut: array(width),
      })),
      finalNorm: { input: array(width), scale: array(1) },
      first: array(width), second: array(width), normal, hidden: array(width),
      intoQueryKeyValue: array(3 * inner), intoMixed: array(inner),
      intoExpanded: array(2 * expanded), intoGated: array(expanded),
      heads: {
        text: head(batch * shape.text_length, words),
        image: head(batch * shape.image_side ** 2 || 1, codes),
      },
    };
  };
  let count = 0;
  const none = new Float32Array();
  arrange((size) => {
    count += 4 * Math.ceil(size / 4); // as Arithmetic rounds
    return none;
  });
  const arithmetic = new Arithmetic(count, plain);
  return { arithmetic, ...arrange((size) => arithmetic.array(size)) };
}
