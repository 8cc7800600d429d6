// @ts-check
/*
 * Computes what calculator/swarm/race.py does, until Python is there, from the same settings and
 * texts: they are in the page. A test compares every number and text of the two.
 */

import { grouped } from "../digits.js";
import { filled, fixed, general } from "./numbers.js";

/** @typedef {{seconds: number[], sequences: number[]}} Step When each volunteer is done, and what it did. */
/** @typedef {{activity: string, start: number, end: number, sequences: number}} Segment */
/** @typedef {{target_batch_size: number, micro_batch_size: number, exchange_seconds: number, window_seconds: number}} Settings Those of calculator/swarm/pace.py. */
/** @typedef {{settings: Settings, texts: Record<string, string>}} Constants */

/**
 * @param {{speeds: string[]}} state
 * @param {Constants} constants
 * @returns {object | undefined} Nothing where Python refuses the state.
 */
export function pace(state, { settings, texts }) {
  const speeds = state.speeds.map(Number);
  if (!speeds.some((speed) => speed > 0)) return undefined;
  const timelines = {
    "equal-shares": simulate(equalShares(speeds, settings), settings),
    "own-pace": simulate(ownPace(speeds, settings), settings),
  };
  return {
    speeds,
    timelines: Object.fromEntries(Object.entries(timelines).map(([name, timeline]) => [name, drawn(timeline, settings)])),
    figures: figures(speeds, timelines, settings, texts),
  };
}

/** @param {number[]} speeds @param {Settings} settings @returns {Step} */
function equalShares(speeds, { target_batch_size: target, micro_batch_size: micro }) {
  const share = micro * Math.ceil(target / (speeds.length * micro));
  return { seconds: speeds.map((speed) => share / speed), sequences: speeds.map((speed) => (speed ? share : 0)) };
}

/** @param {number[]} speeds @param {Settings} settings @returns {Step} */
function ownPace(speeds, { target_batch_size: target, micro_batch_size: micro }) {
  const counts = speeds.map(() => 0);
  const done = speeds.map(() => 0);
  let computed = 0;
  let full = 0;
  let running = speeds.flatMap((speed, volunteer) => (speed ? [{ end: micro / speed, volunteer }] : []));
  while (running.length) {
    running.sort((one, other) => one.end - other.end || one.volunteer - other.volunteer);
    const { end, volunteer } = /** @type {typeof running[number]} */ (running.shift());
    counts[volunteer] += 1;
    done[volunteer] = end;
    computed += micro;
    if (computed < target) {
      running.push({ end: ((counts[volunteer] + 1) * micro) / speeds[volunteer], volunteer });
    } else if (!full) {
      full = end;
      running = running.filter((one) => done[one.volunteer] < end * (1 - 1e-9));
    }
  }
  return { seconds: done, sequences: counts.map((count) => micro * count) };
}

/** @param {Step} step @param {Settings} settings */
function simulate({ seconds, sequences }, { exchange_seconds: exchange, window_seconds: window }) {
  /** @type {Segment[][]} */
  const lanes = seconds.map(() => []);
  const steps = [];
  for (let start = 0; start < window;) {
    const ready = start + Math.max(...seconds);
    const end = ready + exchange;
    for (const [volunteer, lane] of lanes.entries()) {
      const finished = start + (sequences[volunteer] ? seconds[volunteer] : 0);
      const parts = [
        { activity: "compute", start, end: finished, sequences: sequences[volunteer] },
        { activity: "wait", start: finished, end: ready, sequences: 0 },
        { activity: "exchange", start: ready, end, sequences: 0 },
      ];
      for (const part of parts) {
        const cut = { ...part, end: Math.min(part.end, window) };
        if (cut.start < cut.end) lane.push(cut);
      }
    }
    if (end <= window) steps.push(end);
    start = end;
  }
  return { lanes, steps, sequences: steps.length * sequences.reduce((sum, count) => sum + count, 0) };
}

/** @param {ReturnType<typeof simulate>} timeline In percent of the window. @param {Settings} settings */
function drawn({ lanes, steps }, { window_seconds: window }) {
  const toPercent = 100 / window;
  const segment = (/** @type {Segment} */ { activity, start, end }) => ({ activity, left: start * toPercent, width: (end - start) * toPercent });
  return { lanes: lanes.map((lane) => lane.map(segment)), steps: steps.map((end) => end * toPercent) };
}

/**
 * @param {number[]} speeds
 * @param {Record<string, ReturnType<typeof simulate>>} timelines
 * @param {Settings} settings
 * @param {Record<string, string>} texts
 */
function figures(speeds, timelines, { window_seconds: window }, texts) {
  const [old, own] = Object.values(timelines);
  const stepsOf = (/** @type {{steps: number[]}} */ { steps: { length: count } }) =>
    filled(count > 1 ? texts.steps : count ? texts.one_step : texts.no_step, { count });
  /** @type {Record<string, string>} */
  const found = {
    summary: filled(texts.summary, {
      minutes: general(window / 60),
      old_steps: stepsOf(old),
      old_sequences: grouped(old.sequences),
      own_steps: stepsOf(own),
      own_sequences: grouped(own.sequences),
    }),
  };
  for (const [volunteer, speed] of speeds.entries()) {
    found[`speed.${volunteer}`] = speed ? filled(texts.speed, { speed: general(speed) }) : texts.left;
  }
  for (const [name, timeline] of Object.entries(timelines)) {
    found[`${name}.steps`] = stepsOf(timeline);
    found[`${name}.sequences`] = grouped(timeline.sequences);
    for (const [volunteer, lane] of timeline.lanes.entries()) {
      const waits = lane.filter(({ activity }) => activity === "wait");
      const waited = waits.reduce((sum, { start, end }) => sum + (end - start), 0) / window;
      found[`${name}.waited.${volunteer}`] = filled(texts.waited, { percent: fixed(100 * waited, 0) });
      found[`${name}.share.${volunteer}`] = String(lane.find(({ activity }) => activity === "compute")?.sequences ?? 0);
    }
  }
  return found;
}
