// @ts-check
/*
 * The page's side of the worker: one worker for the life of the page, one request at a time, and
 * of the requests that wait only the newest one is sent.
 */

/** @typedef {{type: string, field: string | null, message: string}} Failure */
/** @typedef {{kind: "result", value: any} | {kind: "error", error: Failure}} Answer */
/** @typedef {{method: string, params: object, deliver: (answer: Answer) => void}} Question */

/** @type {Worker | undefined} */
let worker;
/** @type {(Question & {id: number}) | undefined} */
let inFlight;
/** @type {Question | undefined} */
let waiting;
/** @type {Failure | undefined} */
let broken;
let lastId = 0;
let stage = "";
/** @type {Set<(stage: string, failure?: Failure) => void>} */
const watchers = new Set();

/**
 * Ask Python. An older request that still waits is dropped: its `deliver` is never called.
 *
 * @param {string} method
 * @param {object} params
 * @param {(answer: Answer) => void} deliver
 */
export function ask(method, params, deliver) {
  waiting = { method, params, deliver };
  startWorker();
  sendNext();
}

/**
 * Be told of the stages "loading", "starting", "ready", or "broken" with its failure; at once of
 * the present one. Returns the function that ends it.
 *
 * @param {(stage: string, failure?: Failure) => void} watcher
 */
export function watch(watcher) {
  watchers.add(watcher);
  if (stage) watcher(stage, broken);
  return () => watchers.delete(watcher);
}

function startWorker() {
  if (worker) return;
  worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
  worker.addEventListener("message", (event) => receive(JSON.parse(event.data)));
  worker.addEventListener("error", (event) =>
    fail({ type: "StartError", field: null, message: event.message || "the worker did not load" }));
}

function sendNext() {
  if (inFlight || !waiting || broken) return;
  inFlight = { ...waiting, id: ++lastId };
  waiting = undefined;
  const { id, method, params } = inFlight;
  worker?.postMessage(JSON.stringify({ id, method, params }));
}

/** @param {any} message */
function receive(message) {
  if (message.kind === "progress") return announce(message.stage);
  if (message.id === null) return fail(message.error);
  const request = inFlight;
  inFlight = undefined;
  sendNext();
  if (request && request.id === message.id) request.deliver(message);
}

/** @param {Failure} failure */
function fail(failure) {
  broken = failure;
  announce("broken");
}

/** @param {string} next */
function announce(next) {
  stage = next;
  for (const watcher of watchers) watcher(stage, broken);
}
