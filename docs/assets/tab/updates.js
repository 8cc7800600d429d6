// @ts-check
/* One round of sparse updates as a member sees it: each uploads its file once, and everyone reads all. */

/** @typedef {{kind: "update", round: number, from: number, content: Uint8Array, samples: number}} Update content: empty without samples */

export class Updates {
  #isDone = false;

  /**
   * @param {{number: number, members: number[]}} group
   * @param {Update} own
   */
  constructor({ number, members }, own) {
    this.number = number;
    this.members = members;
    this.bytes = own.content.length;
    /** @type {Map<number, Update>} */
    this.updates = new Map([[own.from, own]]);
  }

  /** @param {Update} update */
  take(update) {
    this.updates.set(update.from, update);
  }

  /** True once: when all updates are here. */
  advance() {
    if (this.#isDone || this.updates.size < this.members.length) return false;
    this.#isDone = true;
    return true;
  }

  /** In the order in which everyone applies them. */
  get taken() {
    return this.members.map((member) => /** @type {Update} */ (this.updates.get(member))).filter(({ samples }) => samples);
  }
}
