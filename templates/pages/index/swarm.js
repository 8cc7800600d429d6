// @ts-check
/* The swarm's figure in the page: who is there, what is exchanged, what the model draws. */

import { find, findAll } from "#assets/elements.js";
import { fileOf } from "#assets/live/valid.js";
import { longestOf, stepInWords } from "./figures.js";
import { arc, ring } from "./ring.js";

/** @typedef {import("#assets/live/data.js").Contributor} Contributor */
/** @typedef {import("#assets/live/data.js").RunData} RunData */

const SVG = "http://www.w3.org/2000/svg";
const FLIGHT_MS = 1100;

/** @param {import("./ring.js").Mark | string} mark @returns {Node} */
function make(mark) {
  if (typeof mark === "string") return document.createTextNode(mark);
  const element = document.createElementNS(SVG, mark.name);
  for (const [key, value] of Object.entries(mark.attributes)) element.setAttribute(key, value);
  element.append(...mark.inside.map(make));
  return element;
}

/** The figure in the page. */
export class Swarm {
  #drawn = "";
  #step = NaN;
  #turn = 0;

  /** @param {HTMLElement} figure */
  constructor(figure) {
    this.figure = figure;
    this.drawing = find(figure, ".swarm__drawing");
    this.chords = find(figure, ".swarm__chords");
    this.peers = find(figure, ".swarm__peers");
    this.parts = find(figure, ".swarm__parts");
    this.done = find(figure, ".swarm__done");
    this.picture = /** @type {HTMLImageElement} */ (find(figure, "[data-swarm-picture]"));
    this.words = { step: find(figure, "[data-swarm-step]"), loss: find(figure, "[data-swarm-loss]"), prompt: find(figure, "[data-swarm-prompt]"), source: find(figure, "[data-swarm-source]") };
    this.cursor = find(figure, "[data-swarm-cursor]");
    this.line = find(figure, ".swarm__line");
    this.play = /** @type {HTMLButtonElement} */ (find(figure, "[data-swarm-play]"));
  }

  /** Show a run that is on, as it is now. @type {(data: RunData, options: {moves: boolean}) => void} */
  show(data, { moves }) {
    this.line.hidden = true;
    this.words.source.textContent = "";
    this.place(data.peers);
    this.setStates((peer) => peer.state);
    this.showStep(data, data.progress.length - 1);
    this.showPicture(data, Infinity);
    const step = data.progress.step.at(-1) ?? NaN;
    if (moves && step > this.#step) this.exchange(60);
    this.#step = step;
  }

  /** @param {Contributor[]} peers Draw them, unless they are what is drawn. */
  place(peers) {
    const drawn = ring(peers);
    const key = JSON.stringify(drawn);
    if (key === this.#drawn) return;
    this.#drawn = key;
    this.peers.replaceChildren(...drawn.volunteers.map(make));
    this.chords.replaceChildren(...drawn.chords.map(make));
    this.drawing.setAttribute("aria-label", drawn.words);
  }

  /** @param {(peer: {id: string, state: string}) => string} stateOf training, syncing, left, or away before a volunteer comes */
  setStates(stateOf) {
    const there = new Set();
    for (const group of findAll(this.peers, "[data-id]")) {
      const id = group.dataset.id ?? "";
      const state = stateOf({ id, state: group.dataset.state ?? "" });
      group.dataset.state = state;
      if (state === "training" || state === "syncing") there.add(id);
    }
    for (const line of findAll(this.chords, "path")) {
      const [a, b] = (line.dataset.ends ?? "").split(" ");
      line.toggleAttribute("data-off", !there.has(a) || !there.has(b));
    }
  }

  /** @param {RunData} data @param {number} index */
  showStep(data, index) {
    if (index < 0 || !data.card) return;
    const { step, loss, share } = stepInWords(data, index);
    this.done.setAttribute("stroke-dasharray", arc(share));
    this.words.step.textContent = step;
    this.words.loss.textContent = loss;
    this.cursor.style.setProperty("--at", String(index / Math.max(1, data.progress.length - 1)));
  }

  /** @param {RunData} data @param {number} time The newest picture not after it. */
  showPicture({ samples, folder }, time) {
    const prompts = samples.prompts;
    const longest = longestOf(prompts);
    const checkpoint = samples.checkpoints.findLast((entry) => Date.parse(entry.time) <= time);
    const address = fileOf(checkpoint?.images[longest]?.[0], folder);
    this.picture.style.visibility = address ? "" : "hidden";
    if (!address) return;
    if (this.picture.src !== address) this.picture.src = address;
    this.picture.alt = `Drawn for: ${prompts[longest]}`;
    this.words.prompt.textContent = prompts[longest];
  }

  /** @param {number} most Let parts of gradients fly along the lines that are there, in turn. */
  exchange(most) {
    const lines = findAll(this.chords, "path:not([data-off])");
    for (let sent = 0; sent < Math.min(most, lines.length); sent += 1) {
      this.#fly(lines[this.#turn++ % lines.length].getAttribute("d") ?? "", this.#turn % 2 === 0);
    }
  }

  /** @param {string} path @param {boolean} back */
  #fly(path, back) {
    const part = /** @type {SVGElement} */ (make({ name: "circle", attributes: { class: "swarm__part", r: "4" }, inside: [] }));
    part.style.setProperty("offset-path", `path("${path}")`);
    this.parts.append(part);
    const way = [{ offsetDistance: "0%" }, { offsetDistance: "100%" }];
    const flight = part.animate(back ? way.reverse() : way, { duration: FLIGHT_MS, easing: "ease-in-out" });
    flight.onfinish = () => part.remove();
  }
}
