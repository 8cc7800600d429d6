// @ts-check
/*
 * A file of weights as training/pictures/in_page.py packs it, in the format of safetensors: eight
 * bytes that give the header's length, the header in JSON, and numbers of 16 bits. The file comes
 * from a run's organizers, so each tensor is asked for with the shape that it must have.
 */

/** @typedef {"row" | "column" | "convolutional" | "full"} Kind */
/**
 * @typedef {object} ModelShape The transformer, as training/model/configuration.py describes it.
 * @property {number} text_vocabulary_size
 * @property {number} text_length
 * @property {number} image_vocabulary_size
 * @property {number} image_side
 * @property {number} hidden_size
 * @property {number} heads
 * @property {number} head_size
 * @property {number} feed_forward_multiplier
 * @property {Kind[]} kinds of attention, by depth
 * @property {number[]} groups of shared weights, by depth
 * @property {number} convolution_kernel
 * @property {boolean} token_shift
 * @property {number} begin_id
 * @property {number} padding_id
 */
/** @typedef {{channels: number[], latent_channels: number, layers_per_block: number, norm_groups: number}} DecoderShape */
/** @typedef {{temperature: number, top_k: number | null, top_p: number | null, images: number}} Settings */
/** @typedef {{version: number, words: string[], model: ModelShape, codes: DecoderShape, settings: Settings}} About */
/** @typedef {{dtype: string, shape: number[], data_offsets: [number, number]}} Entry */

const VERSION = 1;
const LONGEST_SEQUENCE = 2048; // positions: what is longer would keep a page busy for minutes

export class Weights {
  /** @type {Record<string, Entry>} */
  #entries;
  #data;

  /**
   * @param {ArrayBuffer} file
   * @throws {Error} when it is no such file
   */
  constructor(file) {
    const { header, start } = headerOf(file);
    this.#data = new DataView(file, start);
    this.#entries = header;
    /** @type {About} */
    this.about = JSON.parse(header.__metadata__?.about ?? "{}");
    if (this.about.version !== VERSION) throw new Error("the weights are in a format that this page does not know");
    const { text_length: text, image_side: side } = this.about.model;
    if (!(text + side ** 2 <= LONGEST_SEQUENCE)) throw new Error("the model is too large for a page");
  }

  /**
   * The numbers of a tensor, row by row.
   * @param {string} name
   * @param {...number} shape
   * @throws {Error} when there is no such tensor, or one of another shape
   */
  tensor(name, ...shape) {
    const entry = this.#entries[name];
    const count = shape.reduce((product, size) => product * size, 1);
    const [start, end] = entry?.data_offsets ?? [0, 0];
    const fits = end - start === 2 * count && end <= this.#data.byteLength;
    if (entry?.dtype !== "F16" || String(entry.shape) !== String(shape) || !fits) {
      throw new Error(`the weights have no ${name} of ${shape.join(" × ")} numbers`);
    }
    return Float32Array.from({ length: count }, (_, index) => widened(this.#data.getUint16(start + 2 * index, true), name));
  }

  /** The whole numbers of a tensor with a byte for each. @type {(name: string) => Uint8Array<ArrayBuffer>} */
  bytes(name) {
    const [start, end] = this.#entries[name].data_offsets;
    return new Uint8Array(this.#data.buffer, this.#data.byteOffset + start, end - start);
  }
}

/**
 * @param {ArrayBuffer} file
 * @returns {{header: any, start: number}} start: of the numbers
 */
function headerOf(file) {
  const length = file.byteLength < 8 ? Infinity : Number(new DataView(file).getBigUint64(0, true));
  if (8 + length > file.byteLength) throw new Error("the file is cut short");
  return { header: JSON.parse(new TextDecoder().decode(new Uint8Array(file, 8, length))), start: 8 + length };
}

/**
 * A number of 16 bits: a sign, 5 bits of exponent, 10 of fraction (IEEE 754).
 * @param {number} bits
 * @param {string} name of the tensor
 */
export function widened(bits, name) {
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 31) throw new Error(`${name} is not finite`);
  const size = exponent ? 2 ** (exponent - 25) * (1024 + fraction) : 2 ** -24 * fraction;
  return bits & 0x8000 ? -size : size;
}
