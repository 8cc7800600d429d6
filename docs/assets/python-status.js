// @ts-check
/* A line that says where Python's start is, and a button that starts it again when it failed. */

import { retry, watch } from "./python.js";

/** @type {Record<import("./python.js").Stage, string>} */
const WORDS = {
  loading: "Loading Python. The first time takes the longest.",
  slow: "Loading Python is taking unusually long.",
  starting: "Starting Python …",
  restarting: "Python stopped and is starting again …",
  ready: "",
  broken: "",
};

/**
 * Keep `place` up to date with Python's state, as long as `root` is in the page.
 * @param {HTMLElement} root
 * @param {HTMLElement} place Holds an element [data-words] and a button [data-retry].
 * @param {string} whenReady
 * @param {(isBroken: boolean) => void} onStage
 */
export function showPythonStatus(root, place, whenReady, onStage) {
  const words = /** @type {HTMLElement} */ (place.querySelector("[data-words]"));
  const button = /** @type {HTMLElement} */ (place.querySelector("[data-retry]"));
  const stop = watch((stage, failure) => {
    if (!root.isConnected) return void stop();
    words.textContent = failure ? sentence(failure) : stage === "ready" ? whenReady : WORDS[stage];
    button.hidden = stage !== "broken" && stage !== "slow";
    place.dataset.stage = stage;
    onStage(stage === "broken");
  });
  button.addEventListener("click", retry);
}

/** @param {import("./python.js").Failure} failure */
function sentence({ type, message }) {
  return type === "StartError" ? `Python could not be loaded: ${message}.` : `Python stopped: ${message}.`;
}
