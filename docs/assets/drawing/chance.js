// @ts-check
/*
 * Random numbers that are the same in every browser: xoshiro128** by Blackman and Vigna, "Scrambled
 * linear pseudorandom number generators", 2021. PyTorch draws others from the same seed.
 */

const GOLDEN = 0x9e3779b9; // 2^32 over the golden ratio: seeds in a row begin far apart

/**
 * Random numbers from 0 to below 1, for one picture of a seed.
 * @type {(seed: number, picture: number) => () => number}
 */
export function chances(seed, picture) {
  const next = generator(Uint32Array.from([1, 2, 3, 4], (word) => mixed(mixed(seed + GOLDEN) + Math.imul(4 * picture + word, GOLDEN))));
  return () => next() / 2 ** 32;
}

/** Whole numbers from 0 to below 2^32. @param {Uint32Array} state four words, not all 0 */
export function generator(state) {
  return () => {
    const result = Math.imul(turned(Math.imul(state[1], 5), 7), 9) >>> 0;
    const shifted = state[1] << 9;
    state[2] ^= state[0];
    state[3] ^= state[1];
    state[1] ^= state[2];
    state[0] ^= state[3];
    state[2] ^= shifted;
    state[3] = turned(state[3], 11);
    return result;
  };
}

/** @type {(word: number, bits: number) => number} */
const turned = (word, bits) => (word << bits) | (word >>> (32 - bits));

/**
 * Spread a number over all bits, so that neighbors share none (the finish of MurmurHash3).
 * @type {(word: number) => number}
 */
function mixed(word) {
  let bits = word >>> 0;
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return (bits ^ (bits >>> 16)) >>> 0;
}
