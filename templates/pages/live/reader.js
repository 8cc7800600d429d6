// @ts-check
/* The charts in numbers: one step at a time, and a table of some fifty. */

import { interpolate, smooth } from "#assets/live/series.js";
import { make } from "#assets/elements.js";
import { bytes, count, decimal, momentInWords } from "#assets/live/words.js";

const TABLE_ROWS = 50;

/** @typedef {import("#assets/live/progress.js").Progress} Progress */
/** @typedef {import("#assets/live/data.js").Card} Card */

/**
 * The figures of a step as pairs of a name and words.
 * @param {Progress} progress
 * @param {Card | undefined} card
 * @param {number[]} smoothed losses
 * @param {number} index
 * @returns {[string, string][]}
 */
function figuresOf({ step, time, figures }, card, smoothed, index) {
  const corners = card?.schedule.corners ?? [];
  const rate = interpolate(corners.map(([place]) => place), corners.map(([, value]) => value), step[index]) ?? NaN;
  const at = (/** @type {import("#assets/live/progress.js").Figure} */ name) => figures[name][index];
  return [
    ["Time", momentInWords(time[index])],
    ["Step", count(step[index])],
    ["Loss", decimal(at("loss"), 3)],
    ["Smoothed", decimal(smoothed[index], 3)],
    ["Learning rate", Number.isFinite(rate) ? rate.toPrecision(3) : "–"],
    ["Sequences", count(at("samples"))],
    ["Per second", decimal(at("samples_per_second") || NaN, 1)],
    ["Training", count(at("training"))],
    ["Syncing", count(at("syncing"))],
    ["Left", count(at("left"))],
    ["Sent", bytes(at("bytes_sent"))],
    ["Received", bytes(at("bytes_received"))],
    ["Rejected", count(at("rejected"))],
  ];
}

/** A range field that goes through the steps, and the figures of the one it is at. */
export class Reader {
  /** @type {number | undefined} undefined: always the newest */
  #chosen;
  /** @type {Progress | undefined} */
  #progress;
  /** @type {Card | undefined} */
  #card;
  /** @type {number[]} */
  #smoothed = [];

  /**
   * @param {HTMLElement} root
   * @param {(index: number | undefined) => void} onPoint
   */
  constructor(root, onPoint) {
    this.onPoint = onPoint;
    this.slider = /** @type {HTMLInputElement} */ (root.querySelector("#live-reader"));
    this.place = /** @type {HTMLElement} */ (root.querySelector("[data-live=reader]"));
    this.details = /** @type {HTMLDetailsElement} */ (root.querySelector("[data-live=table]"));
    this.slider.addEventListener("input", () => this.point(Number(this.slider.value)));
    this.details.addEventListener("toggle", () => this.#showTable());
  }

  /**
   * @param {Progress} progress
   * @param {Card | undefined} card
   * @param {number} weight of the smoothing
   */
  show(progress, card, weight) {
    this.#progress = progress;
    this.#card = card;
    this.#smoothed = smooth(progress.figures.loss, weight);
    const last = Math.max(0, progress.length - 1);
    this.slider.max = String(last);
    this.slider.disabled = progress.length < 2;
    if (this.#chosen !== undefined && this.#chosen > last) this.#chosen = undefined;
    this.#read(this.#chosen ?? last);
    this.#showTable();
  }

  /** @param {number} index */
  point(index) {
    const newest = index === (this.#progress?.length ?? 0) - 1;
    this.#chosen = newest ? undefined : index;
    this.#read(index);
    this.onPoint(index);
  }

  /** @param {number} index */
  #read(index) {
    if (!this.#progress?.length) return this.place.replaceChildren();
    const pairs = figuresOf(this.#progress, this.#card, this.#smoothed, index);
    this.slider.value = String(index);
    this.slider.setAttribute("aria-valuetext", pairs.map(([name, words]) => `${name} ${words}`).join(", "));
    const cells = this.place.querySelectorAll("dd");
    if (cells.length === pairs.length) pairs.forEach(([, words], at) => (cells[at].textContent = words));
    else this.place.replaceChildren(...pairs.map(([name, words]) => make("div", {}, make("dt", {}, name), make("dd", {}, words))));
  }

  /** Some fifty steps, the first and the newest among them, while the table is open. */
  #showTable() {
    const progress = this.#progress;
    if (!this.details.open || !progress?.length) return;
    const table = /** @type {HTMLTableElement} */ (this.details.querySelector("table"));
    const every = Math.max(1, Math.ceil((progress.length - 1) / (TABLE_ROWS - 1)));
    const indices = [...progress.step.keys()].filter((index) => index % every === 0);
    if (indices.at(-1) !== progress.length - 1) indices.push(progress.length - 1);
    const rows = indices.map((index) => figuresOf(progress, this.#card, this.#smoothed, index));
    const caption = /** @type {HTMLElement} */ (table.caption);
    caption.textContent = every === 1 ? "Every step." : `Every ${count(every)}th step and the newest.`;
    table.tHead?.replaceChildren(make("tr", {}, ...rows[0].map(([name]) => make("th", { scope: "col" }, name))));
    table.tBodies[0].replaceChildren(...rows.map(([[, time], ...others]) =>
      make("tr", {}, make("th", { scope: "row" }, time), ...others.map(([, words]) => make("td", {}, words)))));
  }
}
