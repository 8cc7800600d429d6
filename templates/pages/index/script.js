// @ts-check
/*
 * The home page's small calculator, and its swarm: a run in progress is followed, a recorded one is
 * played again. All figures are in the page since the site was built; nothing here is needed to
 * read them.
 */

import { mountEach } from "#assets/elements.js";
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

mountEach("[data-fit-calculator]", mountFit);
// Without the live data the page stays as it was built.
mountEach("[data-swarm]", (figure) => void mount(figure).catch((error) => console.warn("The run could not be read.", error)));
