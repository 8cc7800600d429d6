// @ts-check
/* Numbers in one memory, and the products of matrices in it. */

import { TILE_COLUMNS, TILE_ROWS, panelOf } from "./kernel.js";

const PAGE = 65536; // bytes of WebAssembly's memory
const DEEPEST = 256; // terms of a sum at a time: the panel of B that they need stays in the cache

/**
 * A matrix in the memory: the number at row i and column j is data[i * down + j * across].
 * @typedef {{data: Float32Array, rows: number, columns: number, down: number, across: number}} Matrix
 */

/**
 * @param {Float32Array} data row by row
 * @param {number} rows
 * @param {number} columns
 * @returns {Matrix}
 */
export const matrix = (data, rows, columns) => ({ data, rows, columns, down: columns, across: 1 });

/** @param {Matrix} one @returns {Matrix} */
export const transposed = ({ data, rows, columns, down, across }) => ({ data, rows: columns, columns: rows, down: across, across: down });

export class Arithmetic {
  #end = 0;

  /**
   * @param {number} count of numbers that there will be room for
   * @param {boolean} [plain] without WebAssembly, as in a browser that has none
   */
  constructor(count, plain = false) {
    const memory = plain ? undefined : new WebAssembly.Memory({ initial: Math.ceil((4 * count) / PAGE) + 1 });
    this.buffer = memory?.buffer ?? new ArrayBuffer(4 * count);
    this.panel = memory && panelOf(memory);
  }

  /** @param {number} count Room for so many numbers, all 0. */
  array(count) {
    const data = new Float32Array(this.buffer, this.#end, count);
    this.#end += 4 * (4 * Math.ceil(count / 4));
    return data;
  }

  /** C += A B; the rows of B and C are not transposed. @type {(c: Matrix, a: Matrix, b: Matrix) => void} */
  add(c, a, b) {
    const rows = this.panel ? c.rows - (c.rows % TILE_ROWS) : 0;
    const columns = rows ? c.columns - (c.columns % TILE_COLUMNS) : 0;
    if (this.panel && columns) this.#addTiles(c, a, b, rows, columns);
    addPlainly(c, a, b, 0, rows, columns);
    addPlainly(c, a, b, rows, c.rows, 0);
  }

  /** @type {(c: Matrix, a: Matrix, b: Matrix, rows: number, columns: number) => void} */
  #addTiles(c, a, b, rows, columns) {
    const add = /** @type {NonNullable<typeof this.panel>} */ (this.panel);
    for (let start = 0; start < a.columns; start += DEEPEST) {
      const depth = Math.min(DEEPEST, a.columns - start);
      const [from, along] = [a.data.byteOffset + 4 * start * a.across, b.data.byteOffset + 4 * start * b.down];
      for (let column = 0; column < columns; column += TILE_COLUMNS) {
        add(c.data.byteOffset + 4 * column, from, along + 4 * column, rows, depth, 4 * a.down, 4 * a.across, 4 * b.down, 4 * c.down);
      }
    }
  }
}

/**
 * C += A B for some rows of C, from a column on.
 * @type {(c: Matrix, a: Matrix, b: Matrix, first: number, end: number, column: number) => void}
 */
function addPlainly({ data: out, columns, down }, { data: left, columns: depth, down: step, across }, { data: right, down: width }, first, end, column) {
  if (column >= columns) return;
  for (let row = first; row < end; row += 1) {
    const into = row * down;
    for (let index = 0; index < depth; index += 1) {
      const factor = left[row * step + index * across];
      const from = index * width;
      for (let at = column; at < columns; at += 1) out[into + at] += factor * right[from + at];
    }
  }
}
