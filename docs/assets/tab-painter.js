// @ts-check
/* Draws with the weights of 'Train in this tab', so that no volunteer has to wait meanwhile. */

import { idsOf } from "./drawing/caption.js";
import { chances } from "./drawing/chance.js";
import { Decoder, toPixels } from "./drawing/decoder.js";
import { codesOf } from "./drawing/painter.js";
import { Transformer } from "./drawing/transformer.js";
import { Lesson } from "./tab/lesson.js";

/** @typedef {{kind: "begin", file: ArrayBuffer} | {kind: "draw", weights: Float32Array, seed: number}} Order */
/** @typedef {{caption: number, side: number, pixels: Uint8ClampedArray<ArrayBuffer>}} Picture caption: its place among the lesson's */

/** @type {Lesson} */
let lesson;
/** @type {Decoder} */
let decoder;
/** @type {Transformer} */
let transformer;

addEventListener("message", ({ data }) => {
  const order = /** @type {Order} */ (data);
  if (order.kind === "draw") return draw(order.weights, order.seed);
  lesson = new Lesson(order.file);
  decoder = new Decoder(lesson.weights);
  transformer = new Transformer(lesson.about.model);
});

/** @type {(weights: Float32Array, seed: number) => void} */
function draw(weights, seed) {
  const { about } = lesson;
  transformer.take([weights]);
  about.captions.forEach((words, caption) => {
    const map = decoder.decode(codesOf(transformer, idsOf(words, about), about.settings, chances(seed, caption)));
    const pixels = toPixels(map);
    postMessage({ caption, side: map.side, pixels }, { transfer: [pixels.buffer] });
  });
}
