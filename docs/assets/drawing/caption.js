// @ts-check
/* From a caption to the ids of its words, as training/model/captions.py does. */

/** A caption that the model cannot read; the message says why. */
export class CaptionError extends Error {}

/**
 * @param {string} caption
 * @param {import("./weights.js").About} about
 * @returns {number[]} as many as the model reads, padding included
 * @throws {CaptionError}
 */
export function idsOf(caption, { words, model: { text_length: length, padding_id: padding } }) {
  const typed = caption.toLowerCase().split(/\s+/).filter(Boolean);
  if (!typed.length) throw new CaptionError("Type a caption first.");
  const unknown = typed.find((word) => !words.includes(word));
  if (unknown) throw new CaptionError(`The model never saw the word “${unknown}”. It knows these: ${words.join(", ")}.`);
  if (typed.length > length) throw new CaptionError(`The caption has ${typed.length} words. The model reads at most ${length}.`);
  return Array.from({ length }, (_, place) => (place < typed.length ? words.indexOf(typed[place]) + 1 : padding));
}
