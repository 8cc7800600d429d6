// @ts-check
/*
 * The home page's swarm: a run that is on is followed, one that is over is played again. The
 * figure and the figures were drawn when the site was built; nothing here is needed to read them.
 */

import { follow, listRuns } from "../live/data.js";
import { Replay } from "../home/replay.js";
import { showRun } from "../home/run.js";
import { Swarm } from "../home/swarm.js";

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
