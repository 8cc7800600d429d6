// @ts-check
/* What each chart draws: traces and axes for Plotly, and a sentence for those who do not see it. */

import { RECENT } from "#assets/live/figures.js";
import { cumulative, growing, interpolate, recentMeans, smooth, thin } from "#assets/live/series.js";
import { bytes, count, decimal } from "#assets/live/words.js";

/**
 * @typedef {object} View What the visitor chose.
 * @property {"step" | "time"} across
 * @property {number} part the newest so-manieth part of the run
 * @property {number} smoothing
 * @property {boolean} log
 * @property {boolean} schedule whether the axis goes to the end of the schedule
 * @property {boolean} total
 * @property {boolean} events whether to mark what happened
 * @property {[number, number] | undefined} zoom
 */
/**
 * @typedef {object} Scene All that the charts share in one drawing.
 * @property {import("#assets/live/progress.js").Progress} progress
 * @property {import("#assets/live/data.js").Card | undefined} card
 * @property {View} view
 * @property {number[]} places where each step is on the x axis
 * @property {[number, number]} range of the x axis
 * @property {number} columns
 * @property {(name: string) => string} colour
 */
/** @typedef {{traces: object[], axes: Record<string, object>, summary: string}} Drawing */

/**
 * The axis across and the part of it to draw.
 * @param {import("#assets/live/progress.js").Progress} progress
 * @param {import("#assets/live/data.js").Card | undefined} card
 * @param {View} view
 * @returns {{places: number[], range: [number, number]}}
 */
export function across(progress, card, view) {
  const places = view.across === "time" ? growing(progress.time) : progress.step;
  const [first, last] = [places[0] ?? 0, places[places.length - 1] ?? 1];
  if (view.zoom) return { places, range: view.zoom };
  const end = view.schedule && view.across === "step" ? Math.max(last, card?.schedule.total_steps ?? last) : last;
  const start = last - (last - first) / view.part;
  return { places, range: [start, end > start ? end : start + 1] };
}

/**
 * What a trace says where the mouse points.
 * @param {string} name
 * @param {string} [format] of its values, in d3's language
 */
const shown = (name, format = ",d") => ({ name, hoverinfo: "y+name", hovertemplate: `%{y:${format}}` });

/**
 * @param {Scene} scene
 * @param {number[]} values
 * @param {object} style
 */
function line({ places, range, columns }, values, style) {
  const kept = thin(places, values, range, columns);
  return {
    type: "scatter", mode: kept.length > 1 ? "lines" : "markers", hoverinfo: "skip", showlegend: false,
    x: kept.map((index) => places[index]), y: kept.map((index) => values[index]), ...style,
  };
}

/** @param {Scene} scene @returns {Drawing} */
export function loss(scene) {
  const { progress, card, view, colour } = scene;
  const values = progress.figures.loss;
  const traces = [
    line(scene, values, { line: { color: colour("line-strong"), width: 1 }, opacity: 0.75 }),
    line(scene, smooth(values, view.smoothing), { ...shown("loss", ".3f"), line: { color: colour("series-1"), width: 2.5 } }),
  ];
  if (card?.schedule.corners) traces.push(rate(scene, card.schedule.corners));
  const [first, last] = ends(values);
  return {
    traces,
    axes: {
      yaxis: { type: view.log ? "log" : "linear", ...(view.log ? { dtick: "D2" } : {}) },
      yaxis2: { overlaying: "y", side: "right", showgrid: false, rangemode: "tozero", tickmode: "auto", nticks: 4 },
    },
    summary: Number.isNaN(first)
      ? "No loss has been reported."
      : `The loss goes from ${decimal(first, 3)} at the first step to ${decimal(last, 3)} at step ${count(progress.step[progress.length - 1])}.`,
  };
}

/**
 * The learning rate that the schedule gives each step.
 * @param {Scene} scene
 * @param {[number, number][]} corners
 */
function rate(scene, corners) {
  const [steps, heights] = [corners.map(([step]) => step), corners.map(([, height]) => height)];
  const style = { yaxis: "y2", ...shown("learning rate", ".2e"), line: { color: scene.colour("series-2"), width: 1.5, dash: "dot" } };
  if (scene.view.across === "time") {
    return line(scene, scene.progress.step.map((step) => interpolate(steps, heights, step)), style);
  }
  const [low, high] = scene.range;
  const inside = steps.filter((step) => step > low && step < high);
  const places = [Math.max(low, 1), ...inside, high];
  const values = places.map((place) => interpolate(steps, heights, place));
  return { type: "scatter", mode: "lines", showlegend: false, x: places, y: values, ...style };
}

/** @param {Scene} scene @returns {Drawing} */
export function volunteers(scene) {
  const { progress, colour } = scene;
  const { training, syncing, left } = progress.figures;
  const here = training.map((value, index) => value + syncing[index]);
  const stacked = thin(scene.places, here, scene.range, scene.columns);
  const area = (/** @type {number[]} */ values, /** @type {string} */ name) => ({
    type: "scatter", mode: "lines", showlegend: false, stackgroup: "here", ...shown(name),
    x: stacked.map((index) => scene.places[index]), y: stacked.map((index) => values[index]),
    line: { width: 0 }, fillcolor: `${colour(name)}99`,
  });
  const gone = line(scene, left, { ...shown("left"), line: { color: colour("ink"), width: 1.5, dash: "dash" } });
  const last = progress.length - 1;
  return {
    traces: [area(training, "training"), area(syncing, "syncing"), gone],
    axes: { yaxis: { rangemode: "tozero", tickformat: ",d", ...wholeTicks(Math.max(0, ...stacked.map((index) => here[index]), left[last] ?? 0)) } },
    summary: `At most ${count(highest(here))} volunteers at once; at the newest step ${count(training[last])} training, ${count(syncing[last])} syncing, ${count(left[last])} left since the start.`,
  };
}

/** @param {number} most */
const wholeTicks = (most) => (most < 6 ? { dtick: 1 } : {});

/** @param {Scene} scene @returns {Drawing} */
export function speed(scene) {
  const { progress, view, colour } = scene;
  // 0: the step before was not seen, so nobody knows how long this one took
  const values = progress.figures.samples_per_second.map((value) => value || NaN);
  const smoothed = rates(progress, view.smoothing);
  const drawn = line(scene, values, { line: { color: colour("line-strong"), width: 1 }, opacity: 0.75 });
  const most = 1.15 * Math.max(quantile(drawn.y, 0.97), quantile(line(scene, smoothed, {}).y, 1));
  const beyond = drawn.y.filter((value) => value > most).length;
  const [, last] = ends(smoothed);
  return {
    traces: [drawn, line(scene, smoothed, { ...shown("sequences per second", ".1f"), line: { color: colour("series-4"), width: 2 } })],
    axes: { yaxis: Number.isFinite(most) ? { range: [0, most] } : { rangemode: "tozero" } },
    summary: `${decimal(last, 1)} sequences per second at the end, smoothed.${beyond ? ` ${count(beyond)} steps are off the scale.` : ""}`,
  };
}

/**
 * Samples over seconds, both smoothed: two steps that were noted within a moment do not count as
 * endless speed.
 * @type {(progress: import("#assets/live/progress.js").Progress, weight: number) => number[]}
 */
function rates(progress, weight) {
  const times = growing(progress.time);
  const seconds = smooth(times.map((time, index) => (time - times[index - 1]) / 1000), weight);
  const samples = smooth(progress.figures.samples.map((value, index) => (index ? value : NaN)), weight);
  return samples.map((value, index) => (seconds[index] > 0 ? value / seconds[index] : NaN));
}

/**
 * Means over recent steps: volunteers exchange more in some steps than in others, in turns.
 * @type {(scene: Scene) => Drawing}
 */
export function traffic(scene) {
  const { progress, view, colour } = scene;
  const [sent, received] = [progress.figures.bytes_sent, progress.figures.bytes_received].map((values) =>
    view.total ? cumulative(values) : recentMeans(values, RECENT));
  const [totalSent, totalReceived] = [progress.figures.bytes_sent, progress.figures.bytes_received].map((values) => cumulative(values).at(-1) ?? 0);
  const kept = [sent, received].flatMap((values) => thin(scene.places, values, scene.range, scene.columns).map((index) => values[index]));
  return {
    traces: [
      inBytes(line(scene, sent, { ...shown("sent"), line: { color: colour("series-1"), width: 2 } })),
      inBytes(line(scene, received, { ...shown("received"), line: { color: colour("series-2"), width: 1.5, dash: "dash" } })),
    ],
    axes: { yaxis: { rangemode: "tozero", ...byteTicks(Math.max(0, ...kept)) } },
    summary: `${bytes(totalSent)} sent and ${bytes(totalReceived)} received in total.`,
  };
}

/** @param {ReturnType<typeof line>} drawn */
const inBytes = (drawn) => ({ ...drawn, text: drawn.y.map((value) => bytes(value)), hovertemplate: "%{text}" });

/** Ticks at powers of two, which are round in binary units, from 0 to what is drawn. @param {number} most */
function byteTicks(most) {
  if (most <= 0) return {};
  const step = 2 ** Math.ceil(Math.log2(most / 4));
  const values = Array.from({ length: Math.ceil(most / step) + 1 }, (_, index) => index * step);
  return { tickvals: values, ticktext: values.map((value) => (value ? tickSize(value) : "0")) };
}

/** @param {number} size */
const tickSize = (size) => bytes(size).replace(/\.0+(?=\D)|(\.\d*?)0+(?=\D)/, "$1");

/** @type {(values: number[], share: number) => number} */
function quantile(values, share) {
  const sorted = values.filter(Number.isFinite).sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? NaN;
}

/** @param {number[]} values */
const highest = (values) => values.reduce((most, value) => (value > most ? value : most), -Infinity);

/** @param {number[]} values The first and the last that are numbers. */
function ends(values) {
  return [values.find(Number.isFinite) ?? NaN, values.findLast(Number.isFinite) ?? NaN];
}
