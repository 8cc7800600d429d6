// @ts-check
/*
 * The texts of the run on the home page. The build puts them into the page in the same way
 * (templates/pages/index/texts.mjs).
 */

import { grouped } from "#assets/digits.js";
import { keyFigures } from "#assets/live/figures.js";
import { decimal } from "#assets/live/words.js";

/** @typedef {import("#assets/live/data.js").RunData} RunData */

/** @param {import("#assets/live/data.js").Card} card */
export const kindOf = (card) => (card.finished ? "A recorded run" : "A run in progress");

/**
 * The key figures, as the live page has them, by the names of the elements that show them.
 * @type {(data: RunData) => Record<string, string>}
 */
export function figures(data) {
  const { card, progress, peers } = data;
  const shared = keyFigures(data);
  return {
    volunteers: grouped(peers.length),
    total: shared.total_steps,
    step: shared.step,
    loss: shared.loss,
    firstLoss: decimal(progress.figures.loss[0] ?? NaN, 3),
    training: shared.working,
    sequences: shared.samples,
    pace: shared.samples_per_second,
    paceOf: card?.finished ? "on average" : "recently",
  };
}

/**
 * How far a run is at one of its steps: in words, and as a share of its schedule.
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
