// @ts-check
/*
 * The text-to-image transformer of training/model/, one position after the other: a test holds its
 * logits against those of the Python.
 */

import { gelu, layerNorm, linear, softmax } from "./arithmetic.js";
import { rotation, seen, shiftSources } from "./layout.js";

/** @typedef {import("./weights.js").ModelShape} ModelShape */
/** @typedef {import("./arithmetic.js").Numbers} Numbers */
/** @typedef {{queryKeyValue: Numbers, output: Numbers, outputBias: Numbers, expand: Numbers, expandBias: Numbers, contract: Numbers, contractBias: Numbers}} Group */
/** @typedef {{weight: Numbers, bias: Numbers}} Norm */
/** @typedef {{kind: import("./weights.js").Kind, group: Group, attentionNorm: Norm, attentionScale: Numbers, feedForwardNorm: Norm, feedForwardScale: Numbers}} Depth */

export class Transformer {
  /** @param {{about: {model: ModelShape}, tensor: (name: string, ...sizes: number[]) => Numbers}} weights */
  constructor(weights) {
    const shape = weights.about.model;
    const { hidden_size: width, image_vocabulary_size: codes } = shape;
    const tensor = (/** @type {string} */ name, /** @type {number[]} */ ...sizes) => weights.tensor(`model.${name}`, ...sizes);
    const norm = (/** @type {string} */ name) => ({ weight: tensor(`${name}.weight`, width), bias: tensor(`${name}.bias`, width) });
    const inner = shape.heads * shape.head_size;
    const expanded = shape.feed_forward_multiplier * width;
    this.shape = shape;
    this.text = tensor("text_embedding.weight", shape.text_vocabulary_size + shape.text_length, width);
    this.image = tensor("image_embedding.weight", codes, width);
    this.imageBias = tensor("image_bias", codes);
    this.finalNorm = norm("final_norm");
    /** @type {Group[]} */
    const groups = Array.from({ length: Math.max(...shape.groups) + 1 }, (_, index) => ({
      queryKeyValue: tensor(`groups.${index}.attention.query_key_value.weight`, 3 * inner, width),
      output: tensor(`groups.${index}.attention.output.weight`, width, inner),
      outputBias: tensor(`groups.${index}.attention.output.bias`, width),
      expand: tensor(`groups.${index}.feed_forward.expand.weight`, 2 * expanded, width),
      expandBias: tensor(`groups.${index}.feed_forward.expand.bias`, 2 * expanded),
      contract: tensor(`groups.${index}.feed_forward.contract.weight`, width, expanded),
      contractBias: tensor(`groups.${index}.feed_forward.contract.bias`, width),
    }));
    /** @type {Depth[]} */
    this.depths = shape.kinds.map((kind, depth) => ({
      kind,
      group: groups[shape.groups[depth]],
      attentionNorm: norm(`depths.${depth}.attention_norm`),
      attentionScale: tensor(`depths.${depth}.attention_scale`, width),
      feedForwardNorm: norm(`depths.${depth}.feed_forward_norm`),
      feedForwardScale: tensor(`depths.${depth}.feed_forward_scale`, width),
    }));
  }

  /** Read a caption. @param {number[]} ids of its words and its padding */
  begin(ids) {
    const { begin_id: begin, padding_id: padding, text_vocabulary_size: words } = this.shape;
    const sequence = new Sequence(this);
    // Padding has a token for each place.
    const tokens = [begin, ...ids.map((id, place) => (id === padding ? words + place : id))];
    for (const token of tokens) sequence.read(this.#row(this.text, token));
    return sequence;
  }

  /** @param {number} code */
  embedding(code) {
    return this.#row(this.image, code);
  }

  /** @type {(table: Numbers, index: number) => Numbers} */
  #row(table, index) {
    const { hidden_size: width } = this.shape;
    return table.subarray(index * width, (index + 1) * width);
  }
}

/** A picture in the making: what each depth must remember of the positions read so far. */
class Sequence {
  #position = 0;
  /** @type {Numbers} */
  #hidden = new Float64Array();

  /** @param {Transformer} model */
  constructor(model) {
    this.model = model;
    this.past = model.depths.map(() => ({
      /** @type {Numbers[]} */ keys: [],
      /** @type {Numbers[]} */ values: [],
      /** @type {Numbers[]} */ attention: [],
      /** @type {Numbers[]} */ feedForward: [],
    }));
  }

  /** Logits of the code that comes next. */
  get logits() {
    return linear(this.model.image, this.model.imageBias, this.#hidden);
  }

  /** @param {number} code Read one more code of the picture. */
  add(code) {
    this.read(this.model.embedding(code));
  }

  /** @param {Numbers} embedding */
  read(embedding) {
    // Two streams, as in training/model/reversible.py.
    let [first, second] = [embedding, embedding];
    this.model.depths.forEach((own, depth) => {
      first = scaledSum(first, this.#attend(own, depth, second), own.attentionScale);
      second = scaledSum(second, this.#feedForward(own, depth, first), own.feedForwardScale);
    });
    const mean = Float64Array.from(first, (value, index) => (value + second[index]) / 2);
    const { weight, bias } = this.model.finalNorm;
    this.#hidden = layerNorm(mean, weight, bias);
    this.#position += 1;
  }

  /** @type {(own: Depth, depth: number, input: Numbers) => Float64Array<ArrayBuffer>} */
  #attend({ kind, group, attentionNorm: { weight, bias } }, depth, input) {
    const { shape } = this.model;
    const past = this.past[depth];
    const all = linear(group.queryKeyValue, undefined, this.#shift(past.attention, layerNorm(input, weight, bias)));
    const inner = shape.heads * shape.head_size;
    const turn = rotation(shape, this.#position);
    const query = rotated(all.subarray(0, inner), shape.head_size, turn);
    past.keys.push(rotated(all.subarray(inner, 2 * inner), shape.head_size, turn));
    past.values.push(all.subarray(2 * inner));
    const places = seen(shape, kind, this.#position);
    const mixed = new Float64Array(inner);
    for (let start = 0; start < inner; start += shape.head_size) mix(query, past, places, start, shape.head_size, mixed);
    return linear(group.output, group.outputBias, mixed);
  }

  /** @type {(own: Depth, depth: number, input: Numbers) => Float64Array<ArrayBuffer>} */
  #feedForward({ group, feedForwardNorm: { weight, bias } }, depth, input) {
    const shifted = this.#shift(this.past[depth].feedForward, layerNorm(input, weight, bias));
    const both = linear(group.expand, group.expandBias, shifted);
    const half = both.length / 2;
    const gated = Float64Array.from({ length: half }, (_, index) => both[index] * gelu(both[half + index]));
    return linear(group.contract, group.contractBias, gated);
  }

  /**
   * Take the first half of the channels from positions before this one.
   * @param {Numbers[]} past inputs of the positions before, to which this one is added
   * @param {Numbers} input
   */
  #shift(past, input) {
    past.push(input);
    if (!this.model.shape.token_shift) return input;
    const quarter = input.length / 4;
    const out = Float64Array.from(input);
    shiftSources(this.model.shape, this.#position).forEach((source, index) => {
      const start = index * quarter;
      if (source < 0) out.fill(0, start, start + quarter);
      else out.set(past[source].subarray(start, start + quarter), start);
    });
    return out;
  }
}

/** @type {(stream: Numbers, branch: Numbers, scale: Numbers) => Float64Array<ArrayBuffer>} */
const scaledSum = (stream, branch, scale) => Float64Array.from(stream, (value, index) => value + branch[index] * scale[index]);

/**
 * Turn channel i and the channel half a head further of each head by the angle i.
 * @param {Numbers} vector
 * @param {number} size of a head
 * @param {{cosine: Numbers, sine: Numbers}} turn
 */
function rotated(vector, size, { cosine, sine }) {
  const half = size / 2;
  return Float64Array.from(vector, (value, index) => {
    const place = index % size;
    const angle = place % half;
    return place < half
      ? value * cosine[angle] - vector[index + half] * sine[angle]
      : value * cosine[angle] + vector[index - half] * sine[angle];
  });
}

/**
 * One head's mean of the values that it sees, weighted by how their keys fit the query.
 * @param {Numbers} query
 * @param {{keys: Numbers[], values: Numbers[]}} past
 * @param {number[]} places
 * @param {number} start of the head's channels
 * @param {number} size
 * @param {Float64Array} out
 */
function mix(query, { keys, values }, places, start, size, out) {
  const scores = places.map((place) => {
    let sum = 0;
    for (let index = start; index < start + size; index += 1) sum += query[index] * keys[place][index];
    return sum / Math.sqrt(size);
  });
  softmax(scores).forEach((share, order) => {
    const value = values[places[order]];
    for (let index = start; index < start + size; index += 1) out[index] += share * value[index];
  });
}
