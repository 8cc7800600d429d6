// @ts-check
/*
 * The page's one Python: answers each request text with the text that `calculator.protocol.handle`
 * returns. No logic lives here. Another worker of this script only keeps Python's memory.
 */

import { distrust, keep, resume } from "./worker/memory.js";
import { FRESH, MAKER } from "./worker/names.js";
import { begin, loadAnyhow, open } from "./worker/start.js";

const { name } = /** @type {any} */ (globalThis);

/** @param {object} message */
const send = (message) => postMessage(JSON.stringify(message));

/** Report what ends this worker; the page decides whether another one is started. @type {(error: any) => void} */
const reportEnd = (error) =>
  send({
    id: null,
    kind: "error",
    error: { type: error?.pyodide_fatal_error ? "FatalError" : "StartError", field: null, message: String(error?.message ?? error).replace(/\.$/, "") },
  });

/** @param {string} stage */
const report = (stage) => send({ id: null, kind: "progress", stage });

/** @returns {Promise<(request: string) => string>} */
async function start() {
  report("loading");
  const resumed = await (name === FRESH ? distrust() : resume());
  if (resumed) return ready(resumed, true);
  const python = await loadAnyhow();
  report("starting");
  return ready(open(python), false);
}

/**
 * @param {(request: string) => string} handle
 * @param {boolean} resumed Whether it is from the memory that was kept.
 */
function ready(handle, resumed) {
  send({ id: null, kind: "progress", stage: "ready", loaded: loadedFiles(), resumed });
  return handle;
}

/** What this worker was loaded from: to be kept for a visit without a network. */
function loadedFiles() {
  return [import.meta.url, ...performance.getEntriesByType("resource").map((entry) => entry.name)];
}

/** @param {Promise<(request: string) => string>} starting */
function serve(starting) {
  starting.catch(reportEnd);
  addEventListener("message", async (event) => {
    const handle = await starting;
    postMessage(answer(handle, event.data));
  });
}

/**
 * A request that Python fails at is answered, too: else the page would wait forever.
 * @type {(handle: (request: string) => string, request: string) => string}
 */
function answer(handle, request) {
  try {
    return handle(request);
  } catch (error) {
    console.error(error);
    // After such a failure this Python answers nothing any more.
    if (/** @type {any} */ (error).pyodide_fatal_error) reportEnd(error);
    const message = "Python failed at this one; the browser's console has its words.";
    const { id } = JSON.parse(request);
    return JSON.stringify({ id, kind: "error", error: { type: "PythonError", field: null, message } });
  }
}

begin();
if (name === MAKER) keep().catch(() => false).then((kept) => send({ kept }));
else serve(start());
