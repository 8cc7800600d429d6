// @ts-check
/*
 * The swarm as a figure: volunteers in a ring around what their model draws. A disc's area shows a
 * volunteer's contribution; a line joins each two that exchange parts of gradients. The build draws
 * the figure that is in the page with it, too (templates/pages/index/texts.mjs).
 */

import { grouped } from "#assets/digits.js";

/** @typedef {import("#assets/live/data.js").Contributor} Contributor */
/** @typedef {{peer: Contributor, x: number, y: number, radius: number}} Disc */
/** @typedef {{name: string, attributes: Record<string, string>, inside: (Mark | string)[]}} Mark An element to be. */

/** The visible part of the plane; nothing is ever drawn above its top. */
const FRAME = { top: 16, width: 560, height: 382 };
const CENTRE = { x: 280, y: 200 };
const RADII = { x: 226, y: 146 };
const RING = 98; // radius of the picture's place
/** More discs would blur together; the volunteers with the most contributions are drawn. */
const SHOWN = 24;
const LARGEST = 50;
const SMALLEST = 7;
const NAMED = 12;
const NAME_LENGTH = 16;

/**
 * Places in the ring, in order of arrival, for those with the most contributions.
 * @type {(peers: Contributor[]) => Disc[]}
 */
export function discs(peers) {
  const byOrder = (/** @type {Contributor} */ a, /** @type {Contributor} */ b) =>
    compare(a.first_seen, b.first_seen) || compare(a.id, b.id);
  const drawn = byContribution(peers).slice(0, SHOWN).sort(byOrder);
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

/** @param {Contributor[]} peers */
const byContribution = (peers) => [...peers].sort((a, b) => b.samples - a.samples);

/** @param {string} a @param {string} b */
const compare = (a, b) => Number(a > b) - Number(a < b);

/**
 * What changes with the volunteers: the lines between them, their discs, and the figure in words.
 * @type {(peers: Contributor[]) => {chords: Mark[], volunteers: Mark[], words: string}}
 */
export function ring(peers) {
  const placed = discs(peers);
  return {
    chords: placed.flatMap((a, index) => placed.slice(index + 1).map((b) => chord(a, b))),
    volunteers: placed.map((disc) => volunteer(disc, placed.length <= NAMED)),
    words: inWords(peers),
  };
}

/**
 * The whole figure, its middle empty for a picture.
 * @param {Contributor[]} peers
 * @param {number} share of the run that is done
 */
export function drawing(peers, share) {
  const { chords, volunteers, words } = ring(peers);
  const circle = { cx: String(CENTRE.x), cy: String(CENTRE.y), r: String(RING) };
  const turned = `rotate(-90 ${CENTRE.x} ${CENTRE.y})`;
  const viewBox = `0 ${FRAME.top} ${FRAME.width} ${FRAME.height}`;
  return mark("svg", { class: "swarm__drawing", viewBox, role: "img", "aria-label": words },
    mark("g", { class: "swarm__chords" }, ...chords),
    mark("g", { class: "swarm__parts" }),
    mark("circle", { class: "swarm__disc", ...circle }),
    mark("circle", { class: "swarm__done", ...circle, pathLength: "1", "stroke-dasharray": arc(share), transform: turned }),
    mark("g", { class: "swarm__peers" }, ...volunteers),
  );
}

/** @param {number} share The dash that draws this part of the ring that frames the picture. */
export const arc = (share) => `${share.toFixed(4)} 1`;

/** @type {(name: string, attributes: Record<string, string>, ...inside: (Mark | string)[]) => Mark} */
const mark = (name, attributes, ...inside) => ({ name, attributes, inside });

/** @param {Disc} a @param {Disc} b The path between them, bent towards the middle. */
function chord(a, b) {
  const x = 0.4 * (a.x + b.x) + 0.2 * CENTRE.x;
  const y = 0.4 * (a.y + b.y) + 0.2 * CENTRE.y;
  const path = `M${a.x.toFixed(1)} ${a.y.toFixed(1)}Q${x.toFixed(1)} ${y.toFixed(1)} ${b.x.toFixed(1)} ${b.y.toFixed(1)}`;
  const isOff = [a, b].some(({ peer }) => peer.state === "left");
  return mark("path", { class: "swarm__chord", "data-ends": `${a.peer.id} ${b.peer.id}`, ...(isOff ? { "data-off": "" } : {}), d: path });
}

/** @param {Disc} disc @param {boolean} named */
function volunteer({ peer, x, y, radius }, named) {
  const [cx, cy, r] = [x, y, radius].map((number) => number.toFixed(1));
  const name = peer.name.length <= NAME_LENGTH ? peer.name : `${peer.name.slice(0, NAME_LENGTH)}…`;
  const label = named ? [mark("text", { x: cx, y: (y + radius + 16).toFixed(1) }, name)] : [];
  return mark("g", { class: "swarm__peer", "data-id": peer.id, "data-state": peer.state }, mark("circle", { cx, cy, r }), ...label);
}

/** @param {Contributor[]} peers The figure in words. */
function inWords(peers) {
  const most = byContribution(peers).slice(0, NAMED);
  const each = most.map(({ name, samples, state }) => `${name}: ${grouped(samples)} sequences, ${state}`);
  return `The swarm, ${peers.length} ${peers.length === 1 ? "volunteer" : "volunteers"}. ${each.join("; ")}.`;
}
