// @ts-check
/*
 * From codes to pixels: the decoder of a VQ-GAN without attention, as diffusers' VQModel has it
 * (Esser et al. 2021, arXiv:2012.09841). A map is its channels one after the other, each row by row.
 */

/** @typedef {{side: number, channels: number, values: Float64Array}} FeatureMap */
/** @typedef {{weight: Float32Array, bias: Float32Array, size: number}} Convolution size: 1 or 3 */
/** @typedef {{weight: Float32Array, bias: Float32Array}} Norm */
/** @typedef {{norm1: Norm, conv1: Convolution, norm2: Norm, conv2: Convolution, shortcut: Convolution | undefined}} Residual */

const NORM_EPSILON = 1e-6; // of VQModel's group norms

export class Decoder {
  /** @param {import("./weights.js").Weights} weights */
  constructor(weights) {
    const { channels, latent_channels: latent, layers_per_block: layers, norm_groups: groups } = weights.about.codes;
    const tensor = (/** @type {string} */ name, /** @type {number[]} */ ...sizes) => weights.tensor(`codes.${name}`, ...sizes);
    /** @returns {Convolution} */
    const convolution = (/** @type {string} */ name, /** @type {number} */ from, /** @type {number} */ to, size = 3) =>
      ({ weight: tensor(`${name}.weight`, to, from, size, size), bias: tensor(`${name}.bias`, to), size });
    const norm = (/** @type {string} */ name, /** @type {number} */ width) =>
      ({ weight: tensor(`${name}.weight`, width), bias: tensor(`${name}.bias`, width) });
    /** @returns {Residual} */
    const residual = (/** @type {string} */ name, /** @type {number} */ from, /** @type {number} */ to) => ({
      norm1: norm(`${name}.norm1`, from),
      conv1: convolution(`${name}.conv1`, from, to),
      norm2: norm(`${name}.norm2`, to),
      conv2: convolution(`${name}.conv2`, to, to),
      shortcut: from === to ? undefined : convolution(`${name}.conv_shortcut`, from, to, 1),
    });
    const widths = [...channels].reverse();
    this.groups = groups;
    this.side = weights.about.model.image_side;
    this.latent = latent;
    this.codebook = tensor("quantize.embedding.weight", weights.about.model.image_vocabulary_size, latent);
    this.before = convolution("post_quant_conv", latent, latent, 1);
    this.first = convolution("decoder.conv_in", latent, widths[0]);
    this.middle = [0, 1].map((index) => residual(`decoder.mid_block.resnets.${index}`, widths[0], widths[0]));
    this.blocks = widths.map((width, block) => ({
      residuals: Array.from({ length: layers + 1 }, (_, index) =>
        residual(`decoder.up_blocks.${block}.resnets.${index}`, index ? width : widths[Math.max(0, block - 1)], width)),
      larger: block < widths.length - 1 ? convolution(`decoder.up_blocks.${block}.upsamplers.0.conv`, width, width) : undefined,
    }));
    this.lastNorm = norm("decoder.conv_norm_out", channels[0]);
    this.last = convolution("decoder.conv_out", channels[0], 3);
  }

  /**
   * Red, green and blue of each pixel, from -1 to 1 and a little beyond.
   * @param {number[]} codes row by row
   * @returns {FeatureMap}
   */
  decode(codes) {
    const values = new Float64Array(this.latent * codes.length);
    codes.forEach((code, place) => {
      for (let channel = 0; channel < this.latent; channel += 1) {
        values[channel * codes.length + place] = this.codebook[code * this.latent + channel];
      }
    });
    let map = convolved(convolved({ side: this.side, channels: this.latent, values }, this.before), this.first);
    for (const one of this.middle) map = this.#residual(map, one);
    for (const { residuals, larger } of this.blocks) {
      for (const one of residuals) map = this.#residual(map, one);
      if (larger) map = convolved(doubled(map), larger);
    }
    return convolved(activated(map, this.lastNorm, this.groups), this.last);
  }

  /** @type {(map: FeatureMap, residual: Residual) => FeatureMap} */
  #residual(map, { norm1, conv1, norm2, conv2, shortcut }) {
    const between = convolved(activated(map, norm1, this.groups), conv1);
    const { values, ...size } = convolved(activated(between, norm2, this.groups), conv2);
    const direct = shortcut ? convolved(map, shortcut).values : map.values;
    return { ...size, values: values.map((value, index) => value + direct[index]) };
  }
}

/**
 * A map as a picture's bytes: red, green, blue and opacity of each pixel. They are rounded and
 * clamped as training/pictures/codes.py does, which is the rule of this kind of array.
 * @type {(map: FeatureMap) => Uint8ClampedArray<ArrayBuffer>}
 */
export function toPixels({ side, values }) {
  const area = side * side;
  const pixels = new Uint8ClampedArray(4 * area).fill(255);
  for (let place = 0; place < area; place += 1) {
    for (let channel = 0; channel < 3; channel += 1) pixels[4 * place + channel] = (values[channel * area + place] + 1) * 127.5;
  }
  return pixels;
}

/** Group norm, then SiLU. @type {(map: FeatureMap, norm: Norm, groups: number) => FeatureMap} */
function activated({ side, channels, values }, { weight, bias }, groups) {
  const area = side * side;
  const size = (channels / groups) * area;
  const out = new Float64Array(values.length);
  for (let start = 0; start < values.length; start += size) {
    let [sum, squares] = [0, 0];
    for (let index = start; index < start + size; index += 1) sum += values[index];
    const mean = sum / size;
    for (let index = start; index < start + size; index += 1) squares += (values[index] - mean) ** 2;
    const scale = 1 / Math.sqrt(squares / size + NORM_EPSILON);
    for (let index = start; index < start + size; index += 1) {
      const channel = Math.floor(index / area);
      const value = (values[index] - mean) * scale * weight[channel] + bias[channel];
      out[index] = value / (1 + Math.exp(-value));
    }
  }
  return { side, channels, values: out };
}

/** Twice as many rows and columns, each value four times. @type {(map: FeatureMap) => FeatureMap} */
function doubled({ side, channels, values }) {
  const wide = 2 * side;
  const out = new Float64Array(4 * values.length);
  for (let index = 0; index < out.length; index += 1) {
    const [row, column] = [Math.floor(index / wide), index % wide]; // rows of all channels, one after the other
    out[index] = values[(row >> 1) * side + (column >> 1)];
  }
  return { side: wide, channels, values: out };
}

/**
 * A convolution whose output is as large as its input; outside of it are zeros.
 * @type {(map: FeatureMap, convolution: Convolution) => FeatureMap}
 */
function convolved({ side, channels, values }, { weight, bias, size }) {
  const area = side * side;
  const reach = (size - 1) / 2;
  const out = new Float64Array(bias.length * area);
  for (let to = 0, at = 0; to < bias.length; to += 1) {
    out.fill(bias[to], to * area, (to + 1) * area);
    for (let from = 0; from < channels; from += 1) {
      for (let down = -reach; down <= reach; down += 1) {
        for (let across = -reach; across <= reach; across += 1, at += 1) {
          addShifted(out, to * area, values, from * area, side, down, across, weight[at]);
        }
      }
    }
  }
  return { side, channels: bias.length, values: out };
}

/**
 * Add to one channel a share of another, moved up by `down` rows and left by `across` columns.
 * @param {Float64Array} out
 * @param {number} target where the channel starts
 * @param {Float64Array} values
 * @param {number} source where the other channel starts
 * @param {number} side
 * @param {number} down
 * @param {number} across
 * @param {number} share
 */
function addShifted(out, target, values, source, side, down, across, share) {
  const [first, end] = [Math.max(0, -across), Math.min(side, side - across)];
  for (let row = Math.max(0, -down); row < Math.min(side, side - down); row += 1) {
    const into = target + row * side;
    const from = source + (row + down) * side + across;
    for (let column = first; column < end; column += 1) out[into + column] += share * values[from + column];
  }
}
