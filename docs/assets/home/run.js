// @ts-check
/* The figures of the run on the home page, as its live data say now. */

import { LIVE } from "../live/runs.js";
import { describe } from "../live/status.js";
import { fileOf } from "../live/valid.js";

const whole = (/** @type {number} */ value) => value.toLocaleString("en", { maximumFractionDigits: 0 });

/** @param {number} value NaN where the monitor gave none. */
const decimal = (value) => (Number.isNaN(value) ? "–" : value.toFixed(2));

/**
 * Put a run's state, figures and pictures into the page.
 *
 * @param {import("../live/data.js").RunData} data
 * @param {number} now milliseconds since 1970 on the server's clock
 */
export function showRun(data, now) {
  const place = document.querySelector("[data-run]");
  if (!(place instanceof HTMLElement) || !data.card) return;
  const state = describe(data, now);
  const badge = place.querySelector("[data-run-state]");
  if (badge instanceof HTMLElement && !data.card.finished) {
    badge.dataset.state = state.kind;
    badge.textContent = `${state.sentence}. ${state.detail}`;
  }
  write(place, "[data-run-title]", data.card.title);
  write(place, "[data-run-kind]", data.card.finished ? "A recorded run" : "A run in progress");
  for (const [name, text] of Object.entries(figures(data))) write(place, `[data-run-figure="${name}"]`, text);
  if (!data.card.finished) write(place, "[data-run-note]", "");
  showPictures(place, data);
}

/**
 * @param {import("../live/data.js").RunData} data
 * @returns {Record<string, string>}
 */
function figures({ card, progress, peers }) {
  const last = progress.length - 1;
  const { loss, samples, samples_per_second: pace, training, syncing } = progress.figures;
  /** @type {Record<string, string>} */
  const found = {
    volunteers: whole(peers.length),
    total: whole(card?.schedule.total_steps ?? 0),
  };
  if (last < 0) return found;
  found.step = whole(progress.step[last]);
  found.loss = decimal(loss[last]);
  found.firstLoss = decimal(loss[0]);
  found.training = whole(training[last] + syncing[last]);
  const seconds = (progress.time[last] - progress.time[0]) / 1000;
  const all = samples.reduce((sum, count) => sum + (count || 0), 0);
  found.sequences = whole(all);
  // The first step opens the clock.
  found.pace = whole(card?.finished && seconds > 0 ? (all - samples[0]) / seconds : pace[last]);
  found.paceOf = card?.finished ? "on average" : "in the last step";
  return found;
}

/**
 * @param {HTMLElement} place
 * @param {import("../live/data.js").RunData} data
 */
function showPictures(place, { samples, folder }) {
  const list = place.querySelector("[data-run-pictures]");
  const newest = samples.checkpoints.at(-1);
  if (!list || !newest) return;
  const addresses = samples.prompts.map((_, index) => fileOf(newest.images[index]?.[0], folder) ?? "");
  const shown = [...list.querySelectorAll("img")].map(({ src, dataset }) => (dataset.address ? new URL(`../${dataset.address}`, LIVE).href : src));
  if (shown.join() === addresses.join()) return;
  list.replaceChildren(...samples.prompts.map((prompt, index) => {
    const item = document.createElement("li");
    const image = document.createElement("img");
    image.src = addresses[index];
    image.alt = `Drawn for: ${prompt}`;
    image.width = image.height = 128;
    const words = document.createElement("span");
    words.textContent = prompt;
    item.append(image, words);
    return item;
  }));
}

/** @param {HTMLElement} place @param {string} selector @param {string} text */
function write(place, selector, text) {
  const element = place.querySelector(selector);
  if (element && element.textContent !== text) element.textContent = text;
}
