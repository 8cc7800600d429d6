// @ts-check
/* The pause between two looks at a run's files: two looks a step, fewer while nothing happens. */

import { describe, gapsOf, median } from "./status.js";

const RETRY_SECONDS = { first: 5, longest: 120 };
const POLL_SECONDS = { shortest: 1, longest: 60, unknown: 5 };

/**
 * Seconds until the next look.
 * @param {import("./data.js").RunData} data
 * @param {number} now the server's time, milliseconds since 1970
 * @param {number} failures looks in a row that have failed
 */
export function pauseSeconds(data, now, failures) {
  const { first, longest } = RETRY_SECONDS;
  if (failures) return Math.min(longest, first * 2 ** (failures - 1));
  const state = describe(data, now);
  const step = median(gapsOf(data.progress.time.slice(-20)));
  const pace = Number.isNaN(step) ? POLL_SECONDS.unknown : step / 2;
  const wait = state.kind === "silent" ? Math.max(pace, state.age / 20) : pace;
  return Math.min(POLL_SECONDS.longest, Math.max(POLL_SECONDS.shortest, wait));
}
