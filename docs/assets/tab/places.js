// @ts-check
/*
 * The positions of a sequence: the token that begins it, the caption, then the picture's codes row
 * by row (training/model/layout.py), and what each sees of those before it (training/model/attention.py).
 */

/** @typedef {import("../drawing/weights.js").ModelShape} ModelShape */
/** @typedef {ReturnType<typeof placesOf>} Places */

/** What is the same for every batch: what each position sees, where it shifts from, how it turns. @param {ModelShape} shape */
export function placesOf(shape) {
  const length = shape.text_length + shape.image_side ** 2;
  const positions = Array.from({ length }, (_, position) => position);
  const turns = positions.map((position) => rotation(shape, position));
  /** @type {Record<string, Int32Array[]>} */
  const sights = Object.fromEntries([...new Set(shape.kinds)].map((kind) => [kind, positions.map((position) => seen(shape, kind, position))]));
  const most = Math.max(...Object.values(sights).flat().map((places) => places.length));
  return {
    length,
    most,
    turns: {
      cosine: Float32Array.from(turns.flatMap(({ cosine }) => [...cosine])),
      sine: Float32Array.from(turns.flatMap(({ sine }) => [...sine])),
    },
    sources: Int32Array.from(positions.flatMap((position) => shiftSources(shape, position))),
    sights: shape.kinds.map((kind) => ({ heads: shape.heads, size: shape.head_size, seen: sights[kind], most })),
  };
}

/**
 * Row and column of a position in the picture; undefined in the text.
 * @type {(shape: ModelShape, position: number) => {row: number, column: number} | undefined}
 */
function placeOf({ text_length: text, image_side: side }, position) {
  const code = position - text - 1;
  return code < 0 ? undefined : { row: Math.floor(code / side), column: code % side };
}

/**
 * The positions that one sees, itself included: the text before it, and of the codes before it those
 * that the kind of attention names.
 * @type {(shape: ModelShape, kind: import("../drawing/weights.js").Kind, position: number) => Int32Array}
 */
function seen(shape, kind, position) {
  const reach = Math.floor(shape.convolution_kernel / 2);
  const own = placeOf(shape, position);
  return Int32Array.from({ length: position + 1 }, (_, index) => index).filter((other) => {
    const place = placeOf(shape, other);
    if (!own || !place || kind === "full") return true;
    const [down, across] = [Math.abs(own.row - place.row), Math.abs(own.column - place.column)];
    if (kind === "row") return down === 0;
    return kind === "column" ? across === 0 : down <= reach && across <= reach;
  });
}

/**
 * The positions that the two shifted quarters of a token come from; -1 for none.
 * @type {(shape: ModelShape, position: number) => number[]}
 */
function shiftSources(shape, position) {
  const place = placeOf(shape, position);
  if (!place) return [position - 1, position - 1];
  return [place.row ? position - shape.image_side : -1, place.column ? position - 1 : -1];
}

/**
 * Cosine and sine of the angles by which a position turns its queries and keys.
 * @param {ModelShape} shape
 * @param {number} position
 */
function rotation(shape, position) {
  const { head_size: size, image_side: side, text_length: text } = shape;
  const count = Math.floor(size / 6);
  const place = placeOf(shape, position);
  const scaled = (/** @type {number} */ at) => (2 * at) / Math.max(side - 1, 1) - 1;
  // Text stands outside of the picture, and a picture at one place after the text.
  const [inText, row, column] = place ? [text + 1, scaled(place.row), scaled(place.column)] : [position, -2, -2];
  const angles = new Float64Array(size / 2);
  for (let index = 0; index < count; index += 1) {
    const frequency = Math.PI * (count > 1 ? 1 + (4 * index) / (count - 1) : 1);
    angles[index] = inText * 10000 ** (-index / count);
    angles[count + index] = row * frequency;
    angles[2 * count + index] = column * frequency;
  }
  return { cosine: angles.map(Math.cos), sine: angles.map(Math.sin) };
}
