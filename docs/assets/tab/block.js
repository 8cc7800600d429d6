// @ts-check
/* A layer of the transformer, as training/model/layers.py has it, on two streams, with its gradient. */

import { attend, attendBack, rotate } from "./attention.js";
import { addScaled, gate, gateBack, normalize, normalizeBack, scaleBack, shift, shiftBack } from "./layers.js";

/** @typedef {Float32Array} Numbers */

export class Block {
  /**
   * @param {import("./linear.js").Linear} linear
   * @param {import("./memory.js").Arrays} arrays
   * @param {import("./places.js").Places} places
   * @param {import("../drawing/weights.js").ModelShape} shape
   * @param {number} depth
   */
  constructor(linear, arrays, places, shape, depth) {
    this.linear = linear;
    this.arrays = arrays;
    this.places = places;
    this.shape = shape;
    this.kept = arrays.kept[depth];
    this.sight = places.sights[depth];
    this.own = `depths.${depth}`;
    this.group = `groups.${shape.groups[depth]}`;
  }

  /** @param {number} at Position of the first row; earlier calls had those before it. */
  forward(at) {
    const { kept, linear, own, group, sight, arrays: { first, second } } = this;
    const start = 3 * at * sight.heads * sight.size;
    const queryKeyValue = kept.queryKeyValue.subarray(start, start + 3 * kept.mixed.length);
    this.#normalize("attention_norm", second, kept.attentionNorm, kept.attentionInput, at);
    linear.apply(kept.attentionInput, `${group}.attention.query_key_value.weight`, undefined, queryKeyValue);
    rotate(queryKeyValue, this.places.turns, sight, 1, at);
    attend(kept.queryKeyValue, sight, kept.shares, kept.mixed, at);
    linear.apply(kept.mixed, `${group}.attention.output.weight`, `${group}.attention.output.bias`, kept.attentionOut);
    addScaled(first, kept.attentionOut, linear.tensor(`${own}.attention_scale`));
    this.#normalize("feed_forward_norm", first, kept.feedForwardNorm, kept.feedForwardInput, at);
    linear.apply(kept.feedForwardInput, `${group}.feed_forward.expand.weight`, `${group}.feed_forward.expand.bias`, kept.expanded);
    gate(kept.expanded, this.#half, kept.gates, kept.slopes, kept.gated);
    linear.apply(kept.gated, `${group}.feed_forward.contract.weight`, `${group}.feed_forward.contract.bias`, kept.feedForwardOut);
    addScaled(second, kept.feedForwardOut, linear.tensor(`${own}.feed_forward_scale`));
  }

  /** The streams `first` and `second` hold their gradients: those after this layer, then those before. */
  backward() {
    const { kept, linear, group, sight, arrays } = this;
    const { first, second, hidden: into, intoGated, intoExpanded, intoMixed, intoQueryKeyValue } = arrays;
    this.#scaleBack(second, kept.feedForwardOut, "feed_forward_scale", into);
    linear.back(into, kept.gated, `${group}.feed_forward.contract.weight`, `${group}.feed_forward.contract.bias`, intoGated);
    gateBack(intoGated, kept.expanded, this.#half, kept.gates, kept.slopes, intoExpanded);
    linear.back(intoExpanded, kept.feedForwardInput, `${group}.feed_forward.expand.weight`, `${group}.feed_forward.expand.bias`, into);
    this.#normalizeBack("feed_forward_norm", into, kept.feedForwardNorm, first);
    this.#scaleBack(first, kept.attentionOut, "attention_scale", into);
    linear.back(into, kept.mixed, `${group}.attention.output.weight`, `${group}.attention.output.bias`, intoMixed);
    attendBack(intoMixed, kept.queryKeyValue, sight, kept.shares, intoQueryKeyValue);
    rotate(intoQueryKeyValue, this.places.turns, sight, -1, 0);
    linear.back(intoQueryKeyValue, kept.attentionInput, `${group}.attention.query_key_value.weight`, undefined, into);
    this.#normalizeBack("attention_norm", into, kept.attentionNorm, second);
  }

  /** Channels of GEGLU's output. */
  get #half() {
    return this.shape.feed_forward_multiplier * this.shape.hidden_size;
  }

  /** @type {(name: string, x: Numbers, kept: import("./layers.js").KeptNorm & {normal: Numbers}, out: Numbers, at: number) => void} */
  #normalize(name, x, kept, out, at) {
    const { linear, own, shape: { token_shift: shifts, hidden_size: width }, places: { sources } } = this;
    const into = shifts ? kept.normal.subarray(at * width, at * width + out.length) : out;
    normalize(x, linear.tensor(`${own}.${name}.weight`), linear.tensor(`${own}.${name}.bias`), kept, into);
    if (shifts) shift(kept.normal, sources, width, out, at);
  }

  /** @type {(name: string, gradient: Numbers, kept: import("./layers.js").KeptNorm, intoX: Numbers) => void} */
  #normalizeBack(name, gradient, kept, intoX) {
    const { linear, own, shape, arrays: { normal }, places: { sources } } = this;
    const given = shape.token_shift ? normal : gradient;
    if (shape.token_shift) shiftBack(gradient, sources, shape.hidden_size, given);
    normalizeBack(given, linear.tensor(`${own}.${name}.weight`), kept, intoX, linear.gradient(`${own}.${name}.weight`), linear.gradient(`${own}.${name}.bias`));
  }

  /**
   * @param {Numbers} gradient of a stream
   * @param {Numbers} out of its branch
   * @param {string} name of the branch's scale
   * @param {Numbers} into the gradient of `out`, which is overwritten
   */
  #scaleBack(gradient, out, name, into) {
    const { linear, own } = this;
    scaleBack(gradient, out, linear.tensor(`${own}.${name}`), linear.gradient(`${own}.${name}`), into);
  }
}
