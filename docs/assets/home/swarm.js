// @ts-check
/*
 * The swarm's figure: volunteers in a ring, in the middle what their model draws. Placed as
 * templates/pages/index/swarm_figure.py places them, which drew the figure that is in the page at first.
 */

import { fileOf } from "../live/valid.js";

/** @typedef {import("../live/data.js").Contributor} Contributor */
/** @typedef {import("../live/data.js").RunData} RunData */
/** @typedef {{peer: Contributor, x: number, y: number, radius: number}} Disc */

const CENTRE = { x: 280, y: 200 };
const RADII = { x: 226, y: 146 };
const SHOWN = 24;
const [LARGEST, SMALLEST] = [50, 7];
const NAMED = 12;
const NAME_LENGTH = 16;
const SVG = "http://www.w3.org/2000/svg";
const FLIGHT_MS = 1100;

/**
 * Places in the ring, in the order of coming, for those with most contributions.
 *
 * @param {Contributor[]} peers
 * @returns {Disc[]}
 */
export function discs(peers) {
  const byOrder = (/** @type {Contributor} */ a, /** @type {Contributor} */ b) =>
    compare(a.first_seen, b.first_seen) || compare(a.id, b.id);
  const drawn = [...peers].sort((a, b) => b.samples - a.samples).slice(0, SHOWN).sort(byOrder);
  const perimeter = 2 * Math.PI * Math.hypot(RADII.x, RADII.y) / Math.SQRT2;
  const largest = Math.min(LARGEST, 0.42 * perimeter / Math.max(1, drawn.length));
  const top = Math.max(1, ...drawn.map((peer) => peer.samples));
  return drawn.map((peer, index) => {
    const angle = 2 * Math.PI * (index + 0.5) / drawn.length - Math.PI / 2;
    return {
      peer,
      x: CENTRE.x + RADII.x * Math.cos(angle),
      y: CENTRE.y + RADII.y * Math.sin(angle),
      radius: Math.max(SMALLEST, largest * Math.sqrt(peer.samples / top)),
    };
  });
}

/** @param {string} a @param {string} b */
const compare = (a, b) => Number(a > b) - Number(a < b);

/** @param {Disc} a @param {Disc} b The path between them, bent towards the middle. */
function chord(a, b) {
  const x = 0.4 * (a.x + b.x) + 0.2 * CENTRE.x;
  const y = 0.4 * (a.y + b.y) + 0.2 * CENTRE.y;
  return `M${a.x.toFixed(1)} ${a.y.toFixed(1)}Q${x.toFixed(1)} ${y.toFixed(1)} ${b.x.toFixed(1)} ${b.y.toFixed(1)}`;
}

/** @param {string} name @param {Record<string, string>} attributes */
function make(name, attributes) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
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
    const find = (/** @type {string} */ selector) => /** @type {HTMLElement} */ (figure.querySelector(selector));
    this.drawing = find(".swarm__drawing");
    this.chords = find(".swarm__chords");
    this.peers = find(".swarm__peers");
    this.parts = find(".swarm__parts");
    this.done = find(".swarm__done");
    this.picture = /** @type {HTMLImageElement} */ (find("[data-swarm-picture]"));
    this.words = { step: find("[data-swarm-step]"), loss: find("[data-swarm-loss]"), prompt: find("[data-swarm-prompt]"), source: find("[data-swarm-source]") };
    this.cursor = find("[data-swarm-cursor]");
    this.line = find(".swarm__line");
    this.play = /** @type {HTMLButtonElement} */ (find("[data-swarm-play]"));
  }

  /**
   * Show a run that is on, as it is now.
   *
   * @param {RunData} data
   * @param {{moves: boolean}} options
   */
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
    const placed = discs(peers);
    const key = JSON.stringify(placed);
    if (key === this.#drawn) return;
    this.#drawn = key;
    this.peers.replaceChildren(...placed.map((disc) => this.#volunteer(disc, placed.length <= NAMED)));
    this.chords.replaceChildren(...placed.flatMap((a, index) => placed.slice(index + 1).map((b) =>
      make("path", { class: "swarm__chord", "data-ends": `${a.peer.id} ${b.peer.id}`, d: chord(a, b) }))));
    const each = placed.slice(0, NAMED).map(({ peer }) => `${peer.name}: ${peer.samples.toLocaleString("en")} sequences, ${peer.state}`);
    this.drawing.setAttribute("aria-label", `The swarm, ${peers.length} volunteers. ${each.join("; ")}.`);
  }

  /** @param {Disc} disc @param {boolean} named */
  #volunteer({ peer, x, y, radius }, named) {
    const group = make("g", { class: "swarm__peer", "data-id": peer.id, "data-state": peer.state });
    group.append(make("circle", { cx: x.toFixed(1), cy: y.toFixed(1), r: radius.toFixed(1) }));
    if (named) {
      const label = make("text", { x: x.toFixed(1), y: (y + radius + 16).toFixed(1) });
      label.textContent = peer.name.length <= NAME_LENGTH ? peer.name : `${peer.name.slice(0, NAME_LENGTH)}…`;
      group.append(label);
    }
    return group;
  }

  /** @param {(peer: {id: string, state: string}) => string} stateOf training, syncing, left, or away before a volunteer comes */
  setStates(stateOf) {
    const there = new Set();
    for (const group of /** @type {NodeListOf<SVGElement>} */ (this.peers.querySelectorAll("[data-id]"))) {
      const id = group.dataset.id ?? "";
      const state = stateOf({ id, state: group.dataset.state ?? "" });
      group.dataset.state = state;
      if (state === "training" || state === "syncing") there.add(id);
    }
    for (const line of /** @type {NodeListOf<SVGElement>} */ (this.chords.querySelectorAll("path"))) {
      const [a, b] = (line.dataset.ends ?? "").split(" ");
      line.toggleAttribute("data-off", !there.has(a) || !there.has(b));
    }
  }

  /** @param {RunData} data @param {number} index */
  showStep({ progress, card }, index) {
    if (index < 0 || !card) return;
    const total = card.schedule.total_steps;
    const step = progress.step[index];
    this.done.setAttribute("stroke-dasharray", `${Math.min(1, step / total).toFixed(4)} 1`);
    this.words.step.textContent = `Step ${step.toLocaleString("en")} of ${total.toLocaleString("en")}`;
    const loss = progress.figures.loss[index];
    this.words.loss.textContent = Number.isNaN(loss) ? "no loss yet" : `loss ${loss.toFixed(2)}`;
    this.cursor.style.setProperty("--at", String(index / Math.max(1, progress.length - 1)));
  }

  /** @param {RunData} data @param {number} time The newest picture not after it. */
  showPicture({ samples, folder }, time) {
    const prompts = samples.prompts;
    const longest = prompts.reduce((best, words, index) => (words.length > prompts[best].length ? index : best), 0);
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
    const lines = [.../** @type {NodeListOf<SVGPathElement>} */ (this.chords.querySelectorAll("path:not([data-off])"))];
    for (let sent = 0; sent < Math.min(most, lines.length); sent += 1) {
      this.#fly(lines[this.#turn++ % lines.length].getAttribute("d") ?? "", this.#turn % 2 === 0);
    }
  }

  /** @param {string} path @param {boolean} back */
  #fly(path, back) {
    const part = make("circle", { class: "swarm__part", r: "4" });
    part.style.setProperty("offset-path", `path("${path}")`);
    this.parts.append(part);
    const way = [{ offsetDistance: "0%" }, { offsetDistance: "100%" }];
    const flight = part.animate(back ? way.reverse() : way, { duration: FLIGHT_MS, easing: "ease-in-out" });
    flight.onfinish = () => part.remove();
  }
}
