// @ts-check
/* The figures of the run on the home page, as its live data say now. */

import { make, write } from "#assets/elements.js";
import { LIVE } from "#assets/live/runs.js";
import { describe } from "#assets/live/status.js";
import { fileOf } from "#assets/live/valid.js";
import { figures, kindOf } from "./figures.js";

/**
 * Put a run's state, figures and pictures into the page.
 * @param {import("#assets/live/data.js").RunData} data
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
  write(place.querySelector("[data-run-title]"), data.card.title);
  write(place.querySelector("[data-run-kind]"), kindOf(data.card));
  for (const [name, text] of Object.entries(figures(data))) write(place.querySelector(`[data-run-figure="${name}"]`), text);
  if (!data.card.finished) write(place.querySelector("[data-run-note]"), "");
  showPictures(place, data);
}

/** @type {(place: HTMLElement, data: import("#assets/live/data.js").RunData) => void} */
function showPictures(place, { samples, folder }) {
  const list = place.querySelector("[data-run-pictures]");
  const newest = samples.checkpoints.at(-1);
  if (!list || !newest) return;
  const addresses = samples.prompts.map((_, index) => fileOf(newest.images[index]?.[0], folder) ?? "");
  const shown = [...list.querySelectorAll("img")].map(({ src, dataset }) => (dataset.address ? new URL(`../${dataset.address}`, LIVE).href : src));
  if (shown.join() === addresses.join()) return;
  list.replaceChildren(...samples.prompts.map((prompt, index) =>
    make("li", {},
      make("img", { src: addresses[index], alt: `Drawn for: ${prompt}`, width: "128", height: "128" }),
      make("span", {}, prompt))));
}
