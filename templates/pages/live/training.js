// @ts-check
/*
 * The box in which visitors train for a run whose model is small enough, in this tab: the work is
 * done by run-volunteer.js, which is loaded when they press the button.
 */

import { write } from "#assets/elements.js";
import { bytes, count, decimal } from "#assets/live/words.js";

const GOODBYE_MS = 2000; // for the run to hear that the tab leaves
const STAGES = {
  joining: "Downloading the weights …",
  learning: "Learning from the run's pictures.",
  waiting: "Waiting until the others have handed in.",
  outage: "The run's host does not answer. Trying again …",
};

export class TrainingBox {
  /** @type {Worker | undefined} */
  #worker;
  #run = "";
  #address = "";

  /** @param {HTMLElement} root */
  constructor(root) {
    const find = (/** @type {string} */ name) => /** @type {HTMLElement} */ (root.querySelector(`[data-live="${name}"]`));
    this.section = find("train");
    this.form = /** @type {HTMLFormElement} */ (find("train-form"));
    this.button = find("train-button");
    this.status = find("train-status");
    this.credit = find("train-credit");
    this.elsewhere = /** @type {HTMLAnchorElement} */ (find("train-elsewhere"));
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (this.#worker) this.#leave();
      else this.#begin();
    });
  }

  /** @param {import("#assets/live/data.js").RunData} data */
  show({ name, card }) {
    if (name !== this.#run) this.stop();
    this.#run = name;
    const tab = card?.finished ? null : card?.tab;
    this.section.hidden = !tab;
    if (!tab) return this.stop();
    this.#address = tab.address.replace(/\/+$/, "");
    const isTooLarge = tab.memory_bytes > tab.most_bytes;
    const isHere = new URL(this.#address).origin === location.origin;
    this.form.hidden = isTooLarge || !isHere;
    this.elsewhere.parentElement?.toggleAttribute("hidden", isTooLarge || isHere);
    this.elsewhere.href = `${this.#address}/live/?${new URLSearchParams({ run: name })}#live-train`;
    if (isTooLarge) write(this.status, `Training this model takes ${bytes(tab.memory_bytes)}, as the calculator counts, and a tab should take at most ${bytes(tab.most_bytes)}. Join with the command below.`);
    else if (isHere && !this.#worker && sessionStorage.getItem(this.#key)) this.#begin(); // after a reload
  }

  stop() {
    this.#worker?.terminate();
    this.#worker = undefined;
    write(this.button, "Train in this tab");
  }

  /** Where this tab remembers that it takes part, and under which name. */
  get #key() {
    return `training ${this.#run}`;
  }

  #begin() {
    const field = /** @type {HTMLInputElement} */ (this.form.elements.namedItem("name"));
    field.value = sessionStorage.getItem(this.#key) ?? field.value.trim();
    sessionStorage.setItem(this.#key, field.value);
    const worker = new Worker(new URL("./run-volunteer.js", import.meta.url), { type: "module" });
    this.#worker = worker;
    worker.addEventListener("message", ({ data }) => this.#worker === worker && this.#hear(data));
    for (const kind of ["error", "messageerror"]) {
      worker.addEventListener(kind, () => this.#worker === worker && this.#end("The script that trains did not load. Try again later."));
    }
    worker.postMessage({ kind: "begin", address: this.#address, run: this.#run, name: field.value });
    write(this.button, "Stop");
    write(this.status, STAGES.joining);
  }

  #leave() {
    const worker = this.#worker;
    this.#worker = undefined;
    worker?.postMessage({ kind: "stop" });
    setTimeout(() => worker?.terminate(), GOODBYE_MS);
    this.#end("Stopped. Press the button again to go on with what this tab has learned.");
  }

  /** @param {string} sentence */
  #end(sentence) {
    sessionStorage.removeItem(this.#key);
    this.stop();
    write(this.status, sentence);
  }

  /** @param {import("#assets/run-volunteer.js").News} news */
  #hear(news) {
    switch (news.kind) {
      case "stage": return write(this.status, STAGES[news.stage]);
      case "refused": return write(this.status, `The round did not take this update: ${news.message}.`);
      case "failed": return this.#end(`This tab cannot train: ${news.message}.`);
      case "over": return this.#end("The run is over. Thank you.");
      case "round": {
        const { round, samples, rounds, leftOut, loss } = news;
        this.section.dataset.rounds = String(rounds);
        write(this.credit, `Round ${count(round)}. The run has counted ${count(rounds)} of this tab's updates, from ${count(samples)} sequences${leftOut ? `, and rejected ${count(leftOut)}, which did not help` : ""}.${loss === null ? "" : ` Its newest loss is ${decimal(loss, 2)}.`}`);
      }
    }
  }
}
