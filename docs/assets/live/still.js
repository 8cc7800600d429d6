// @ts-check
/* Why the loss of a run in progress stands still, as far as the run's data say. */

const MINUTES = 10;
const LEAST_STEPS = 10; // in each half of that time; fewer say nothing
const FALLS = 0.995; // a later half below this part of the earlier one
const NEARLY_OVER = 0.95; // of the schedule, whose learning rate falls to zero

/** @param {number[]} values */
const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

/**
 * The likely cause and what to do, after a space; empty if the loss falls or too little is known.
 * @type {(data: Pick<import("./data.js").RunData, "progress" | "card">) => string}
 */
export function whyStill({ progress, card }) {
  const { time, step, figures } = progress;
  const last = time.length - 1;
  if (last < 0 || !card) return "";
  const start = time[last] - MINUTES * 60_000;
  const lossOf = (/** @type {(time: number) => boolean} */ isIn) => figures.loss.filter((loss, index) => Number.isFinite(loss) && isIn(time[index]));
  const middle = (start + time[last]) / 2;
  const before = lossOf((at) => at > start && at <= middle);
  const after = lossOf((at) => at > middle);
  if (Math.min(before.length, after.length) < LEAST_STEPS || mean(after) < FALLS * mean(before)) return "";
  const rejected = figures.rejected.filter((count, index) => count > 0 && time[index] > start).length;
  return ` The loss has not fallen for ${MINUTES} minutes. ${cause(step[last], rejected, card.schedule)}`;
}

/**
 * @param {number} step the newest
 * @param {number} rejected steps in which gradients were rejected
 * @param {import("./data.js").Card["schedule"]} schedule
 */
function cause(step, rejected, schedule) {
  if (rejected > 0) return `In ${rejected} of its steps gradients were rejected: organizers, look for a volunteer to ban, or return to a checkpoint.`;
  if (step <= schedule.warmup_steps) return "The learning rate is still warming up: wait.";
  if (step > NEARLY_OVER * schedule.total_steps) return "The learning rate is almost zero at the end of the schedule: the run is nearly done.";
  return "Nothing in its data says why. It may fall again; if it does not, rehearse half the learning rate.";
}
