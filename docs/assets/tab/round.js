// @ts-check
/* One round of averaging as a member sees it: parts go out, parts come in, averages come back. */

import { aggregate, partsOf } from "./reduction.js";
import { buffersOf, bytesOf, decode, encode } from "./wire.js";

/** @typedef {Float32Array} Numbers */
/** @typedef {import("./wire.js").Piece[]} Pieces */
/** @typedef {{bits: import("./wire.js").Bits | "sparse", aggregation: import("./reduction.js").Aggregation}} Rules bits: of a gradient's elements, or sparse updates in its place */
/** @typedef {{kind: "part", round: number, from: number, pieces: Pieces, weight: number}} Part */
/** @typedef {{kind: "mean", round: number, from: number, pieces: Pieces}} Mean */
/** @typedef {(to: number, message: Part | Mean, moved: ArrayBuffer[]) => void} Send */

export class Round {
  #isDone = false;

  /**
   * @param {{number: number, own: number, members: number[], rules: Rules}} group
   * @param {{gradient: Numbers, weight: number}} given ours
   * @param {{tensors: import("./parameters.js").Tensor[], threshold: number}} layout
   * @param {Send} send
   */
  constructor({ number, own, members, rules }, { gradient, weight }, layout, send) {
    this.number = number;
    this.own = own;
    this.members = members;
    this.rules = rules;
    this.layout = layout;
    this.send = send;
    this.places = partsOf(gradient.length, members.length);
    this.average = new Float32Array(gradient.length);
    this.bytes = 0;
    /** @type {Map<number, {values: Numbers, weight: number}>} */
    this.parts = new Map();
    /** @type {Set<number>} */
    this.averaged = new Set();
    for (const member of members) {
      const { start, end } = this.#place(member);
      if (member === own) this.parts.set(own, { values: gradient.slice(start, end), weight });
      else this.#post(member, { kind: "part", round: number, from: own, pieces: this.#encode(gradient, member), weight });
    }
  }

  /** @param {Part | Mean} message */
  take(message) {
    if (message.kind === "mean") return this.#keep(message.from, message.pieces);
    const { start, end } = this.#place(this.own);
    const values = new Float32Array(end - start);
    decode(message.pieces, values);
    this.parts.set(message.from, { values, weight: message.weight });
  }

  /** True once: when all averages are here. */
  advance() {
    if (!this.averaged.has(this.own) && this.parts.size === this.members.length) this.#average();
    if (this.#isDone || this.averaged.size < this.members.length) return false;
    this.#isDone = true;
    return true;
  }

  /** Average our part, as every member's is here; we keep what the others get, to the last bit. */
  #average() {
    const parts = this.members.map((member) => /** @type {{values: Numbers, weight: number}} */ (this.parts.get(member)));
    const values = aggregate(parts.map((part) => part.values), parts.map(({ weight }) => weight), this.rules.aggregation);
    this.average.set(values, this.#place(this.own).start);
    for (const member of this.members) {
      if (member !== this.own) this.#post(member, { kind: "mean", round: this.number, from: this.own, pieces: this.#encode(this.average, this.own) });
    }
    this.#keep(this.own, this.#encode(this.average, this.own));
  }

  /** @param {number} member */
  #place(member) {
    return this.places[this.members.indexOf(member)];
  }

  /** @param {Numbers} vector @param {number} member whose part it is */
  #encode(vector, member) {
    const { tensors, threshold } = this.layout;
    return encode(vector, this.#place(member), tensors, { bits: /** @type {import("./wire.js").Bits} */ (this.rules.bits), threshold });
  }

  /** @param {number} member @param {Pieces} pieces */
  #keep(member, pieces) {
    const { start, end } = this.#place(member);
    decode(pieces, this.average.subarray(start, end));
    this.averaged.add(member);
  }

  /** @param {number} to @param {Part | Mean} message */
  #post(to, message) {
    this.bytes += bytesOf(message.pieces);
    this.send(to, message, buffersOf(message.pieces));
  }
}
