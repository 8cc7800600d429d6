// @ts-check
/*
 * The box in which visitors draw their own captions, for runs whose model is small enough to run in
 * a page. The weights are fetched when somebody asks for a picture, by a worker that then draws.
 */

import { find, make, write } from "#assets/elements.js";
import { fileOf } from "#assets/live/valid.js";
import { bytes, count, decimal } from "#assets/live/words.js";

const LARGEST_FILE = 2 ** 23; // bytes; training/pictures/in_page.py packs half of that at most
const SUM = /^[0-9a-f]{64}$/;

/** @typedef {{address: string, sha256: string, step: number, size: number}} Model */

export class DrawingBox {
  /** @type {Worker | undefined} */
  #worker;
  /** What the worker draws with, and what it should draw with next. @type {Model | undefined} */
  #loaded;
  /** @type {Model | undefined} */
  #newest;
  #order = { id: 0, caption: "", began: 0, isFirst: false };
  #run = "";

  /** @param {HTMLElement} root */
  constructor(root) {
    this.section = find(root, "[data-live=draw]");
    this.form = /** @type {HTMLFormElement} */ (find(root, "[data-live=draw-form]"));
    this.caption = /** @type {HTMLInputElement} */ (find(root, "#live-caption"));
    this.button = find(root, "[data-live=draw-button]");
    this.error = find(root, "[data-live=draw-error]");
    this.status = find(root, "[data-live=draw-status]");
    this.figure = find(root, "[data-live=drawn]");
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#draw();
    });
  }

  /** @param {import("#assets/live/data.js").RunData} data */
  show({ name, folder, checkpoints, samples, card }) {
    const newest = checkpoints.map((checkpoint) => modelOf(checkpoint, folder)).filter((model) => model !== undefined).at(-1);
    if (name !== this.#run) this.#reset(name, samples.prompts);
    this.#newest = newest;
    this.section.hidden = !newest;
    if (!newest) return;
    this.caption.placeholder = samples.prompts[0] ?? "";
    write(this.section.querySelector("[data-live=draw-parameters]"), count(card?.parameters ?? NaN));
    this.#showButton();
  }

  stop() {
    this.#worker?.terminate();
    this.#worker = this.#loaded = undefined;
  }

  /** @type {(run: string, prompts: string[]) => void} */
  #reset(run, prompts) {
    this.stop();
    this.#run = run;
    this.caption.value = prompts.at(-1) ?? "";
    this.figure.hidden = true;
    for (const place of [this.error, this.status]) write(place, "");
  }

  #showButton() {
    const there = this.#loaded?.address === this.#newest?.address;
    write(this.button, there ? "Draw" : `Download ${bytes(this.#newest?.size ?? NaN)} and draw`);
  }

  #draw() {
    const model = this.#newest;
    if (!model) return;
    const isFirst = this.#loaded?.address !== model.address;
    if (isFirst) this.#start(model);
    const seed = Number(new FormData(this.form).get("seed"));
    this.#order = { id: this.#order.id + 1, caption: this.caption.value.trim(), began: performance.now(), isFirst };
    const { id, caption } = this.#order;
    this.#refuse("");
    write(this.status, isFirst ? "Downloading the weights …" : "Drawing …");
    this.#worker?.postMessage({ id, caption, seed, address: model.address, sha256: model.sha256 });
  }

  /** @param {Model} model */
  #start(model) {
    this.stop();
    this.#loaded = model;
    const worker = new Worker(new URL("./drawing-worker.js", import.meta.url), { type: "module" });
    this.#worker = worker;
    worker.addEventListener("message", ({ data }) => this.#worker === worker && this.#take(data));
    for (const kind of ["error", "messageerror"]) {
      worker.addEventListener(kind, () => this.#worker === worker && this.#fail("the script that draws did not load"));
    }
  }

  /** @param {import("#assets/drawing-worker.js").Delivery} delivery */
  #take(delivery) {
    if (delivery.id !== this.#order.id) return;
    if (delivery.kind === "picture") return this.#add(delivery);
    if (delivery.kind === "failed") return this.#fail(delivery.message);
    this.#showButton();
    if (delivery.kind === "refused") return this.#refuse(delivery.message);
    const seconds = (performance.now() - this.#order.began) / 1000;
    write(this.status, `${this.#order.isFirst ? "Downloaded and drawn" : "Drawn"} in ${decimal(seconds, 1)} seconds with the weights of step ${count(this.#loaded?.step ?? NaN)}. Another seed gives other pictures.`);
  }

  /** @param {{side: number, pixels: Uint8ClampedArray<ArrayBuffer>}} picture */
  #add({ side, pixels }) {
    const { caption, id } = this.#order;
    const place = /** @type {HTMLElement} */ (this.figure.querySelector("div"));
    if (this.figure.dataset.order !== String(id)) place.replaceChildren();
    this.figure.dataset.order = String(id);
    this.figure.hidden = false;
    write(this.figure.querySelector("figcaption"), caption);
    const words = `${caption}: drawing ${place.children.length + 1}`;
    const canvas = make("canvas", { width: String(side), height: String(side), role: "img", "aria-label": words });
    canvas.getContext("2d")?.putImageData(new ImageData(pixels, side, side), 0, 0);
    place.append(canvas);
  }

  /** @param {string} reason */
  #fail(reason) {
    this.stop();
    this.#showButton();
    this.#refuse(`The page cannot draw: ${reason}. Try again later.`);
  }

  /** @param {string} sentence what is wrong; empty: nothing */
  #refuse(sentence) {
    write(this.error, sentence);
    this.caption.toggleAttribute("aria-invalid", false);
    if (!sentence) return;
    write(this.status, "");
    if (this.#worker) this.caption.setAttribute("aria-invalid", "true");
  }
}

/**
 * The model of a checkpoint, if it is one that a page can load.
 * @type {(checkpoint: import("#assets/live/data.js").Checkpoint, folder: URL) => Model | undefined}
 */
function modelOf({ step, drawing, drawing_sha256: sha256, drawing_bytes: size }, folder) {
  const address = fileOf(drawing, folder);
  const isUsable = address && typeof sha256 === "string" && SUM.test(sha256) && typeof size === "number" && size <= LARGEST_FILE;
  return isUsable ? { address, sha256, step, size } : undefined;
}
