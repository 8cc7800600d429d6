// @ts-check
/* Updates of about 0.23 bits per parameter, as training/sparse/codec.py encodes and reads them. */

import { exactSum } from "./sum.js";

/** @typedef {Float32Array} Numbers */
/** @typedef {{start: number, length: number, kept: number}} Block elements of one tensor, of which so many are sent */
/** @typedef {{elements: number, blocks: Block[], sent: number, sections: [number, number, number], bytes: number}} Layout */
/** @typedef {{places: Int32Array, values: Numbers, norm: number}} Update */

const [BLOCK, KEPT] = [4096, 64];
const [VALUE_BITS, PLACE_BITS] = [2, 12];
const SCALE_BYTES = 4; // of a block: two magnitudes in bfloat16
const [HIGHER, NEGATIVE] = [1, 2]; // bits of a value
const LARGEST = 0x7f7f; // finite in bfloat16

/** @param {number[]} sizes elements of each tensor @returns {Layout} */
export function layoutOf(sizes) {
  /** @type {Block[]} */
  const blocks = [];
  let elements = 0;
  for (const size of sizes) {
    for (let at = 0; at < size; at += BLOCK) {
      const length = Math.min(BLOCK, size - at);
      blocks.push({ start: elements + at, length, kept: Math.ceil((length * KEPT) / BLOCK) });
    }
    elements += size;
  }
  const sent = blocks.reduce((sum, { kept }) => sum + kept, 0);
  /** @type {[number, number, number]} */
  const sections = [SCALE_BYTES * blocks.length, Math.ceil(sent / 4), 3 * Math.ceil(sent / 2)];
  return { elements, blocks, sent, sections, bytes: sections[0] + sections[1] + sections[2] };
}

/**
 * @param {Numbers} vector
 * @param {Layout} layout
 * @throws {RangeError} where an element is not finite
 */
export function encode(vector, { blocks, sent, sections, bytes }) {
  if (!vector.every(Number.isFinite)) throw new RangeError("an element of the update is not finite");
  const content = new Uint8Array(bytes);
  const scales = new DataView(content.buffer);
  const [codes, places] = [new Uint8Array(sent), new Uint16Array(sent)];
  let at = 0;
  blocks.forEach((block, index) => {
    const own = vector.subarray(block.start, block.start + block.length);
    const kept = largestOf(own, block.kept);
    const sizes = kept.map((place) => Math.abs(own[place]));
    const middle = Math.fround(mean(sizes));
    const [small, large] = [sizes.filter((size) => size <= middle), sizes.filter((size) => size > middle)];
    const low = mean(small);
    const high = large.length ? mean(large) : low;
    scales.setUint16(SCALE_BYTES * index, brief(Math.min(low, high)), true);
    scales.setUint16(SCALE_BYTES * index + 2, brief(high), true);
    kept.forEach((place, order) => {
      codes[at] = (sizes[order] > middle ? HIGHER : 0) + (own[place] < 0 ? NEGATIVE : 0);
      places[at++] = place;
    });
  });
  pack(codes, VALUE_BITS, content.subarray(sections[0]));
  pack(places, PLACE_BITS, content.subarray(sections[0] + sections[1]));
  return content;
}

/**
 * @param {Uint8Array} content
 * @param {Layout} layout
 * @returns {Update}
 * @throws {Error} where the bytes are no update of this model
 */
export function decode(content, { blocks, sent, sections, bytes }) {
  if (content.length !== bytes) throw new Error(`${content.length} bytes, but an update has ${bytes}`);
  const scales = new DataView(content.buffer, content.byteOffset);
  const codes = unpack(content.subarray(sections[0], sections[0] + sections[1]), VALUE_BITS, sent);
  const within = unpack(content.subarray(sections[0] + sections[1]), PLACE_BITS, sent);
  const [places, values] = [new Int32Array(sent), new Float32Array(sent)];
  /** @type {number[]} */
  const squares = [];
  let at = 0;
  blocks.forEach(({ start, length, kept }, index) => {
    const [low, high] = [0, 2].map((offset) => widened(scales.getUint16(SCALE_BYTES * index + offset, true)));
    if (!(low <= high)) throw new Error("a lower magnitude above the higher one");
    let higher = 0;
    for (const end = at + kept, first = at; at < end; at += 1) {
      if (within[at] >= length) throw new Error("a place out of its block's range");
      if (at > first && within[at] <= within[at - 1]) throw new Error("places that are repeated or out of order");
      const isHigher = codes[at] & HIGHER;
      if (isHigher) higher += 1;
      places[at] = start + within[at];
      values[at] = (codes[at] & NEGATIVE ? -1 : 1) * (isHigher ? high : low);
    }
    squares.push(higher * (high * high), (kept - higher) * (low * low));
  });
  return { places, values, norm: Math.sqrt(exactSum(squares)) };
}

/** @param {Numbers} values @param {number} count Places of the largest, rising. */
function largestOf(values, count) {
  const sizes = values.map(Math.abs);
  const least = sizes.toSorted()[values.length - count];
  let ties = count - sizes.reduce((above, size) => above + Number(size > least), 0);
  /** @type {number[]} */
  const places = [];
  sizes.forEach((size, place) => {
    if (size > least || (size === least && ties-- > 0)) places.push(place);
  });
  return places;
}

/** @param {number[]} numbers 0 where there are none */
const mean = (numbers) => numbers.reduce((sum, number) => sum + number, 0) / Math.max(1, numbers.length);

const word = new DataView(new ArrayBuffer(4));

/** @param {number} value In bfloat16, of two equally near ones the even. */
function brief(value) {
  word.setFloat32(0, value);
  const bits = word.getUint32(0);
  return Math.min(LARGEST, (bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16);
}

/** @param {number} bits @throws {Error} where they are no finite magnitude */
function widened(bits) {
  if (bits > LARGEST) throw new Error("a scale that is negative or not finite");
  word.setUint32(0, bits << 16);
  return word.getFloat32(0);
}

/** @param {ArrayLike<number>} numbers @param {number} bits of each @param {Uint8Array} out */
function pack(numbers, bits, out) {
  for (let index = 0, held = 0, filled = 0, at = 0; index < numbers.length; index += 1) {
    held |= numbers[index] << filled;
    for (filled += bits; filled >= 8; filled -= 8, held >>>= 8) out[at++] = held & 0xff;
    if (index === numbers.length - 1 && filled) out[at] = held;
  }
}

/**
 * @param {Uint8Array} content
 * @param {number} bits of each number
 * @param {number} count
 * @throws {Error} where what is left of the last byte is not zero
 */
function unpack(content, bits, count) {
  const numbers = new Uint16Array(count);
  let [held, filled, at] = [0, 0, 0];
  for (let index = 0; index < count; index += 1) {
    for (; filled < bits; filled += 8) held |= content[at++] << filled;
    numbers[index] = held & ((1 << bits) - 1);
    held >>>= bits;
    filled -= bits;
  }
  if (held || content.subarray(at).some(Boolean)) throw new Error("bits after the last number that are not zero");
  return numbers;
}
