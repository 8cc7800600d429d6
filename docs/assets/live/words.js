// @ts-check
/* Numbers, sizes and times in words; sizes as calculator/units.py writes them, which a test checks. */

import { grouped } from "../digits.js";

const UNITS = /** @type {const} */ ([
  [2 ** 50, "PiB"], [2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"],
]);
const FULL = 999.5 / 1024; // of a unit: from here on, a size would print as 1000 of the smaller one
const MONTHS = [
  "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December",
];

/** @param {number} value */
export const count = (value) => (Number.isFinite(value) ? grouped(value) : "–");

/**
 * @param {number} value
 * @param {number} digits after the point
 */
export const decimal = (value, digits) => (Number.isFinite(value) ? value.toFixed(digits) : "–");

/** @param {number} value A fraction, as a percentage with one digit, or two below a tenth of a percent. */
export const percent = (value) => (Number.isFinite(value) ? `${(100 * value).toFixed(value < 0.001 ? 2 : 1)}\u00a0%` : "–");

/** @param {number} size Bytes with three significant digits. */
export function bytes(size) {
  if (!Number.isFinite(size)) return "–";
  const unit = UNITS.find(([of]) => size >= of * FULL);
  if (!unit) return `${Math.round(size)}\u00a0B`;
  const amount = size / unit[0];
  const digits = amount >= 99.95 ? 0 : amount >= 9.995 ? 1 : 2;
  return `${amount.toFixed(digits)}\u00a0${unit[1]}`;
}

/** A length of time in the largest unit that gives at least 2, or in seconds. @type {(seconds: number) => string} */
export function ageInWords(seconds) {
  if (!Number.isFinite(seconds)) return "–";
  const whole = Math.max(0, Math.round(seconds));
  for (const [length, name] of /** @type {const} */ ([[86_400, "days"], [3600, "hours"], [60, "minutes"]])) {
    if (whole >= 2 * length) return `${Math.floor(whole / length)} ${name}`;
  }
  return `${whole} ${whole === 1 ? "second" : "seconds"}`;
}

/** A length of time as "1 h 23 min", "4 min 12 s" or "9 s". @type {(seconds: number) => string} */
export function duration(seconds) {
  if (!Number.isFinite(seconds)) return "–";
  const whole = Math.max(0, Math.round(seconds));
  const [days, hours, minutes] = [Math.floor(whole / 86_400), Math.floor(whole / 3600) % 24, Math.floor(whole / 60) % 60];
  if (days) return `${days} d ${hours} h`;
  if (hours) return `${hours} h ${minutes} min`;
  return minutes ? `${minutes} min ${whole % 60} s` : `${whole} s`;
}

/** @param {number} time Milliseconds since 1970. */
export function momentInWords(time) {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return "–";
  const clock = date.toISOString().slice(11, 16);
  return `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]} ${date.getUTCFullYear()}, ${clock} UTC`;
}
