// @ts-check
/*
 * Gradients on the wire, as training/averaging/wire.py sends them: as they are, in 16 bits, or large
 * tensors in 8 and small ones in 16. A test holds each against the library that volunteers use.
 */

import { widened } from "../drawing/weights.js";

/** @typedef {Float32Array} Numbers */
/** @typedef {32 | 16 | 8} Bits */
/** @typedef {{exact: Numbers} | {half: Uint16Array} | {codes: Uint8Array, levels: Numbers}} Piece */

const LEVELS = 256;
const SIGMAS = 6; // the range that the levels cover
const LARGEST_HALF = 65504;

/**
 * A part of a flat vector, a piece for each tensor that it reaches into.
 * @param {Numbers} vector
 * @param {{start: number, end: number}} part
 * @param {import("./parameters.js").Tensor[]} tensors of the flat vector
 * @param {{bits: Bits, threshold: number}} format threshold: numbers of a tensor from which 8 bits are taken
 * @returns {Piece[]}
 */
export function encode(vector, { start, end }, tensors, { bits, threshold }) {
  return tensors.filter((tensor) => tensor.start < end && tensor.start + tensor.size > start).map((tensor) => {
    const values = vector.slice(Math.max(start, tensor.start), Math.min(end, tensor.start + tensor.size));
    if (bits === 32) return { exact: values };
    return bits === 8 && tensor.size >= threshold && values.length > 1 ? quantized(values) : { half: halves(values) };
  });
}

/**
 * @param {Piece[]} pieces
 * @param {Numbers} into of as many numbers
 */
export function decode(pieces, into) {
  let at = 0;
  for (const piece of pieces) {
    const values = valuesOf(piece);
    into.set(values, at);
    at += values.length;
  }
}

/** @param {Piece} piece */
function valuesOf(piece) {
  if ("exact" in piece) return piece.exact;
  if ("half" in piece) return Float32Array.from(piece.half, (bits) => widened(bits, "gradient"));
  return Float32Array.from(piece.codes, (code) => piece.levels[code]);
}

/** @param {Piece[]} pieces */
export const buffersOf = (pieces) => pieces.flatMap((piece) => Object.values(piece).map(({ buffer }) => /** @type {ArrayBuffer} */ (buffer)));

/** @param {Piece[]} pieces */
export const bytesOf = (pieces) => buffersOf(pieces).reduce((sum, { byteLength }) => sum + byteLength, 0);

/**
 * 256 even steps over six standard deviations; each level is then the mean of what falls on it.
 * @param {Numbers} values
 */
function quantized(values) {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  const step = (SIGMAS * Math.sqrt(squares / (values.length - 1))) / LEVELS;
  const [sums, counts] = [new Float64Array(LEVELS), new Uint32Array(LEVELS)];
  const codes = Uint8Array.from(values, (value) => {
    const code = step ? Math.min(LEVELS - 1, Math.max(0, even((value - mean) / step) + LEVELS / 2)) : LEVELS / 2;
    sums[code] += value;
    counts[code] += 1;
    return code;
  });
  return { codes, levels: Float32Array.from(sums, (sum, code) => sum / Math.max(1, counts[code])) };
}

/** @param {number} value The nearest whole number, of two the even one. */
function even(value) {
  const below = Math.floor(value);
  const rest = value - below;
  if (rest === 0.5) return below % 2 === 0 ? below : below + 1;
  return rest < 0.5 ? below : below + 1;
}

/** @param {Numbers} values In 16 bits: a sign, 5 bits of exponent, 10 of fraction (IEEE 754). */
const halves = (values) => Uint16Array.from(values, (value) => {
  const size = Math.min(Math.abs(value), LARGEST_HALF);
  const exponent = Math.max(-14, Math.floor(Math.log2(size || 2 ** -24)));
  const steps = even(size / 2 ** (exponent - 10)); // from 1024 on, the exponent counts
  return (value < 0 ? 0x8000 : 0) + (exponent + 14) * 1024 + steps;
});
