// @ts-check
/*
 * Numbers with commas between thousands. Browsers have `toLocaleString` for it, but for its first
 * call, as for the first `Intl` formatter, they load the rules of all languages: tens of milliseconds
 * in which a page cannot move.
 */

/**
 * @param {number} value
 * @param {number} [places] after the point, at most
 */
export function grouped(value, places = 0) {
  const [whole, fraction] = String(Number(value.toFixed(places))).split(".");
  const digits = whole.replace(/\B(?=(\d{3})+$)/g, ",");
  return fraction ? `${digits}.${fraction}` : digits;
}
