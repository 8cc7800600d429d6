// @ts-check
/* The state of a run, and the age of its data. */

import { whyStill } from "./still.js";
import { ageInWords, momentInWords } from "./words.js";

/** @typedef {"kept" | "missing" | "waiting" | "running" | "silent" | "finished"} Kind */
/** @typedef {{kind: Kind, sentence: string, detail: string, age: number}} Description age: seconds since the newest sign of life, NaN without one */

// A run is silent after several steps' time, and at least a minute, without news.
const SILENT_STEPS = 5;
const SILENT_SECONDS = 60;
const AHEAD_SECONDS = 30;

/** @param {number[]} values The median; NaN if empty. */
export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted.length ? sorted[sorted.length >> 1] : NaN;
}

/**
 * The state of a run in words.
 * @param {import("./data.js").RunData} data
 * @param {number} now milliseconds since 1970 on the server's clock
 * @returns {Description}
 */
export function describe(data, now) {
  const { card, progress } = data;
  const newest = progress.time[progress.length - 1] ?? NaN;
  const age = (now - newest) / 1000;
  if (!card) return { kind: "missing", sentence: "Not found", detail: "There is no data for this run.", age };
  if (card.finished) {
    const sentence = `Finished on ${momentInWords(Date.parse(card.finished))}`;
    return { kind: "finished", sentence, detail: "", age };
  }
  const notice = noticeOf(card);
  if (data.kept) {
    const sentence = `Offline: as of ${momentInWords(data.kept)}`;
    return { kind: "kept", sentence, detail: "This is what your browser kept from your last visit.", age };
  }
  if (Number.isNaN(age)) {
    const detail = `The run is open, but no one has completed a step yet.${notice}`;
    return { kind: "waiting", sentence: "Waiting for the first step", detail, age };
  }
  if (age > patience(progress)) {
    const detail = `The newest step is from ${momentInWords(newest)}. ${whoIsThere(data.peers, newest, now)}${notice}`;
    return { kind: "silent", sentence: `Silent for ${ageInWords(age)}`, detail, age };
  }
  const ahead = age < -AHEAD_SECONDS ? " The monitor's clock is ahead of the server's." : "";
  return { kind: "running", sentence: "Running", detail: `Newest step ${ageInWords(age)} ago.${ahead}${whyStill(data)}${notice}`, age };
}

/**
 * The organizers' sentence about the run, after a space; empty if there is none.
 * @type {(card: import("./data.js").Card) => string}
 */
function noticeOf({ notice }) {
  return typeof notice === "string" && notice ? ` ${notice[0].toUpperCase()}${notice.slice(1)}.` : "";
}

/**
 * @param {import("./data.js").Contributor[]} peers
 * @param {number} newest time of the newest step
 * @param {number} now
 */
function whoIsThere(peers, newest, now) {
  // All are written alike, in UTC, so the latest is the greatest.
  const latest = Date.parse(peers.reduce((last, { last_seen: seen }) => (seen > last ? seen : last), ""));
  return latest > newest + 1000 * SILENT_SECONDS
    ? `Volunteers are present (one was seen ${ageInWords((now - latest) / 1000)} ago) but have not completed a step.`
    : "The volunteers or their monitor may be offline; the page keeps checking.";
}

/**
 * Seconds without news after which a run counts as silent.
 * @type {(progress: import("./progress.js").Progress) => number}
 */
function patience(progress) {
  return longestGap(gapsOf(progress.time.slice(-20)));
}

/** Seconds between each time and the next. @type {(times: number[]) => number[]} */
export const gapsOf = (times) => times.slice(1).map((time, index) => (time - times[index]) / 1000);

/** Seconds between two steps above which a run stalls. @param {number[]} gaps seconds between steps */
export const longestGap = (gaps) => Math.max(SILENT_SECONDS, SILENT_STEPS * (median(gaps) || 0));
