// @ts-check
/* A model that draws: from a caption over codes to pixels. */

import { idsOf } from "./caption.js";
import { chances } from "./chance.js";
import { Decoder, toPixels } from "./decoder.js";
import { choose, truncate } from "./sampling.js";
import { tensorsOf } from "../tab/parameters.js";
import { Transformer } from "./transformer.js";
import { Weights } from "./weights.js";

export class Painter {
  /**
   * @param {ArrayBuffer} file
   * @throws {Error} when it is no such model
   */
  constructor(file) {
    const weights = new Weights(file);
    this.about = weights.about;
    // Nothing is allocated before the file has proved to hold as much.
    const tensors = tensorsOf(this.about.model).map(({ name, shape }) => weights.tensor(`model.${name}`, ...shape));
    this.transformer = new Transformer(this.about.model);
    this.transformer.take(tensors);
    this.decoder = new Decoder(weights);
  }

  /**
   * Pictures of a caption, one after the other; the same seed gives the same ones.
   * @param {string} caption
   * @param {number} seed
   * @returns {Generator<{side: number, pixels: Uint8ClampedArray<ArrayBuffer>}>}
   * @throws {import("./caption.js").CaptionError} at once, not at the first picture
   */
  draw(caption, seed) {
    return this.#pictures(idsOf(caption, this.about), seed);
  }

  /**
   * @param {number[]} ids
   * @param {number} seed
   */
  *#pictures(ids, seed) {
    for (let picture = 0; picture < this.about.settings.images; picture += 1) {
      const codes = codesOf(this.transformer, ids, this.about.settings, chances(seed, picture));
      const map = this.decoder.decode(codes);
      yield { side: map.side, pixels: toPixels(map) };
    }
  }
}

/**
 * The codes of one picture.
 * @param {Transformer} transformer
 * @param {number[]} ids
 * @param {import("./weights.js").Settings} settings
 * @param {() => number} chance gives numbers from 0 to below 1
 */
export function codesOf(transformer, ids, settings, chance) {
  transformer.begin(ids);
  const codes = [choose(truncate(transformer.logits, settings), chance())];
  while (codes.length < transformer.shape.image_side ** 2) {
    transformer.add(codes[codes.length - 1]);
    codes.push(choose(truncate(transformer.logits, settings), chance()));
  }
  return codes;
}
