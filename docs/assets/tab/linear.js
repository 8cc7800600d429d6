// @ts-check
/* A model's tensors by name, and the products with its matrices, each with its gradient. */

import { matrix, transposed } from "./matrix.js";

/** @typedef {import("./parameters.js").Tensor} Tensor */
/** @typedef {Float32Array} Numbers */

export class Linear {
  /**
   * @param {import("./memory.js").Arrays} arrays
   * @param {Tensor[]} tensors
   */
  constructor({ arithmetic, weights, gradients, turned }, tensors) {
    this.arithmetic = arithmetic;
    this.weights = weights;
    this.gradients = gradients;
    this.turned = turned;
    this.byName = new Map(tensors.map((tensor) => [tensor.name, tensor]));
  }

  /** @param {string} name @param {Numbers} [of] A tensor of the weights, or of another flat vector. */
  tensor(name, of = this.weights) {
    const { start, size } = this.#find(name);
    return of.subarray(start, start + size);
  }

  /** @param {string} name */
  gradient(name) {
    return this.tensor(name, this.gradients);
  }

  /** @param {string} name */
  #find(name) {
    const found = this.byName.get(name);
    if (!found) throw new Error(`no tensor ${name}`);
    return found;
  }

  /** After the weights have changed: exchange rows and columns, as `apply` reads them. */
  turn() {
    for (const { shape, start } of this.byName.values()) {
      if (shape.length < 2) continue;
      const [rows, columns] = shape;
      for (let row = 0, at = start; row < rows; row += 1) {
        for (let column = 0; column < columns; column += 1, at += 1) this.turned[start + column * rows + row] = this.weights[at];
      }
    }
  }

  /**
   * out = x W^T + bias
   * @param {Numbers} x
   * @param {string} name of the weight
   * @param {string | undefined} bias its name
   * @param {Numbers} out
   */
  apply(x, name, bias, out) {
    const { shape: [to, from] } = this.#find(name);
    const rows = x.length / from;
    const added = bias && this.tensor(bias);
    if (added) for (let start = 0; start < out.length; start += to) out.set(added, start);
    else out.fill(0);
    this.arithmetic.add(matrix(out, rows, to), matrix(x, rows, from), matrix(this.tensor(name, this.turned), from, to));
  }

  /**
   * Adds to the gradients of the weight and the bias.
   * @param {Numbers} gradient of the output
   * @param {Numbers} x
   * @param {string} name of the weight
   * @param {string | undefined} bias its name
   * @param {Numbers} into the gradient of x, which is overwritten
   */
  back(gradient, x, name, bias, into) {
    const { shape: [to, from] } = this.#find(name);
    const rows = x.length / from;
    const given = matrix(gradient, rows, to);
    this.arithmetic.add(matrix(this.gradient(name), to, from), transposed(given), matrix(x, rows, from));
    into.fill(0);
    this.arithmetic.add(matrix(into, rows, from), given, matrix(this.tensor(name), to, from));
    if (!bias) return;
    const sums = this.gradient(bias);
    for (let start = 0; start < gradient.length; start += to) {
      for (let index = 0; index < to; index += 1) sums[index] += gradient[start + index];
    }
  }
}
