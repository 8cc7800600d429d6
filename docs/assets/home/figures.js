// @ts-check
/*
 * The texts of the run on the home page. The build puts them into the page in the same way
 * (templates/pages/index/texts.mjs).
 */

import { grouped } from "../digits.js";

/** @typedef {import("../live/data.js").RunData} RunData */

/** @param {number} value NaN where the monitor gave none. */
const decimal = (value) => (Number.isNaN(value) ? "–" : value.toFixed(3));

/** @param {import("../live/data.js").Card} card */
export const kindOf = (card) => (card.finished ? "A recorded run" : "A run in progress");

/**
 * The key figures, by the names of the elements that show them.
 *
 * @param {RunData} data
 * @returns {Record<string, string>}
 */
export function figures({ card, progress, peers }) {
  const last = progress.length - 1;
  const { loss, samples, samples_per_second: pace, training, syncing } = progress.figures;
  /** @type {Record<string, string>} */
  const found = {
    volunteers: grouped(peers.length),
    total: grouped(card?.schedule.total_steps ?? 0),
  };
  if (last < 0) return found;
  found.step = grouped(progress.step[last]);
  found.loss = decimal(loss[last]);
  found.firstLoss = decimal(loss[0]);
  found.training = grouped(training[last] + syncing[last]);
  const seconds = (progress.time[last] - progress.time[0]) / 1000;
  const all = samples.reduce((sum, count) => sum + (count || 0), 0);
  found.sequences = grouped(all);
  // The first step opens the clock.
  found.pace = grouped(card?.finished && seconds > 0 ? (all - samples[0]) / seconds : pace[last], 1);
  found.paceOf = card?.finished ? "on average" : "in the last step";
  return found;
}

/**
 * How far a run is at one of its steps: in words, and as a share of its schedule.
 *
 * @param {RunData} data
 * @param {number} index of the step
 */
export function stepInWords({ progress, card }, index) {
  const total = card?.schedule.total_steps ?? 0;
  const step = progress.step[index];
  const loss = progress.figures.loss[index];
  return {
    step: `Step ${grouped(step)} of ${grouped(total)}`,
    loss: Number.isNaN(loss) ? "no loss yet" : `loss ${loss.toFixed(3)}`,
    share: Math.min(1, step / total),
  };
}

/** @param {string[]} prompts The place of the longest, whose picture is in the figure. */
export const longestOf = (prompts) => prompts.reduce((best, words, index) => (words.length > prompts[best].length ? index : best), 0);
