// @ts-check
/* Everything that a learner computes with, in the one memory that WebAssembly multiplies in. */

import { Arithmetic } from "./matrix.js";
import { countOf } from "./parameters.js";

/** @typedef {import("../drawing/weights.js").ModelShape} ModelShape */
/** @typedef {ReturnType<typeof keptOf>} Kept What a layer keeps for its gradient. */
/** @typedef {ReturnType<typeof arraysOf>} Arrays */

const ROOM = 1.05; // rounding of every array to whole addresses

/**
 * @param {ModelShape} shape
 * @param {import("./parameters.js").Tensor[]} tensors
 * @param {number} batch sequences at a time
 * @param {import("./places.js").Places} places
 * @param {boolean} plain see Arithmetic
 */
export function arraysOf(shape, tensors, batch, { length, most }, plain) {
  const [width, inner, expanded] = [shape.hidden_size, shape.heads * shape.head_size, shape.feed_forward_multiplier * shape.hidden_size];
  const [rows, parameters] = [batch * length, countOf(tensors)];
  const kept = rows * (8 * width + 4 * inner + 5 * expanded + shape.heads * most + 2);
  const [words, codes] = [shape.text_vocabulary_size + shape.text_length, shape.image_vocabulary_size];
  const others = rows * (9 * width + 4 * inner + 3 * expanded + words + codes);
  const arithmetic = new Arithmetic(Math.ceil(ROOM * (3 * parameters + shape.kinds.length * kept + others)), plain);
  const array = (/** @type {number} */ count) => arithmetic.array(rows * count);
  const head = (/** @type {number} */ own, /** @type {number} */ choices) => ({
    rows: own,
    hidden: arithmetic.array(own * width),
    read: arithmetic.array(own * width),
    logits: arithmetic.array(own * choices),
  });
  return {
    arithmetic,
    weights: arithmetic.array(parameters),
    gradients: arithmetic.array(parameters),
    turned: arithmetic.array(parameters), // matrices with rows and columns exchanged
    kept: shape.kinds.map(() => keptOf(array, width, inner, expanded, shape.heads * most)),
    finalNorm: normOf(array, width),
    first: array(width), second: array(width), normal: array(width), hidden: array(width),
    intoQueryKeyValue: array(3 * inner), intoMixed: array(inner),
    intoExpanded: array(2 * expanded), intoGated: array(expanded),
    heads: {
      text: head(batch * shape.text_length, words),
      image: head(batch * shape.image_side ** 2, codes),
    },
  };
}

/** @param {(count: number) => Float32Array} array @param {number} width */
const normOf = (array, width) => ({ input: array(width), scale: array(1) });

/**
 * @param {(count: number) => Float32Array} array
 * @param {number} width
 * @param {number} inner
 * @param {number} expanded
 * @param {number} shares
 */
const keptOf = (array, width, inner, expanded, shares) => ({
  attentionNorm: normOf(array, width), attentionInput: array(width), queryKeyValue: array(3 * inner),
  shares: array(shares), mixed: array(inner), attentionOut: array(width),
  feedForwardNorm: normOf(array, width), feedForwardInput: array(width), expanded: array(2 * expanded),
  gates: array(expanded), slopes: array(expanded), gated: array(expanded), feedForwardOut: array(width),
});
