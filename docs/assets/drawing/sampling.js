// @ts-check
/* Which code comes next: the rule of training/pictures/sampling.py. */

/**
 * The codes that may be drawn, the likeliest first, and their probabilities. Top-k keeps the k
 * likeliest, top-p the fewest whose probabilities together reach p; a temperature of 0 keeps one.
 * @type {(logits: Float32Array, settings: import("./weights.js").Settings) => {code: number, probability: number}[]}
 */
export function truncate(logits, { temperature, top_k: most, top_p: enough }) {
  const order = Array.from(logits, (_, code) => code).sort((a, b) => logits[b] - logits[a]);
  if (temperature === 0) return [{ code: order[0], probability: 1 }];
  const shares = order.map((code) => ({ code, probability: Math.exp((logits[code] - logits[order[0]]) / temperature) }));
  const likeliest = scaled(shares.slice(0, most ?? shares.length));
  if (enough === null) return likeliest;
  let before = 0;
  return scaled(likeliest.filter(({ probability }) => {
    const kept = before < enough;
    before += probability;
    return kept;
  }));
}

/**
 * Draw one of the codes.
 * @param {{code: number, probability: number}[]} codes
 * @param {number} chance from 0 to below 1
 */
export function choose(codes, chance) {
  let reached = 0;
  for (const { code, probability } of codes) {
    reached += probability;
    if (chance < reached) return code;
  }
  return codes[codes.length - 1].code; // rounding may leave the sum a little below 1
}

/**
 * Probabilities that sum to 1.
 * @type {(codes: {code: number, probability: number}[]) => {code: number, probability: number}[]}
 */
function scaled(codes) {
  const sum = codes.reduce((before, { probability }) => before + probability, 0);
  return codes.map(({ code, probability }) => ({ code, probability: probability / sum }));
}
