// @ts-check
/*
 * Computes what calculator/swarm/race.py does, until Python is there. A test compares every number
 * and text of the two.
 */

import { fixed, general, whole } from "./numbers.js";

// The settings of calculator/swarm/pace.py.
const TARGET = 240;
const MICRO = 2;
const EXCHANGE = 6;
const WINDOW = 180;

/** @typedef {{seconds: number[], sequences: number[]}} Step When each volunteer is done, and what it did. */
/** @typedef {{activity: string, start: number, end: number, sequences: number}} Segment */

/**
 * @param {{speeds: string[]}} state
 * @returns {object | undefined} Nothing where Python refuses the state.
 */
export function pace(state) {
  const speeds = state.speeds.map(Number);
  if (!speeds.some((speed) => speed > 0)) return undefined;
  const timelines = { "equal-shares": simulate(equalShares(speeds)), "own-pace": simulate(ownPace(speeds)) };
  return {
    speeds,
    timelines: Object.fromEntries(Object.entries(timelines).map(([name, timeline]) => [name, drawn(timeline)])),
    figures: figures(speeds, timelines),
  };
}

/** @param {number[]} speeds @returns {Step} */
function equalShares(speeds) {
  const share = MICRO * Math.ceil(TARGET / (speeds.length * MICRO));
  return { seconds: speeds.map((speed) => share / speed), sequences: speeds.map((speed) => (speed ? share : 0)) };
}

/** @param {number[]} speeds @returns {Step} */
function ownPace(speeds) {
  const counts = speeds.map(() => 0);
  const done = speeds.map(() => 0);
  let computed = 0;
  let full = 0;
  let running = speeds.flatMap((speed, volunteer) => (speed ? [{ end: MICRO / speed, volunteer }] : []));
  while (running.length) {
    running.sort((one, other) => one.end - other.end || one.volunteer - other.volunteer);
    const { end, volunteer } = /** @type {typeof running[number]} */ (running.shift());
    counts[volunteer] += 1;
    done[volunteer] = end;
    computed += MICRO;
    if (computed < TARGET) {
      running.push({ end: ((counts[volunteer] + 1) * MICRO) / speeds[volunteer], volunteer });
    } else if (!full) {
      full = end;
      running = running.filter((one) => done[one.volunteer] < end * (1 - 1e-9));
    }
  }
  return { seconds: done, sequences: counts.map((count) => MICRO * count) };
}

/** @param {Step} step */
function simulate({ seconds, sequences }) {
  /** @type {Segment[][]} */
  const lanes = seconds.map(() => []);
  const steps = [];
  for (let start = 0; start < WINDOW;) {
    const ready = start + Math.max(...seconds);
    const end = ready + EXCHANGE;
    for (const [volunteer, lane] of lanes.entries()) {
      const finished = start + (sequences[volunteer] ? seconds[volunteer] : 0);
      const parts = [
        { activity: "compute", start, end: finished, sequences: sequences[volunteer] },
        { activity: "wait", start: finished, end: ready, sequences: 0 },
        { activity: "exchange", start: ready, end, sequences: 0 },
      ];
      for (const part of parts) {
        const cut = { ...part, end: Math.min(part.end, WINDOW) };
        if (cut.start < cut.end) lane.push(cut);
      }
    }
    if (end <= WINDOW) steps.push(end);
    start = end;
  }
  return { lanes, steps, sequences: steps.length * sequences.reduce((sum, count) => sum + count, 0) };
}

/** @param {ReturnType<typeof simulate>} timeline In percent of the window. */
function drawn({ lanes, steps }) {
  const toPercent = 100 / WINDOW;
  const segment = (/** @type {Segment} */ { activity, start, end }) => ({ activity, left: start * toPercent, width: (end - start) * toPercent });
  return { lanes: lanes.map((lane) => lane.map(segment)), steps: steps.map((end) => end * toPercent) };
}

/**
 * @param {number[]} speeds
 * @param {Record<string, ReturnType<typeof simulate>>} timelines
 */
function figures(speeds, timelines) {
  const [old, own] = Object.values(timelines);
  /** @type {Record<string, string>} */
  const texts = {
    summary: `In ${general(WINDOW / 60)} minutes, equal shares complete ${stepsOf(old)} with ${whole(old.sequences)} sequences; at their own pace, volunteers complete ${stepsOf(own)} with ${whole(own.sequences)}.`,
  };
  for (const [volunteer, speed] of speeds.entries()) texts[`speed.${volunteer}`] = speed ? `${general(speed)} per second` : "left";
  for (const [name, timeline] of Object.entries(timelines)) {
    texts[`${name}.steps`] = stepsOf(timeline);
    texts[`${name}.sequences`] = whole(timeline.sequences);
    for (const [volunteer, lane] of timeline.lanes.entries()) {
      const waits = lane.filter(({ activity }) => activity === "wait");
      const waited = waits.reduce((sum, { start, end }) => sum + (end - start), 0) / WINDOW;
      texts[`${name}.waited.${volunteer}`] = `${fixed(100 * waited, 0)} %`;
      texts[`${name}.share.${volunteer}`] = String(lane.find(({ activity }) => activity === "compute")?.sequences ?? 0);
    }
  }
  return texts;
}

/** @param {{steps: number[]}} timeline */
function stepsOf({ steps }) {
  return steps.length ? `${steps.length} step${steps.length > 1 ? "s" : ""}` : "no step";
}
