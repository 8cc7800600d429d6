// @ts-check
/*
 * The operations of a layer that are no products of matrices, each with its gradient. Arrays hold a
 * row for each position of each sequence; what a function keeps for its gradient, it is given. Where
 * rows depend on others, `at` is the position of the output's first row.
 */

/** @typedef {Float32Array} Numbers */
/** @typedef {{input: Numbers, scale: Numbers}} KeptNorm the input normalized, and 1 / deviation of each row */

const NORM_EPSILON = 1e-5; // of torch.nn.LayerNorm

/** @type {(x: Numbers, weight: Numbers, bias: Numbers, kept: KeptNorm, out: Numbers) => void} */
export function normalize(x, weight, bias, kept, out) {
  const width = weight.length;
  for (let row = 0, start = 0; start < x.length; row += 1, start += width) {
    let [sum, squares] = [0, 0];
    for (let at = start; at < start + width; at += 1) sum += x[at];
    const mean = sum / width;
    for (let at = start; at < start + width; at += 1) squares += (x[at] - mean) * (x[at] - mean);
    const scale = 1 / Math.sqrt(squares / width + NORM_EPSILON);
    kept.scale[row] = scale;
    for (let index = 0; index < width; index += 1) {
      const value = (x[start + index] - mean) * scale;
      kept.input[start + index] = value;
      out[start + index] = value * weight[index] + bias[index];
    }
  }
}

/**
 * Adds to the gradients of the input, the weight and the bias.
 * @param {Numbers} gradient of the output
 * @param {Numbers} weight
 * @param {KeptNorm} kept
 * @param {Numbers} intoX
 * @param {Numbers} intoWeight
 * @param {Numbers} intoBias
 */
export function normalizeBack(gradient, weight, { input, scale }, intoX, intoWeight, intoBias) {
  const width = weight.length;
  for (let row = 0, start = 0; start < gradient.length; row += 1, start += width) {
    let [sum, along] = [0, 0];
    for (let index = 0; index < width; index += 1) {
      const given = gradient[start + index];
      const value = input[start + index];
      intoWeight[index] += given * value;
      intoBias[index] += given;
      sum += given * weight[index];
      along += given * weight[index] * value;
    }
    [sum, along] = [sum / width, along / width];
    for (let index = 0; index < width; index += 1) {
      const at = start + index;
      intoX[at] += scale[row] * (gradient[at] * weight[index] - sum - input[at] * along);
    }
  }
}

/**
 * Takes the first two quarters of the channels from other positions of the sequence.
 * @param {Numbers} x
 * @param {Int32Array} sources two for each position, -1 for none
 * @param {number} width
 * @param {Numbers} out
 * @param {number} at
 */
export function shift(x, sources, width, out, at) {
  const [length, quarter] = [sources.length / 2, width / 4];
  for (let row = at, into = 0, start = at * width; into < out.length; row += 1, into += width, start += width) {
    const place = row % length;
    for (let index = 0; index < 2 * quarter; index += 1) {
      const from = sources[2 * place + (index < quarter ? 0 : 1)];
      out[into + index] = from < 0 ? 0 : x[start + (from - place) * width + index];
    }
    for (let index = 2 * quarter; index < width; index += 1) out[into + index] = x[start + index];
  }
}

/**
 * @param {Numbers} gradient of the output
 * @param {Int32Array} sources
 * @param {number} width
 * @param {Numbers} into the gradient of the input, which is overwritten
 */
export function shiftBack(gradient, sources, width, into) {
  const [length, quarter] = [sources.length / 2, width / 4];
  into.fill(0);
  for (let row = 0, start = 0; start < gradient.length; row += 1, start += width) {
    const place = row % length;
    for (let index = 0; index < 2 * quarter; index += 1) {
      const from = sources[2 * place + (index < quarter ? 0 : 1)];
      if (from >= 0) into[start + (from - place) * width + index] += gradient[start + index];
    }
    for (let index = 2 * quarter; index < width; index += 1) into[start + index] += gradient[start + index];
  }
}

/**
 * GEGLU: the first half of the channels, each times GELU of one of the second half.
 * @param {Numbers} x
 * @param {number} half of the channels
 * @param {Numbers} gates what is kept: GELU of the second half
 * @param {Numbers} slopes what is kept: its derivative
 * @param {Numbers} out
 */
export function gate(x, half, gates, slopes, out) {
  for (let start = 0, from = 0; start < out.length; start += half, from += 2 * half) {
    for (let index = 0; index < half; index += 1) {
      const value = x[from + half + index];
      const density = Math.exp(-0.5 * value * value);
      const below = value < 0 ? tail(-value, density) : 1 - tail(value, density);
      gates[start + index] = value * below;
      slopes[start + index] = below + value * density * 0.3989422804014327;
      out[start + index] = x[from + index] * value * below;
    }
  }
}

/**
 * The normal distribution's share beyond a positive value, to 7.5e-8: Abramowitz and Stegun,
 * Handbook of Mathematical Functions, 26.2.17.
 * @param {number} value
 * @param {number} density exp(-value^2 / 2)
 */
function tail(value, density) {
  const t = 1 / (1 + 0.2316419 * value);
  return 0.3989422804014327 * density * t * (0.31938153 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))));
}

/**
 * @param {Numbers} gradient of the output
 * @param {Numbers} x
 * @param {number} half
 * @param {Numbers} gates
 * @param {Numbers} slopes
 * @param {Numbers} into the gradient of x, which is overwritten
 */
export function gateBack(gradient, x, half, gates, slopes, into) {
  for (let start = 0, from = 0; start < gradient.length; start += half, from += 2 * half) {
    for (let index = 0; index < half; index += 1) {
      const given = gradient[start + index];
      into[from + index] = given * gates[start + index];
      into[from + half + index] = given * x[from + index] * slopes[start + index];
    }
  }
}

/**
 * The sum of the cross-entropies of logits, in nats; the logits become their gradient times `factor`.
 * @param {Numbers} logits
 * @param {number} width
 * @param {ArrayLike<number>} targets one a row
 * @param {number} factor
 */
export function crossEntropy(logits, width, targets, factor) {
  let loss = 0;
  for (let row = 0, start = 0; start < logits.length; row += 1, start += width) {
    let [highest, sum] = [-Infinity, 0];
    for (let at = start; at < start + width; at += 1) highest = Math.max(highest, logits[at]);
    for (let at = start; at < start + width; at += 1) sum += Math.exp(logits[at] - highest);
    loss += Math.log(sum) + highest - logits[start + targets[row]];
    for (let at = start; at < start + width; at += 1) logits[at] = (factor * Math.exp(logits[at] - highest)) / sum;
    logits[start + targets[row]] -= factor;
  }
  return loss;
}

/**
 * @param {Numbers} stream to which a branch is added
 * @param {Numbers} branch
 * @param {Numbers} scale of each channel
 */
export function addScaled(stream, branch, scale) {
  const width = scale.length;
  for (let start = 0; start < stream.length; start += width) {
    for (let index = 0; index < width; index += 1) stream[start + index] += branch[start + index] * scale[index];
  }
}

/**
 * Adds to the gradient of the scale.
 * @param {Numbers} gradient of a stream
 * @param {Numbers} branch
 * @param {Numbers} scale
 * @param {Numbers} intoScale
 * @param {Numbers} into the gradient of the branch, which is overwritten
 */
export function scaleBack(gradient, branch, scale, intoScale, into) {
  const width = scale.length;
  for (let start = 0; start < gradient.length; start += width) {
    for (let index = 0; index < width; index += 1) {
      intoScale[index] += gradient[start + index] * branch[start + index];
      into[start + index] = gradient[start + index] * scale[index];
    }
  }
}
