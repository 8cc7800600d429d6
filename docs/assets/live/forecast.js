// @ts-check
/* The time that a run still needs, from the pace that it has kept. */

const PARTS = 10; // of equally many steps each; the last one's pace is the present one
const FEWEST = 20; // steps below which nothing is said

/**
 * Seconds to the end of the schedule at the pace of the newest tenth of the run, and at the fastest
 * and the slowest pace of any tenth. A run's pace changes as volunteers come and go, far more than
 * it scatters from step to step, so the interval is taken from what has happened.
 * @param {number[]} times of the steps, in milliseconds
 * @param {number} left steps that remain
 * @returns {{seconds: number, low: number, high: number} | undefined} undefined if too little is known
 */
export function timeLeft(times, left) {
  if (times.length <= FEWEST || left <= 0) return undefined;
  const size = Math.floor((times.length - 1) / PARTS);
  const ends = times.slice(-(size * PARTS + 1)).filter((_, index) => index % size === 0);
  const paces = ends.slice(1).map((end, index) => (end - ends[index]) / 1000 / size);
  return {
    seconds: left * paces[PARTS - 1],
    low: left * Math.min(...paces),
    high: left * Math.max(...paces),
  };
}
