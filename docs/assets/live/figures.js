// @ts-check
/*
 * A run in a few figures: the texts at the top of its page and in its last section. The build puts
 * them into the page in the same way (templates/pages/live/texts.mjs).
 */

import { timeLeft } from "./forecast.js";
import { cumulative, growing } from "./series.js";
import { ageInWords, bytes, count, decimal, duration, momentInWords } from "./words.js";

/** @typedef {import("./data.js").RunData} RunData */

export const RECENT = 20; // steps that count as recent

/** @param {number[]} values */
const sum = (values) => cumulative(values).at(-1) ?? 0;

/** The key figures, by the names of the elements that show them. @type {(data: RunData) => Record<string, string>} */
export function keyFigures({ progress, card }) {
  const last = progress.length - 1;
  const { figures, step } = progress;
  const at = (/** @type {import("./progress.js").Figure} */ name) => figures[name][last] ?? NaN;
  const moved = figures.bytes_sent.map((sent, index) => sent + figures.bytes_received[index]);
  const before = Math.max(0, last - RECENT);
  // Of a finished run, the average, as on the home page.
  const paced = card?.finished ? 0 : before;
  const seconds = (progress.time[last] - progress.time[paced]) / 1000 || NaN;
  return {
    step: last < 0 ? "0" : count(step[last]),
    total_steps: count(card?.schedule.total_steps ?? NaN),
    loss: decimal(at("loss"), 3),
    loss_before: last > 0 ? `${decimal(figures.loss[before], 3)} at step ${count(step[before])}` : "",
    working_label: card?.finished ? "Volunteers at the end" : "Volunteers now",
    working: last < 0 ? "0" : count(at("training") + at("syncing")),
    others: last < 0 ? "" : `${count(at("syncing"))} of them syncing, ${count(at("left"))} left earlier`,
    samples_per_second: decimal(sum(figures.samples.slice(paced + 1)) / seconds, 1),
    samples: count(sum(figures.samples)),
    traffic: bytes(sum(moved)),
    traffic_step: bytes(sum(moved.slice(-RECENT)) / Math.min(RECENT, moved.length)),
  };
}

/**
 * The part of the schedule that is done, from 0 to 1, and in words.
 * @type {(data: RunData) => {share: number, words: string}}
 */
export function done({ progress, card }) {
  const share = card ? Math.min(1, (progress.step.at(-1) ?? 0) / card.schedule.total_steps) : 0;
  return { share, words: `${(100 * share).toFixed(0)} % of the steps are done` };
}

/**
 * The description of a run, as labels and texts.
 * @param {import("./data.js").Card} card
 * @param {string} name of its folder
 * @returns {[string, string][]}
 */
export function about(card, name) {
  const { schedule } = card;
  return [
    ["Recipe", card.recipe],
    ["Parameters", count(card.parameters)],
    schedule.round_seconds
      ? ["Each step", `a round: ${schedule.round_seconds} s of local steps by each volunteer, then an exchange`]
      : ["Sequences per step", count(schedule.target_batch_size)],
    ["Schedule", `${count(schedule.total_steps)} steps, ${count(schedule.warmup_steps)} of warm-up`],
    ["Peak learning rate", String(schedule.learning_rate)],
    ["Started", momentInWords(Date.parse(card.start))],
    ...(card.finished ? [/** @type {[string, string]} */ (["Finished", momentInWords(Date.parse(card.finished))])] : []),
    ["Folder", name],
  ];
}

/** @param {import("./data.js").Card} card The heading over the command that takes part. */
export const joinHeading = (card) => (card.finished ? "Do the same yourself" : "Join this run");

/** @param {import("./data.js").Card} card Who counts the sequences of each volunteer. */
export const countedBy = (card) => (card.schedule.round_seconds ? "as the host's signed lists of updates say" : "as counted by the volunteers that received their gradients");

/**
 * The time that a run took, or the time that one in progress still needs; empty if neither is known.
 * @type {(data: RunData, kind?: import("./status.js").Kind) => string}
 */
export function lengthInWords({ card, progress }, kind) {
  if (card?.finished) return `It took ${duration((Date.parse(card.finished) - Date.parse(card.start)) / 1000)}.`;
  if (!card || kind !== "running") return "";
  const found = timeLeft(growing(progress.time), card.schedule.total_steps - progress.step[progress.length - 1]);
  if (!found) return "";
  const [near, low, high] = [found.seconds, found.low, found.high].map(ageInWords);
  return `About ${near} left: ${low} at the fastest pace so far, ${high} at the slowest.`;
}
