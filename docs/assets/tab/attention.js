// @ts-check
/* Attention with rotary embeddings, and its gradient; rows and `at` as in layers.js. */

/** @typedef {Float32Array} Numbers */

/**
 * Turns channel i and the channel half a head further by the position's angle i, in place.
 * @param {Numbers} x rows of queries, keys and values
 * @param {{cosine: Numbers, sine: Numbers}} turns half a head's numbers for each position
 * @param {{heads: number, size: number}} shape
 * @param {number} direction 1, or -1 for the gradient
 * @param {number} at
 */
export function rotate(x, { cosine, sine }, { heads, size }, direction, at) {
  const [half, width] = [size / 2, 3 * heads * size];
  for (let start = 0, angle = at * half; start < x.length; start += width, angle = (angle + half) % cosine.length) {
    for (let head = 0; head < 2 * heads; head += 1) {
      for (let index = 0, from = start + head * size; index < half; index += 1, from += 1) {
        const [one, other] = [x[from], x[from + half]];
        const [c, s] = [cosine[angle + index], direction * sine[angle + index]];
        x[from] = one * c - other * s;
        x[from + half] = other * c + one * s;
      }
    }
  }
}

/** @typedef {{heads: number, size: number, seen: Int32Array[], most: number}} Sight by position; most: that one sees */

/**
 * Each head's mean of the values that a position sees, weighted by how their keys fit the query.
 * @param {Numbers} x rows of queries, keys and values
 * @param {Sight} sight
 * @param {Numbers} shares what is kept: most numbers for each row and head
 * @param {Numbers} out
 * @param {number} at
 */
export function attend(x, { heads, size, seen, most }, shares, out, at) {
  const [inner, length, factor] = [heads * size, seen.length, 1 / Math.sqrt(size)];
  out.fill(0);
  for (let own = 0, row = at; own * inner < out.length; own += 1, row += 1) {
    const places = seen[row % length];
    const first = row - (row % length); // row of the sequence's first position
    for (let head = 0; head < heads; head += 1) {
      const [query, kept, into] = [3 * row * inner + head * size, (own * heads + head) * most, own * inner + head * size];
      let highest = -Infinity;
      for (let order = 0; order < places.length; order += 1) {
        const key = 3 * (first + places[order]) * inner + inner + head * size;
        let sum = 0;
        for (let index = 0; index < size; index += 1) sum += x[query + index] * x[key + index];
        shares[kept + order] = sum * factor;
        if (sum * factor > highest) highest = sum * factor;
      }
      let total = 0;
      for (let order = 0; order < places.length; order += 1) total += shares[kept + order] = Math.exp(shares[kept + order] - highest);
      for (let order = 0; order < places.length; order += 1) {
        const share = (shares[kept + order] /= total);
        const value = 3 * (first + places[order]) * inner + 2 * inner + head * size;
        for (let index = 0; index < size; index += 1) out[into + index] += share * x[value + index];
      }
    }
  }
}

/**
 * @param {Numbers} gradient of the output
 * @param {Numbers} x
 * @param {Sight} sight
 * @param {Numbers} shares
 * @param {Numbers} into the gradient of x, which is overwritten
 */
export function attendBack(gradient, x, { heads, size, seen, most }, shares, into) {
  const [inner, length, factor] = [heads * size, seen.length, 1 / Math.sqrt(size)];
  const fits = new Float64Array(most);
  into.fill(0);
  for (let row = 0; row * inner < gradient.length; row += 1) {
    const places = seen[row % length];
    const first = row - (row % length);
    for (let head = 0; head < heads; head += 1) {
      const [query, kept, from] = [3 * row * inner + head * size, (row * heads + head) * most, row * inner + head * size];
      let mean = 0;
      for (let order = 0; order < places.length; order += 1) {
        const value = 3 * (first + places[order]) * inner + 2 * inner + head * size;
        const share = shares[kept + order];
        let sum = 0;
        for (let index = 0; index < size; index += 1) {
          sum += gradient[from + index] * x[value + index];
          into[value + index] += share * gradient[from + index];
        }
        fits[order] = sum;
        mean += share * sum;
      }
      for (let order = 0; order < places.length; order += 1) {
        const key = 3 * (first + places[order]) * inner + inner + head * size;
        const slope = shares[kept + order] * (fits[order] - mean) * factor;
        for (let index = 0; index < size; index += 1) {
          into[query + index] += slope * x[key + index];
          into[key + index] += slope * x[query + index];
        }
      }
    }
  }
}
