// @ts-check
/* What is the same for every batch: what each position sees, where it shifts from, how it turns. */

import { rotation, seen, shiftSources } from "../drawing/layout.js";

/** @typedef {import("../drawing/weights.js").ModelShape} ModelShape */
/** @typedef {ReturnType<typeof placesOf>} Places */

/** @param {ModelShape} shape */
export function placesOf(shape) {
  const length = shape.text_length + shape.image_side ** 2;
  const positions = Array.from({ length }, (_, position) => position);
  const turns = positions.map((position) => rotation(shape, position));
  const sights = shape.kinds.map((kind) => positions.map((position) => Int32Array.from(seen(shape, kind, position))));
  const most = Math.max(...sights.flat().map((places) => places.length));
  return {
    length,
    most,
    turns: {
      cosine: Float32Array.from(turns.flatMap(({ cosine }) => [...cosine])),
      sine: Float32Array.from(turns.flatMap(({ sine }) => [...sine])),
    },
    sources: Int32Array.from(positions.flatMap((position) => shiftSources(shape, position))),
    sights: sights.map((places) => ({ heads: shape.heads, size: shape.head_size, seen: places, most })),
  };
}
