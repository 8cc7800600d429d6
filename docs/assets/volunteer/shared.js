// @ts-check
/*
 * The weights that all volunteers share, and the step that all make on the same updates, with the
 * same bits as training/sparse/shared.py: one rounding to 32 bits for each operation, in one order.
 */

import { joined } from "./identity.js";

/** @typedef {Float32Array<ArrayBuffer>} Numbers with a memory of their own */
/** @typedef {import("./sparse.js").Update} Update */
/** @typedef {{samples: number, update: Update}} Contribution */
/** @typedef {{learning_rate: number, longest: number, heaviest: number}} OuterSettings */

const PURPOSE = new TextEncoder().encode("training-transformers-together shared state 2");
const MAGIC = "TTS2"; // of a checkpoint: training/sparse/catching_up.py
const HEADER = 20; // bytes: magic, round, samples

export class SharedState {
  /** @param {Numbers} weights @param {number} round @param {number} samples */
  constructor(weights, round, samples) {
    this.weights = weights;
    this.round = round;
    this.samples = samples;
  }

  /**
   * @param {Uint8Array<ArrayBuffer>} file a checkpoint
   * @param {number} elements
   * @throws {Error} where it is none of this model
   */
  static read(file, elements) {
    const view = new DataView(file.buffer, file.byteOffset);
    const isRight = file.length === HEADER + 4 * elements && new TextDecoder().decode(file.subarray(0, 4)) === MAGIC;
    if (!isRight) throw new Error("the checkpoint is not of this model");
    const [round, samples] = [4, 12].map((at) => Number(view.getBigUint64(at, true)));
    return new SharedState(new Float32Array(file.slice(HEADER).buffer), round, samples);
  }

  /**
   * The step of a round, its updates in the order of its list.
   * @type {(contributions: Contribution[], settings: OuterSettings) => void}
   */
  step(contributions, settings) {
    this.round += 1;
    if (!contributions.length) return;
    const { weights } = this;
    const mean = new Float32Array(weights.length);
    const factors = sharesOf(contributions, settings);
    contributions.forEach(({ update: { places, values } }, index) => {
      for (let at = 0; at < places.length; at += 1) mean[places[at]] += Math.fround(values[at] * factors[index]);
    });
    const rate = Math.fround(settings.learning_rate);
    for (let at = 0; at < weights.length; at += 1) weights[at] -= Math.fround(mean[at] * rate);
    this.samples += contributions.reduce((sum, { samples }) => sum + samples, 0);
  }

  /** SHA-256 of all of it. */
  async digest() {
    const counts = BigUint64Array.of(BigInt(this.round), BigInt(this.samples));
    return sha256(joined(PURPOSE, new Uint8Array(counts.buffer), new Uint8Array(this.weights.buffer)));
  }
}

/** @param {Uint8Array<ArrayBuffer>} content */
export async function sha256(content) {
  const sum = new Uint8Array(await crypto.subtle.digest("SHA-256", content));
  return [...sum].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * The factor of each update in a round's mean, in 32 bits.
 * @type {(contributions: Contribution[], settings: OuterSettings) => number[]}
 */
export function sharesOf(contributions, { heaviest, longest }) {
  const most = heaviest * median(contributions.map(({ samples }) => samples));
  const bound = longest * median(contributions.map(({ update }) => update.norm));
  const counted = contributions.map(({ samples }) => Math.min(samples, most));
  const total = counted.reduce((sum, samples) => sum + samples, 0);
  return contributions.map(({ update: { norm } }, index) =>
    Math.fround((counted[index] / total) * (norm > bound ? bound / norm : 1)));
}

/** @param {number[]} numbers */
function median(numbers) {
  const sorted = numbers.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}
