// @ts-check
/*
 * The home page's small calculator, and its swarm: a run in progress is followed, a recorded one is
 * played again. All figures are in the page since the site was built; nothing here is needed to
 * read them.
 */

import { mountFit } from "./fit.js";
import { follow } from "#assets/live/feed.js";
import { listRuns } from "#assets/live/runs.js";
import { Replay } from "./replay.js";
import { showRun } from "./run.js";
import { Swarm } from "./swarm.js";

const calm = matchMedia("(prefers-reduced-motion: reduce)");

/** @param {HTMLElement} figure */
async function mount(figure) {
  const [entry] = await listRuns();
  if (!entry || !figure.isConnected) return;
  const swarm = new Swarm(figure);
  /** @type {Replay | undefined} */
  let replay;
  const feed = follow(entry.name, (data) => {
    if (!figure.isConnected) return feed.stop();
    if (!data.loaded || !data.card || replay) return;
    if (!data.card.finished) {
      swarm.show(data, { moves: !calm.matches });
      return showRun(data, feed.now());
    }
    replay = new Replay(swarm, data);
    showRun(data, feed.now());
    replay.offer();
    if (!calm.matches) replay.playWhenSeen();
  });
}

function mountIfHere() {
  const fit = document.querySelector("[data-fit-calculator]:not([data-mounted])");
  if (fit instanceof HTMLElement) {
    fit.dataset.mounted = "";
    void mountFit(fit);
  }
  const figure = document.querySelector("[data-swarm]:not([data-mounted])");
  if (!(figure instanceof HTMLElement)) return;
  figure.dataset.mounted = "";
  // Without the live data the page stays as it was built.
  mount(figure).catch((error) => console.warn("The run could not be read.", error));
}

// Material's instant navigation replaces the content and emits each new document.
const documents = /** @type {any} */ (globalThis).document$;
if (documents) documents.subscribe(mountIfHere);
else mountIfHere();
