// @ts-check
/*
 * The fixed prompts as the model draws or continues them, checkpoint after checkpoint. Each picture is
 * a file, and all are below the first screens: they are fetched when the visitor comes near.
 */

import { find, make, write } from "#assets/elements.js";
import { fileOf } from "#assets/live/valid.js";
import { count, decimal, momentInWords } from "#assets/live/words.js";

/** @typedef {import("#assets/live/data.js").Samples} Samples */
/** @typedef {{step: number, loss: number | null}} Rung */

const NEAR = "500px"; // below or above the screen
export const PICTURES = {
  heading: "Pictures during the run",
  lead: "At each checkpoint, the model draws the same captions from the same random numbers.",
};
const TEXTS = {
  heading: "Texts during the run",
  lead: "At each checkpoint, the model continues the same beginnings with the same random numbers.",
};

export class Pictures {
  /** @type {Samples} */
  #samples = { prompts: [], checkpoints: [] };
  /** @type {Map<number, number | null>} */
  #losses = new Map();
  #folder = new URL(location.href);
  /** The step whose pictures are shown; undefined: always the newest. @type {number | undefined} */
  #chosen;
  #drawn = "";
  #isNear = false;

  /** @param {HTMLElement} root */
  constructor(root) {
    this.section = find(root, "[data-live=pictures]");
    this.slider = /** @type {HTMLInputElement} */ (find(root, "#live-checkpoint"));
    this.heading = find(root, "#pictures-heading");
    this.lead = find(root, "[data-live=pictures-lead]");
    this.when = find(root, "[data-live=pictures-when]");
    this.grid = find(root, "[data-live=pictures-grid]");
    this.sight = new IntersectionObserver(([entry]) => entry.isIntersecting && this.#approach(), { rootMargin: NEAR });
    this.sight.observe(this.grid);
    for (const kind of ["pointerenter", "focus"]) this.slider.addEventListener(kind, () => this.#fetchNear());
    this.slider.addEventListener("input", () => {
      const at = Number(this.slider.value);
      const newest = at === this.#samples.checkpoints.length - 1;
      this.#chosen = newest ? undefined : this.#samples.checkpoints[at].step;
      this.#draw(at);
    });
  }

  /**
   * @param {import("#assets/live/data.js").RunData} data
   * @param {[number, number] | undefined} between only checkpoints of this time, milliseconds
   */
  show({ samples, checkpoints, folder }, between) {
    this.#folder = folder;
    this.#losses = new Map(checkpoints.map(({ step, loss }) => [step, loss]));
    const inside = (/** @type {string} */ time) => !between || (Date.parse(time) >= between[0] && Date.parse(time) <= between[1]);
    this.#samples = { ...samples, checkpoints: samples.checkpoints.filter(({ time }) => inside(time)) };
    const last = this.#samples.checkpoints.length - 1;
    this.section.hidden = last < 0;
    if (last < 0) return;
    const found = this.#samples.checkpoints.findIndex(({ step }) => step === this.#chosen);
    this.slider.max = String(last);
    this.slider.disabled = last === 0;
    this.#draw(found < 0 ? last : found);
  }

  /** @param {number} step Show the pictures of this step's checkpoint. */
  choose(step) {
    const at = this.#samples.checkpoints.findIndex((checkpoint) => checkpoint.step === step);
    if (at < 0) return;
    this.#chosen = step;
    this.#draw(at);
    this.section.scrollIntoView({ block: "start" });
    this.slider.focus({ preventScroll: true });
  }

  stop() {
    this.sight.disconnect();
  }

  #approach() {
    this.sight.disconnect();
    this.#isNear = true;
    // The page's own, should the run's data not come.
    for (const plain of this.grid.querySelectorAll("noscript")) {
      plain.replaceWith(document.createRange().createContextualFragment(plain.textContent ?? ""));
    }
    if (this.#samples.checkpoints.length) this.#draw(Number(this.slider.value));
  }

  /** @param {number} at */
  #draw(at) {
    const { prompts, checkpoints } = this.#samples;
    const checkpoint = checkpoints[at];
    const words = whenInWords(checkpoint, this.#losses.get(checkpoint.step));
    this.slider.value = String(at);
    this.slider.setAttribute("aria-valuetext", words);
    write(this.when, `${words}. ${placeInWords(at, checkpoints.length)}`);
    const key = JSON.stringify([this.#folder.href, checkpoint, prompts, this.#isNear]);
    if (key === this.#drawn) return;
    this.#drawn = key;
    this.#drawRows(prompts, checkpoint);
    if (this.slider.matches(":focus, :hover")) this.#fetchNear();
  }

  /** Have the pictures of the checkpoints beside the present one before the slider is moved there. */
  #fetchNear() {
    const { checkpoints } = this.#samples;
    const at = Number(this.slider.value);
    for (const near of [checkpoints[at - 1], checkpoints[at + 1]]) {
      for (const path of near?.images.flat() ?? []) new Image().src = this.#addressOf(path);
    }
  }

  /** @type {(prompts: string[], checkpoint: Samples["checkpoints"][number]) => void} */
  #drawRows(prompts, { step, images, texts }) {
    const { heading, lead } = texts.length ? TEXTS : PICTURES;
    write(this.heading, heading);
    write(this.lead, lead);
    const number = Math.max(images.length, texts.length);
    const rows = [.../** @type {NodeListOf<HTMLElement>} */ (this.grid.querySelectorAll(".through__row"))];
    while (rows.length > number) rows.pop()?.remove();
    while (rows.length < number) {
      const row = make("figure", { class: "through__row" }, make("figcaption"), make("div"));
      rows.push(row);
      this.grid.append(row);
    }
    rows.forEach((row, at) => {
      write(row.querySelector("figcaption"), prompts[at] ?? "");
      const place = /** @type {HTMLElement} */ (row.querySelector("div"));
      if (texts.length) place.replaceChildren(...texts[at].map((text) => make("p", {}, text)));
      else this.#drawRow(place, prompts[at] ?? "", step, images[at]);
    });
  }

  /**
   * Images are kept where their number allows it, so that nothing jumps while the slider moves.
   * @type {(place: HTMLElement, prompt: string, step: number, paths: string[]) => void}
   */
  #drawRow(place, prompt, step, paths) {
    for (const other of place.querySelectorAll("noscript, p")) other.remove();
    while (place.children.length > paths.length) place.lastElementChild?.remove();
    while (place.children.length < paths.length) place.append(make("img", { width: "64", height: "64" }));
    paths.forEach((path, index) => {
      const image = /** @type {HTMLImageElement} */ (place.children[index]);
      const address = this.#addressOf(path);
      if (this.#isNear && image.src !== address) image.src = address;
      image.alt = drawingInWords(prompt, index, paths.length, step);
    });
  }

  /** @param {string} path */
  #addressOf(path) {
    return fileOf(path, this.#folder) ?? "";
  }
}

/**
 * The checkpoint that pictures are from.
 * @type {(checkpoint: {step: number, time: string}, loss?: number | null) => string}
 */
export function whenInWords({ step, time }, loss) {
  const words = typeof loss === "number" ? `, loss ${decimal(loss, 3)}` : "";
  return `Step ${count(step)}${words}, ${momentInWords(Date.parse(time))}`;
}

/** @type {(index: number, all: number) => string} */
export const placeInWords = (index, all) => `Checkpoint ${index + 1} of ${all}.`;

/** A picture's text alternative. @type {(prompt: string, index: number, all: number, step: number) => string} */
export const drawingInWords = (prompt, index, all, step) => `${prompt}: drawing ${index + 1} of ${all} at step ${count(step)}`;
