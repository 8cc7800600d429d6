// @ts-check
/* What happened in a run: who joined and left, checkpoints, returns to an earlier step, stalls. */

import { make } from "#assets/elements.js";
import { ranked } from "./people.js";
import { growing } from "#assets/live/series.js";
import { gapsOf, longestGap } from "#assets/live/status.js";
import { ageInWords, count, momentInWords } from "#assets/live/words.js";

/** @typedef {"joined" | "left" | "checkpoint" | "returned" | "stalled"} Kind */
/** @typedef {{kind: Kind, time: number, end: number, words: string}} Event end: of a stall; for all others, the time */

// More than these would hide the curves, so only the most active volunteers are marked.
const MOST_PEOPLE = 30;
const MOST_LISTED = 300;

/** Of each kind: the color's name, how the line is dashed, and the share of the chart's height. */
/** @type {Record<Kind, {colour: string, dash: string, height: number}>} */
const STYLES = {
  joined: { colour: "fits", dash: "dot", height: 1 },
  left: { colour: "muted", dash: "dash", height: 1 },
  checkpoint: { colour: "ink", dash: "solid", height: 0.05 },
  returned: { colour: "limit", dash: "solid", height: 1 },
  stalled: { colour: "doubt", dash: "solid", height: 1 },
};

/** All events, oldest first. @type {(data: import("#assets/live/data.js").RunData) => Event[]} */
export function eventsOf({ progress, peers, checkpoints }) {
  const at = (/** @type {Kind} */ kind, /** @type {number} */ time, /** @type {string} */ words, end = time) => ({ kind, time, end, words });
  const people = ranked(peers).slice(0, MOST_PEOPLE);
  const found = [
    ...people.map((person) => at("joined", Date.parse(person.first_seen), `${person.name || person.id} joined`)),
    ...people.filter(({ state }) => state === "left").map((person) => at("left", person.lastSeen, `${person.name || person.id} left`)),
    ...checkpoints.map(({ step, time }) => at("checkpoint", Date.parse(time), `Checkpoint at step ${count(step)}`)),
    ...progress.returns.map(({ from, to, time }) => at("returned", time, `Went back from step ${count(from)} to before step ${count(to)}`)),
    ...stalls(progress).map(([start, end]) => at("stalled", start, `No step for ${ageInWords((end - start) / 1000)}`, end)),
  ];
  return found.filter(({ time }) => Number.isFinite(time)).sort((a, b) => a.time - b.time);
}

/**
 * The gaps between steps after which the page would have called the run silent.
 * @type {(progress: import("#assets/live/progress.js").Progress) => number[][]}
 */
function stalls(progress) {
  const times = growing(progress.time);
  const pairs = times.slice(1).map((time, index) => [times[index], time]);
  const longest = 1000 * longestGap(gapsOf(times));
  return pairs.filter(([before, after]) => after - before > longest);
}

/**
 * The events as shapes of a chart.
 * @param {{kind: Kind, from: number, to: number}[]} events where they are on the axis
 * @param {(name: string) => string} colour
 */
export function shapesOf(events, colour) {
  return events.map(({ kind, from, to }) => {
    const style = STYLES[kind];
    const place = { layer: "below", yref: "paper", x0: from, x1: to, y0: 0, y1: style.height };
    return kind === "stalled"
      ? { ...place, type: "rect", line: { width: 0 }, fillcolor: colour(style.colour), opacity: 0.25 }
      : { ...place, type: "line", line: { color: colour(style.colour), width: 1.5, dash: style.dash } };
  });
}

/**
 * The list of events, the newest ones if there are many, and the key to what the charts mark.
 * @type {(root: HTMLElement, events: Event[]) => void}
 */
export function listEvents(root, events) {
  for (const kind of Object.keys(STYLES)) {
    root.querySelector(`.key--event-${kind}`)?.toggleAttribute("data-none", !events.some((event) => event.kind === kind));
  }
  root.querySelector("ol.events")?.replaceChildren(...events.slice(-MOST_LISTED).map(({ time, words }) =>
    make("li", {}, make("bdi", {}, words), " ", make("small", {}, momentInWords(time)))));
}
