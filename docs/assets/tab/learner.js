// @ts-check
/*
 * The text-to-image transformer of training/model/ as a thing that learns: losses and gradients of a
 * batch. A test holds every gradient against PyTorch's. Rows: positions of all sequences, one after
 * the other.
 */

import { rotation, seen, shiftSources } from "../drawing/layout.js";
import { attend, attendBack, crossEntropy, gate, gateBack, normalize, normalizeBack, rotate, shift, shiftBack } from "./layers.js";
import { Arithmetic, matrix, transposed } from "./matrix.js";
import { countOf, tensorsOf } from "./parameters.js";

/** @typedef {import("../drawing/weights.js").ModelShape} ModelShape */
/** @typedef {Float32Array} Numbers */
/** @typedef {{text: ArrayLike<number>, codes: ArrayLike<number>}} Batch text: ids of the words, 0 for none; both one sequence after the other */

const IMAGE_WEIGHT = 7; // of the image loss against the text loss's 1
const ROOM = 1.05; // rounding of every array to whole addresses

export class Learner {
  /**
   * @param {ModelShape} shape
   * @param {number} batch sequences at a time
   * @param {boolean} [plain] see Arithmetic
   */
  constructor(shape, batch, plain = false) {
    const { hidden_size: width, heads, head_size: size, image_side: side, text_length: text } = shape;
    [this.shape, this.batch, this.length] = [shape, batch, text + side ** 2];
    [this.width, this.inner, this.expanded] = [width, heads * size, shape.feed_forward_multiplier * width];
    this.tensors = tensorsOf(shape);
    this.count = countOf(this.tensors);
    this.#place();
    const rows = batch * this.length;
    const kept = rows * (8 * width + 4 * this.inner + 5 * this.expanded + heads * this.most + 2);
    const numbers = 3 * this.count + shape.kinds.length * kept + rows * (8 * width + 4 * this.inner + 4 * this.expanded + 200);
    this.arithmetic = new Arithmetic(Math.ceil(ROOM * numbers), plain);
    this.weights = this.arithmetic.array(this.count);
    this.gradients = this.arithmetic.array(this.count);
    this.#allocate(rows);
  }

  /** What is the same for every batch: what positions see, where they shift from, how they turn. */
  #place() {
    const { shape, length } = this;
    const positions = Array.from({ length }, (_, position) => position);
    const all = positions.map((position) => rotation(shape, position));
    this.turns = {
      cosine: Float32Array.from(all.flatMap(({ cosine }) => [...cosine])),
      sine: Float32Array.from(all.flatMap(({ sine }) => [...sine])),
    };
    this.sources = Int32Array.from(positions.flatMap((position) => shiftSources(shape, position)));
    const sights = shape.kinds.map((kind) => positions.map((position) => Int32Array.from(seen(shape, kind, position))));
    this.most = Math.max(...sights.flat().map((places) => places.length));
    this.sights = sights.map((places) => ({ heads: shape.heads, size: shape.head_size, seen: places, most: this.most }));
  }

  /** @param {number} rows */
  #allocate(rows) {
    const { width, inner, expanded, shape } = this;
    const array = (/** @type {number} */ count) => this.arithmetic.array(rows * count);
    const norm = () => ({ input: array(width), scale: array(1) });
    this.kept = shape.kinds.map(() => ({
      attentionNorm: norm(), attentionInput: array(width), queryKeyValue: array(3 * inner),
      shares: array(shape.heads * this.most), mixed: array(inner), attentionOut: array(width),
      feedForwardNorm: norm(), feedForwardInput: array(width), expanded: array(2 * expanded),
      gates: array(expanded), slopes: array(expanded), gated: array(expanded), feedForwardOut: array(width),
    }));
    this.finalNorm = norm();
    [this.first, this.second, this.normal, this.hidden] = [array(width), array(width), array(width), array(width)];
    [this.intoQueryKeyValue, this.intoExpanded, this.intoGated] = [array(3 * inner), array(2 * expanded), array(expanded)];
    this.intoMixed = array(inner);
    const words = shape.text_vocabulary_size + shape.text_length;
    const [texts, codes] = [this.batch * shape.text_length, this.batch * shape.image_side ** 2];
    this.heads = {
      text: { rows: texts, hidden: this.arithmetic.array(texts * width), read: this.arithmetic.array(texts * width), logits: this.arithmetic.array(texts * words) },
      image: { rows: codes, hidden: this.arithmetic.array(codes * width), read: this.arithmetic.array(codes * width), logits: this.arithmetic.array(codes * shape.image_vocabulary_size) },
    };
    this.turned = this.arithmetic.array(this.count); // matrices with rows and columns exchanged
  }

  /** @param {string} name @param {Numbers} [of] A tensor of the weights, or of another flat vector. */
  tensor(name, of = this.weights) {
    const found = this.tensors.find((one) => one.name === name);
    if (!found) throw new Error(`no tensor ${name}`);
    return of.subarray(found.start, found.start + found.size);
  }

  /**
   * Adds the gradients of a batch's loss to `gradients`.
   *
   * @param {Batch} batch
   * @returns {number} (text + 7 image) / 8, of the batch's mean cross-entropies
   */
  learn({ text, codes }) {
    const { begin_id: begin, padding_id: padding, text_length: words, text_vocabulary_size: vocabulary } = this.shape;
    const named = Int32Array.from(text, (id, at) => (id === padding ? vocabulary + (at % words) : id));
    this.#turn();
    this.#embed(named, codes, begin);
    for (const depth of this.shape.kinds.keys()) this.#forward(depth);
    const loss = this.#finish(named, codes);
    for (const depth of [...this.shape.kinds.keys()].reverse()) this.#backward(depth);
    this.#embedBack(named, codes, begin);
    return loss;
  }

  #turn() {
    for (const { shape: dimensions, start } of this.tensors) {
      if (dimensions.length < 2) continue;
      const [rows, columns] = dimensions;
      for (let row = 0, at = start; row < rows; row += 1) {
        for (let column = 0; column < columns; column += 1, at += 1) this.turned[start + column * rows + row] = this.weights[at];
      }
    }
  }

  /**
   * out = x W^T + bias
   *
   * @param {Numbers} x
   * @param {string} name of the weight
   * @param {Numbers | undefined} bias
   * @param {Numbers} out
   */
  #linear(x, name, bias, out) {
    const { shape: [to, from] } = this.#find(name);
    const rows = x.length / from;
    if (bias) for (let start = 0; start < out.length; start += to) out.set(bias, start);
    else out.fill(0);
    this.arithmetic.add(matrix(out, rows, to), matrix(x, rows, from), matrix(this.tensor(name, this.turned), from, to));
  }

  /**
   * @param {Numbers} gradient of the output
   * @param {Numbers} x
   * @param {string} name
   * @param {string | undefined} bias its name
   * @param {Numbers} into the gradient of x, which is overwritten
   */
  #linearBack(gradient, x, name, bias, into) {
    const { shape: [to, from] } = this.#find(name);
    const rows = x.length / from;
    const given = matrix(gradient, rows, to);
    this.arithmetic.add(matrix(this.tensor(name, this.gradients), to, from), transposed(given), matrix(x, rows, from));
    into.fill(0);
    this.arithmetic.add(matrix(into, rows, from), given, matrix(this.tensor(name), to, from));
    if (!bias) return;
    const sums = this.tensor(bias, this.gradients);
    for (let start = 0; start < gradient.length; start += to) {
      for (let index = 0; index < to; index += 1) sums[index] += gradient[start + index];
    }
  }

  /** @param {string} name */
  #find(name) {
    return /** @type {import("./parameters.js").Tensor} */ (this.tensors.find((one) => one.name === name));
  }

  /**
   * @param {Int32Array} text
   * @param {ArrayLike<number>} codes
   * @param {number} begin
   */
  #embed(text, codes, begin) {
    const [words, pictures] = [this.tensor("text_embedding.weight"), this.tensor("image_embedding.weight")];
    const width = this.width;
    this.#eachToken(text, codes, begin, (row, id, isText) => {
      this.first.set((isText ? words : pictures).subarray(id * width, (id + 1) * width), row * width);
    });
    this.second.set(this.first);
  }

  /**
   * @param {Int32Array} text
   * @param {ArrayLike<number>} codes
   * @param {number} begin
   */
  #embedBack(text, codes, begin) {
    const [words, pictures] = [this.tensor("text_embedding.weight", this.gradients), this.tensor("image_embedding.weight", this.gradients)];
    const width = this.width;
    this.#eachToken(text, codes, begin, (row, id, isText) => {
      const into = isText ? words : pictures;
      for (let index = 0; index < width; index += 1) {
        into[id * width + index] += this.first[row * width + index] + this.second[row * width + index];
      }
    });
  }

  /**
   * The tokens that are read: one that begins, the caption, the picture's codes without the last.
   *
   * @param {Int32Array} text
   * @param {ArrayLike<number>} codes
   * @param {number} begin
   * @param {(row: number, id: number, isText: boolean) => void} take
   */
  #eachToken(text, codes, begin, take) {
    const { text_length: words, image_side: side } = this.shape;
    for (let sequence = 0, row = 0; sequence < this.batch; sequence += 1) {
      take(row++, begin, true);
      for (let place = 0; place < words; place += 1) take(row++, text[sequence * words + place], true);
      for (let place = 0; place < side ** 2 - 1; place += 1) take(row++, codes[sequence * side ** 2 + place], false);
    }
  }

  /** @param {number} depth */
  #forward(depth) {
    const kept = this.kept[depth];
    const [own, group] = [`depths.${depth}`, `groups.${this.shape.groups[depth]}`];
    this.#normalize(`${own}.attention_norm`, this.second, kept.attentionNorm, kept.attentionInput);
    this.#linear(kept.attentionInput, `${group}.attention.query_key_value.weight`, undefined, kept.queryKeyValue);
    rotate(kept.queryKeyValue, this.turns, this.sights[depth], 1);
    attend(kept.queryKeyValue, this.sights[depth], kept.shares, kept.mixed);
    this.#linear(kept.mixed, `${group}.attention.output.weight`, this.tensor(`${group}.attention.output.bias`), kept.attentionOut);
    addScaled(this.first, kept.attentionOut, this.tensor(`${own}.attention_scale`));
    this.#normalize(`${own}.feed_forward_norm`, this.first, kept.feedForwardNorm, kept.feedForwardInput);
    this.#linear(kept.feedForwardInput, `${group}.feed_forward.expand.weight`, this.tensor(`${group}.feed_forward.expand.bias`), kept.expanded);
    gate(kept.expanded, this.expanded, kept.gates, kept.slopes, kept.gated);
    this.#linear(kept.gated, `${group}.feed_forward.contract.weight`, this.tensor(`${group}.feed_forward.contract.bias`), kept.feedForwardOut);
    addScaled(this.second, kept.feedForwardOut, this.tensor(`${own}.feed_forward_scale`));
  }

  /**
   * @param {string} name
   * @param {Numbers} x
   * @param {import("./layers.js").KeptNorm} kept
   * @param {Numbers} out
   */
  #normalize(name, x, kept, out) {
    const isShifted = this.shape.token_shift;
    normalize(x, this.tensor(`${name}.weight`), this.tensor(`${name}.bias`), kept, isShifted ? this.normal : out);
    if (isShifted) shift(this.normal, this.sources, this.width, out);
  }

  /**
   * The loss; the streams `first` and `second` become their gradients.
   *
   * @param {Int32Array} text
   * @param {ArrayLike<number>} codes
   */
  #finish(text, codes) {
    const { first, second, normal: mean, hidden, heads, width, shape } = this;
    for (let at = 0; at < mean.length; at += 1) mean[at] = (first[at] + second[at]) / 2;
    normalize(mean, this.tensor("final_norm.weight"), this.tensor("final_norm.bias"), this.finalNorm, hidden);
    this.#exchange(heads, (target, at, from) => target.set(hidden.subarray(from, from + width), at));
    const textLoss = this.#head("text", heads.text, text, 1 / (1 + IMAGE_WEIGHT), shape.text_vocabulary_size + shape.text_length);
    const imageLoss = this.#head("image", heads.image, codes, IMAGE_WEIGHT / (1 + IMAGE_WEIGHT), shape.image_vocabulary_size);
    this.#exchange(heads, (target, at, from) => hidden.set(target.subarray(at, at + width), from));
    first.fill(0);
    normalizeBack(hidden, this.tensor("final_norm.weight"), this.finalNorm, first, this.tensor("final_norm.weight", this.gradients), this.tensor("final_norm.bias", this.gradients));
    for (let at = 0; at < first.length; at += 1) second[at] = first[at] /= 2;
    return textLoss + imageLoss;
  }

  /**
   * Calls `copy` with the place of each row of hidden states in its head, and in the sequence.
   *
   * @param {Learner["heads"]} heads
   * @param {(target: Numbers, at: number, from: number) => void} copy
   */
  #exchange({ text, image }, copy) {
    const { width, length } = this;
    const [words, codes] = [this.shape.text_length, this.shape.image_side ** 2];
    for (let row = 0; row < this.batch * length; row += 1) {
      const [sequence, place] = [Math.floor(row / length), row % length];
      if (place < words) copy(text.hidden, (sequence * words + place) * width, row * width);
      else copy(image.hidden, (sequence * codes + place - words) * width, row * width);
    }
  }

  /**
   * One head's share of the loss; its hidden states become their gradients.
   *
   * @param {"text" | "image"} kind
   * @param {{rows: number, hidden: Numbers, read: Numbers, logits: Numbers}} head
   * @param {ArrayLike<number>} targets
   * @param {number} weight
   * @param {number} width of the logits
   */
  #head(kind, { rows, hidden, read, logits }, targets, weight, width) {
    const name = `${kind}_embedding.weight`;
    this.#linear(hidden, name, this.tensor(`${kind}_bias`), logits);
    const loss = crossEntropy(logits, width, targets, weight / rows);
    read.set(hidden);
    this.#linearBack(logits, read, name, `${kind}_bias`, hidden);
    return (loss * weight) / rows;
  }

  /** @param {number} depth */
  #backward(depth) {
    const kept = this.kept[depth];
    const [own, group] = [`depths.${depth}`, `groups.${this.shape.groups[depth]}`];
    const { hidden: into, intoGated, intoExpanded, intoMixed, intoQueryKeyValue } = this;
    this.#scaleBack(this.second, kept.feedForwardOut, `${own}.feed_forward_scale`, into);
    this.#linearBack(into, kept.gated, `${group}.feed_forward.contract.weight`, `${group}.feed_forward.contract.bias`, intoGated);
    gateBack(intoGated, kept.expanded, this.expanded, kept.gates, kept.slopes, intoExpanded);
    this.#linearBack(intoExpanded, kept.feedForwardInput, `${group}.feed_forward.expand.weight`, `${group}.feed_forward.expand.bias`, into);
    this.#normalizeBack(`${own}.feed_forward_norm`, into, kept.feedForwardNorm, this.first);
    this.#scaleBack(this.first, kept.attentionOut, `${own}.attention_scale`, into);
    this.#linearBack(into, kept.mixed, `${group}.attention.output.weight`, `${group}.attention.output.bias`, intoMixed);
    attendBack(intoMixed, kept.queryKeyValue, this.sights[depth], kept.shares, intoQueryKeyValue);
    rotate(intoQueryKeyValue, this.turns, this.sights[depth], -1);
    this.#linearBack(intoQueryKeyValue, kept.attentionInput, `${group}.attention.query_key_value.weight`, undefined, into);
    this.#normalizeBack(`${own}.attention_norm`, into, kept.attentionNorm, this.second);
  }

  /**
   * @param {string} name
   * @param {Numbers} gradient
   * @param {import("./layers.js").KeptNorm} kept
   * @param {Numbers} intoX
   */
  #normalizeBack(name, gradient, kept, intoX) {
    const given = this.shape.token_shift ? this.normal : gradient;
    if (this.shape.token_shift) shiftBack(gradient, this.sources, this.width, given);
    normalizeBack(given, this.tensor(`${name}.weight`), kept, intoX, this.tensor(`${name}.weight`, this.gradients), this.tensor(`${name}.bias`, this.gradients));
  }

  /**
   * @param {Numbers} gradient of a stream
   * @param {Numbers} out of its branch
   * @param {string} name of the branch's scale
   * @param {Numbers} into the gradient of `out`, which is overwritten
   */
  #scaleBack(gradient, out, name, into) {
    const [scale, intoScale] = [this.tensor(name), this.tensor(name, this.gradients)];
    const width = scale.length;
    for (let start = 0; start < gradient.length; start += width) {
      for (let index = 0; index < width; index += 1) {
        intoScale[index] += gradient[start + index] * out[start + index];
        into[start + index] = gradient[start + index] * scale[index];
      }
    }
  }
}

/**
 * @param {Numbers} stream
 * @param {Numbers} branch
 * @param {Numbers} scale
 */
function addScaled(stream, branch, scale) {
  const width = scale.length;
  for (let start = 0; start < stream.length; start += width) {
    for (let index = 0; index < width; index += 1) stream[start + index] += branch[start + index] * scale[index];
  }
}
