// @ts-check
/*
 * The parameters of the text-to-image transformer as one flat vector: PyTorch's order and names, so
 * that a part, an update or a checkpoint means the same here and in training/.
 */

/** @typedef {import("../drawing/weights.js").ModelShape} ModelShape */
/** @typedef {{name: string, shape: number[], start: number, size: number}} Tensor */

const DEVIATION = 0.02; // of new matrices: TextToImageConfig.initializer_range

/**
 * The tensors in the order of PyTorch's `named_parameters`: of each module its own parameters, then
 * those of its parts.
 * @type {(shape: ModelShape) => Tensor[]}
 */
export function tensorsOf(shape) {
  const { hidden_size: width, heads, head_size: size, image_vocabulary_size: codes, feed_forward_multiplier: times } = shape;
  const [words, inner, expanded] = [shape.text_vocabulary_size + shape.text_length, heads * size, times * width];
  /** @type {(name: string) => [string, number[]][]} */
  const norm = (name) => [[`${name}.weight`, [width]], [`${name}.bias`, [width]]];
  const groups = Array.from({ length: Math.max(...shape.groups) + 1 }, (_, group) => `groups.${group}`);
  /** @type {[string, number[]][]} */
  const named = [
    ["text_bias", [words]],
    ["image_bias", [codes]],
    ["text_embedding.weight", [words, width]],
    ["image_embedding.weight", [codes, width]],
    ...groups.flatMap((group) => /** @type {[string, number[]][]} */ ([
      [`${group}.attention.query_key_value.weight`, [3 * inner, width]],
      [`${group}.attention.output.weight`, [width, inner]],
      [`${group}.attention.output.bias`, [width]],
      [`${group}.feed_forward.expand.weight`, [2 * expanded, width]],
      [`${group}.feed_forward.expand.bias`, [2 * expanded]],
      [`${group}.feed_forward.contract.weight`, [width, expanded]],
      [`${group}.feed_forward.contract.bias`, [width]],
    ])),
    ...shape.kinds.flatMap((_, depth) => /** @type {[string, number[]][]} */ ([
      [`depths.${depth}.attention_scale`, [width]],
      [`depths.${depth}.feed_forward_scale`, [width]],
      ...norm(`depths.${depth}.attention_norm`),
      ...norm(`depths.${depth}.feed_forward_norm`),
    ])),
    ...norm("final_norm"),
  ];
  let start = 0;
  return named.map(([name, dimensions]) => {
    const tensor = { name, shape: dimensions, start, size: dimensions.reduce((product, one) => product * one, 1) };
    start += tensor.size;
    return tensor;
  });
}

/** @param {Tensor[]} tensors */
export const countOf = (tensors) => tensors.reduce((sum, { size }) => sum + size, 0);

/**
 * New weights, by the rules of TextToImageTransformer: matrices normal, norms 1, scales as given,
 * biases 0.
 * @param {Tensor[]} tensors
 * @param {number} scale of every branch
 * @param {() => number} chance gives numbers from 0 to below 1
 */
export function newWeights(tensors, scale, chance) {
  const weights = new Float32Array(countOf(tensors));
  for (const { name, shape, start, size } of tensors) {
    const own = weights.subarray(start, start + size);
    if (shape.length === 2) for (let index = 0; index < size; index += 1) own[index] = DEVIATION * normal(chance);
    else if (name.endsWith("_scale")) own.fill(scale);
    else if (name.endsWith("norm.weight")) own.fill(1);
  }
  return weights;
}

/** A number of the normal distribution, by Box and Muller's transform. @type {(chance: () => number) => number} */
export const normal = (chance) => Math.sqrt(-2 * Math.log(1 - chance())) * Math.cos(2 * Math.PI * chance());
