// @ts-check
/* The run's data, block by block in an order of this tab's own: rows of words and codes. */

const BLOCK = 256; // rows of a request
const BYTES = 2; // of a number

/** @typedef {import("../tab/learner.js").Batch} Batch */

export class DataRows {
  /** @type {Uint16Array[]} */
  #pool = [];
  /** @type {number[]} */
  #order = [];
  /** @type {Promise<Uint16Array[]> | undefined} */
  #coming;

  /** @param {import("./host.js").Host} host @param {{rows: number, model: import("../drawing/weights.js").ModelShape}} about */
  constructor(host, { rows, model }) {
    this.host = host;
    this.rows = rows;
    this.words = model.text_length;
    this.width = model.text_length + model.image_side ** 2;
  }

  /** @param {number} count @returns {Promise<Batch>} */
  async batch(count) {
    while (this.#pool.length < count) {
      const rows = await (this.#coming ?? this.#fetch());
      this.#pool.unshift(...shuffled(rows));
      this.#coming = this.#fetch();
      this.#coming.catch(() => (this.#coming = undefined)); // asked again when it is needed
    }
    const taken = this.#pool.splice(-count);
    return {
      text: taken.flatMap((row) => [...row.subarray(0, this.words)]),
      codes: taken.flatMap((row) => [...row.subarray(this.words)]),
    };
  }

  async #fetch() {
    if (!this.#order.length) this.#order = shuffled([...Array(Math.ceil(this.rows / BLOCK)).keys()]);
    const first = BLOCK * /** @type {number} */ (this.#order.pop());
    const end = Math.min(this.rows, first + BLOCK);
    const bytes = BYTES * this.width;
    const content = await this.host.data(first * bytes, end * bytes);
    return Array.from({ length: end - first }, (_, row) => new Uint16Array(content.buffer, row * bytes, this.width));
  }
}

/** @template T @param {T[]} items In chance's order. */
function shuffled(items) {
  for (let last = items.length - 1; last > 0; last -= 1) {
    const other = Math.floor(Math.random() * (last + 1));
    [items[last], items[other]] = [items[other], items[last]];
  }
  return items;
}
