// @ts-check
/* A run on one picture of 1200 by 630, the size that messengers show: its words, then its pixels. */

import { growing, smooth, thin } from "#assets/live/series.js";
import { count, decimal, duration, momentInWords, percent } from "#assets/live/words.js";

/** @typedef {import("./people.js").Person} Person */
/**
 * @typedef {object} Card
 * @property {string} title
 * @property {string} state
 * @property {[string, string][]} figures label and value
 * @property {[number, number][]} curve step and smoothed loss
 * @property {{words: string, above: number, own: number} | undefined} part of one contributor: the
 *     shares of those of higher ranks, and their own
 * @property {string} site
 * @property {string} address
 */

export const [WIDTH, HEIGHT] = [1200, 630];
const MARGIN = 64;
const SMOOTHING = 0.6; // as the page's own chart at first
const COLUMNS = 500; // of the curve

/**
 * What a card says.
 * @param {import("#assets/live/data.js").RunData} data
 * @param {Person | undefined} person whose part is shown
 * @param {Person[]} people by rank
 * @param {{site: string, address: string, now: number}} context
 * @returns {Card}
 */
export function cardOf({ card, name, progress, peers }, person, people, { site, address, now }) {
  const last = progress.length - 1;
  const { loss, samples } = progress.figures;
  const end = card?.finished ? Date.parse(card.finished) : now;
  const steps = `${count(progress.step[last] ?? 0)} of ${count(card?.schedule.total_steps ?? NaN)} steps`;
  return {
    title: card?.title || name,
    state: card?.finished ? `Finished on ${momentInWords(end)}, after ${steps}` : `In progress: ${steps}`,
    figures: [
      [peers.length === 1 ? "Volunteer" : "Volunteers", count(peers.length)],
      ["Training sequences", count(samples.reduce((sum, some) => sum + (some || 0), 0))],
      ["Loss", decimal(loss[last] ?? NaN, 3)],
      [card?.finished ? "Took" : "Running for", duration((end - Date.parse(card?.start ?? "")) / 1000)],
    ],
    curve: curveOf(progress),
    part: person && partOf(person, people),
    site,
    address,
  };
}

/** @param {Card} card The same in one paragraph, as the picture's text alternative. */
export function inWords({ title, state, figures, curve, part }) {
  const [first, last] = [curve.at(0), curve.at(-1)];
  const fall = first && last ? ` The loss went from ${decimal(first[1], 3)} at step ${count(first[0])} to ${decimal(last[1], 3)} at step ${count(last[0])}.` : "";
  return `${title}. ${state}. ${figures.map(([label, value]) => `${label}: ${value}.`).join(" ")}${fall}${part ? ` ${part.words}.` : ""}`;
}

/** @type {(person: Person, people: Person[]) => {words: string, above: number, own: number}} */
function partOf(person, people) {
  const above = people.slice(0, person.rank - 1).reduce((sum, { share }) => sum + (share || 0), 0);
  const words = `${person.name || person.id} computed ${percent(person.share)} of the sequences: rank ${count(person.rank)} of ${count(people.length)}`;
  return { words, above, own: person.share || 0 };
}

/** @param {import("#assets/live/progress.js").Progress} progress */
function curveOf({ step, figures }) {
  const steps = growing(step);
  const losses = smooth(figures.loss, SMOOTHING);
  const range = /** @type {[number, number]} */ ([steps[0] ?? 0, steps.at(-1) ?? 0]);
  return thin(steps, losses, range, COLUMNS).map((index) => /** @type {[number, number]} */ ([steps[index], losses[index]]));
}

/** @type {(canvas: HTMLCanvasElement, card: Card) => void} */
export function paint(canvas, card) {
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const brush = new Brush(pen);
  [canvas.width, canvas.height] = [WIDTH, HEIGHT];
  pen.fillStyle = brush.colour("paper");
  pen.fillRect(0, 0, WIDTH, HEIGHT);
  brush.text(card.title, MARGIN, 112, { size: 54, weight: 740, colour: "ink" });
  brush.text(card.state, MARGIN, 158, { size: 25, colour: "muted" });
  card.figures.forEach(([label, value], index) => {
    const left = MARGIN + (index * (WIDTH - 2 * MARGIN)) / card.figures.length;
    brush.text(label, left, 222, { size: 21, weight: 600, colour: "muted" });
    brush.text(value, left, 268, { size: 44, weight: 700, colour: "ink" });
  });
  paintCurve(brush, card.curve, card.part ? 452 : 532);
  if (card.part) paintPart(brush, card.part);
  brush.text(card.site, MARGIN, 596, { size: 21, weight: 600, colour: "muted" });
  brush.text(card.address, WIDTH - MARGIN, 596, { size: 21, colour: "muted", align: "right" });
}

/**
 * @param {Brush} brush
 * @param {[number, number][]} curve
 * @param {number} ground height of the lowest loss
 */
function paintCurve({ pen, colour, text }, curve, ground) {
  if (curve.length < 2) return;
  const top = 320;
  const [steps, losses] = [curve.map(([step]) => step), curve.map(([, loss]) => loss)];
  const [first, last, low, high] = [steps[0], steps[steps.length - 1], Math.min(...losses), Math.max(...losses)];
  const across = (/** @type {number} */ step) => MARGIN + ((WIDTH - 2 * MARGIN) * (step - first)) / (last - first || 1);
  const up = (/** @type {number} */ loss) => ground - ((ground - top) * (loss - low)) / (high - low || 1);
  pen.strokeStyle = colour("line");
  pen.lineWidth = 2;
  pen.strokeRect(MARGIN, ground, WIDTH - 2 * MARGIN, 0);
  pen.beginPath();
  for (const [step, loss] of curve) pen.lineTo(across(step), up(loss));
  pen.strokeStyle = colour("series-1");
  pen.lineWidth = 5;
  pen.lineJoin = "round";
  pen.stroke();
  text(`Loss ${decimal(losses[0], 2)}`, MARGIN + 32, up(losses[0]) + 6, { size: 21, colour: "muted" });
  text(decimal(losses[losses.length - 1], 2), WIDTH - MARGIN, up(losses[losses.length - 1]) - 16, { size: 21, colour: "muted", align: "right" });
}

/** @type {(brush: Brush, part: {words: string, above: number, own: number}) => void} */
function paintPart({ pen, colour, text }, { words, above, own }) {
  const wide = WIDTH - 2 * MARGIN;
  pen.fillStyle = colour("line");
  pen.fillRect(MARGIN, 486, wide, 14);
  pen.fillStyle = colour("ink");
  pen.fillRect(MARGIN + above * wide, 486, Math.max(4, own * wide), 14);
  text(words, MARGIN, 538, { size: 27, weight: 600, colour: "ink" });
}

/** Writes in the page's font and colors. */
class Brush {
  /** @param {CanvasRenderingContext2D} pen */
  constructor(pen) {
    this.pen = pen;
    const style = getComputedStyle(document.body);
    this.colour = (/** @type {string} */ token) => style.getPropertyValue(`--${token}`).trim();
    this.family = style.fontFamily;
  }

  /**
   * A line of text, shortened to what fits between the margins.
   * @param {string} words
   * @param {number} x
   * @param {number} y of the letters' feet
   * @param {{size: number, colour: string, weight?: number, align?: "left" | "right"}} look
   */
  text = (words, x, y, { size, colour, weight = 420, align = "left" }) => {
    this.pen.font = `${weight} ${size}px ${this.family}`;
    this.pen.textAlign = align;
    this.pen.fillStyle = this.colour(colour);
    const room = align === "left" ? WIDTH - MARGIN - x : x - MARGIN;
    let shown = words;
    for (let length = words.length; length > 1 && this.pen.measureText(shown).width > room; length -= 1) {
      shown = `${words.slice(0, length).trimEnd()}…`;
    }
    this.pen.fillText(shown, x, y);
  };
}
