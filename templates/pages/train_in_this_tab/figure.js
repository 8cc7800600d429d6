// @ts-check
/* The figure of 'Train in this tab': buttons, curve, pictures and words around a swarm. On Home it has no rules and no rows. */

import { make, write } from "#assets/elements.js";
import { bytes, count, decimal } from "#assets/live/words.js";
import { Curve } from "./curve.js";
import { Guess } from "./guess.js";
import { Lesson } from "#assets/tab/lesson.js";
import { nameOf, Rows } from "./rows.js";
import { Swarm } from "./swarm.js";

/** @typedef {import("./swarm.js").Step} Step */

const LESSON = new URL("./lesson.safetensors", import.meta.url); // bundled, this is in assets/
const MOST = 6; // volunteers
const ON_PHONE = { volunteers: 2, target: 16 };
const VOLUNTEERS = 3;
const SAID_MS = 10_000; // between sentences for screen readers
const SHOWN_MS = { moving: 250, calm: 2000 }; // between figures
const RECENT = 20; // steps whose mean is shown
const WATCHED = 30; // exchanges after a switch: a few seconds

export class Figure {
  /** @type {Step[]} */
  #recent = [];
  #said = 0;
  #shown = 0;
  #isHeld = false; // by the visitor's own hand
  guess = new Guess(WATCHED);

  /** @param {HTMLElement} root */
  static async begin(root) {
    const response = await fetch(LESSON);
    if (!response.ok) throw new Error(`the server has no such file (${response.status})`);
    const figure = new Figure(root, await response.arrayBuffer());
    figure.start();
    return figure;
  }

  /**
   * @param {HTMLElement} root
   * @param {ArrayBuffer} file
   */
  constructor(root, file) {
    this.root = root;
    this.file = file;
    this.about = new Lesson(file).about;
    this.button = /** @type {HTMLButtonElement} */ (this.#find("[data-start]"));
    this.adder = /** @type {HTMLButtonElement | null} */ (root.querySelector("[data-add]"));
    this.painter = new Worker(new URL("./tab-painter.js", import.meta.url), { type: "module" });
    this.painter.addEventListener("message", ({ data }) => this.#paint(data));
    this.painter.postMessage({ kind: "begin", file });
    this.button.addEventListener("click", () => this.#press());
    this.form = root.querySelector("form");
    this.form?.addEventListener("change", ({ target }) => {
      const choice = /** @type {HTMLInputElement} */ (target);
      if (choice.name === "guess") return;
      this.#rule();
      this.guess.begin(choice.dataset.words ?? `${choice.closest("fieldset")?.querySelector("legend")?.textContent} ${choice.parentElement?.textContent?.trim()}`);
    });
    this.adder?.addEventListener("click", () => {
      this.swarm?.add();
      this.guess.begin("You added a volunteer");
    });
    this.left = new AbortController();
    document.addEventListener("visibilitychange", () => this.#rest(), { signal: this.left.signal });
  }

  /** Train from new random weights. */
  start() {
    const isPhone = matchMedia("(max-width: 44.99em) and (pointer: coarse)").matches;
    const steps = this.about.schedule.total_steps;
    const settings = { target: isPhone ? ON_PHONE.target : this.about.target_batch, first: isPhone ? ON_PHONE.volunteers : VOLUNTEERS, steps, round: this.about.round, seed: Date.now() % 2 ** 32 };
    this.swarm?.stop();
    this.#recent = [];
    this.#isHeld = false;
    this.curve = new Curve(/** @type {any} */ (this.#find("[data-curve]")), steps);
    const body = this.root.querySelector("tbody");
    this.rows = body && new Rows(body, {
      tell: (number, order) => this.swarm?.tell(number, order),
      changed: (words) => this.guess.begin(words),
      unplug: (number) => {
        this.swarm?.remove(number);
        this.guess.begin(`You unplugged ${nameOf(number)}`);
      },
    });
    for (const place of this.root.querySelectorAll("[data-picture]")) place.replaceChildren();
    for (const place of this.root.querySelectorAll("[data-now]")) write(place, "–");
    this.#say("The volunteers start with random weights.");
    this.swarm = new Swarm(this.file, settings, {
      stepped: (step) => this.#take(step),
      changed: () => queueMicrotask(() => this.#showSwarm()),
      weighed: (weights) => this.painter.postMessage({ kind: "draw", weights, seed: 1 }, [weights.buffer]),
    });
    this.guess = new Guess(WATCHED);
    this.#rule();
    this.#rest();
  }

  /** How the volunteers average from the next step on. */
  #rule() {
    if (!this.form) return;
    const given = new FormData(this.form);
    const [bits, aggregation, pacing] = ["bits", "aggregation", "pacing"].map((name) => /** @type {any} */ (given.get(name)));
    if (!this.swarm) return;
    Object.assign(this.swarm, { pacing, rules: { bits: Number(bits) || bits, aggregation } });
    /** @type {HTMLFieldSetElement} */ (this.#find("[data-averaging]")).disabled = bits === "sparse";
  }

  /** @param {string} change Make a change as if by hand, "name=value" of a control, and show the figure. */
  attempt(change) {
    if (this.swarm?.phase === "finished") this.start();
    const [name, value] = change.split("=");
    const control = /** @type {NodeListOf<HTMLInputElement | HTMLSelectElement>} */ (this.root.querySelectorAll(`[name="${name}"]`));
    const found = [...control].find((one) => one instanceof HTMLSelectElement || one.value === value);
    this.root.scrollIntoView();
    if (!found) return this.#say("That volunteer is gone. Another one can do it.");
    if (found instanceof HTMLInputElement) found.checked = true;
    else found.value = value;
    found.focus({ preventScroll: true });
    found.dispatchEvent(new Event("change", { bubbles: true }));
  }

  #press() {
    if (!this.swarm || this.swarm.phase === "finished") return this.start();
    this.#isHeld = !this.#isHeld;
    this.#rest();
  }

  /** Train only while the page is seen and the visitor wants it. */
  #rest() {
    if (!this.root.isConnected) return this.#leave();
    const isPaused = this.#isHeld || document.hidden;
    if (this.swarm && this.swarm.isPaused !== isPaused) this.swarm.pause(isPaused);
    this.#showSwarm();
  }

  /** The page was left by instant navigation. */
  #leave() {
    this.left.abort();
    this.swarm?.stop();
    this.painter.terminate();
  }

  #showSwarm() {
    if (!this.swarm) return;
    const volunteers = [...this.swarm.volunteers.values()];
    const isOver = this.swarm.phase === "finished";
    if (!isOver) this.rows?.show(volunteers);
    write(this.button, isOver ? "Start again" : this.#isHeld ? "Continue" : "Pause");
    if (this.adder) this.adder.disabled = isOver || volunteers.length >= MOST;
    if (isOver && !volunteers.length && this.swarm.step < this.about.schedule.total_steps) this.#say("No volunteer is left, so training has stopped.");
    else if (this.#isHeld) this.#say("Paused.");
  }

  /** @param {Step} step */
  #take(step) {
    if (!this.root.isConnected) return this.#leave();
    this.root.dataset.step = String(step.step);
    const counted = Array.from({ length: step.steps }, () => step);
    for (const { loss } of counted) this.curve?.add(loss);
    this.#recent = [...this.#recent, ...counted].slice(-RECENT);
    const isLast = step.step === this.about.schedule.total_steps;
    const now = performance.now();
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (isLast || now - this.#shown >= (calm ? SHOWN_MS.calm : SHOWN_MS.moving)) this.#show(step, now);
    const answer = this.guess.take(step.loss, String((this.form && new FormData(this.form).get("guess")) ?? ""));
    if (isLast) queueMicrotask(() => this.#finish());
    else if (answer) this.#say(answer);
    else if (now - this.#said >= SAID_MS) this.#say(`Step ${count(step.step)}: the loss is ${decimal(this.#loss, 2)}.`);
  }

  /** Mean of the newest steps. */
  get #loss() {
    return this.#recent.reduce((sum, { loss }) => sum + loss, 0) / this.#recent.length;
  }

  /** @param {Step} step @param {number} now */
  #show(step, now) {
    this.#shown = now;
    this.curve?.draw();
    this.rows?.fill(step);
    const recent = this.#recent;
    const rate = recent.reduce((sum, { sequences }) => sum + sequences, 0) / recent.reduce((sum, { seconds }) => sum + seconds, 0);
    const figures = { step: count(step.step), loss: decimal(this.#loss, 2), rate: decimal(rate, 0), sent: bytes(step.volunteers.reduce((sum, one) => sum + one.bytes, 0)) };
    for (const [name, words] of Object.entries(figures)) write(this.root.querySelector(`[data-now=${name}]`), words);
  }

  #finish() {
    this.#showSwarm();
    this.#say(`Finished: the loss is ${decimal(this.#loss, 2)} after ${count(this.about.schedule.total_steps)} steps.`);
  }

  /** @param {import("#assets/tab-painter.js").Picture} picture */
  #paint({ caption, side, pixels }) {
    const place = this.root.querySelectorAll("[data-picture]")[caption];
    const canvas = make("canvas", { width: String(side), height: String(side), role: "img", "aria-label": `Drawn after ${this.root.dataset.step} steps: ${this.about.captions[caption]}` });
    canvas.getContext("2d")?.putImageData(new ImageData(pixels, side, side), 0, 0);
    place.replaceChildren(canvas);
    this.root.dataset.drawn = String(Number(this.root.dataset.drawn ?? 0) + 1);
  }

  /** @param {string} sentence which screen readers read out, too */
  #say(sentence) {
    this.#said = performance.now();
    write(this.#find("[data-said]"), sentence);
  }

  /** @param {string} selector */
  #find(selector) {
    return /** @type {HTMLElement} */ (this.root.querySelector(selector));
  }
}
