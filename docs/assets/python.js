// @ts-check
/*
 * The page's side of the worker: one worker for the life of the page, one request at a time, and
 * of the requests of one method that wait only the newest one is sent. A worker that dies is
 * started again, a bounded number of times.
 */

import { keepMemory, stopMemory } from "./memory.js";
import { FRESH } from "./worker/names.js";

/** @typedef {{type: string, field: string | null, message: string, value?: string, rule?: string, way_out?: {words: string, query: string}}} Failure */
/** @typedef {{kind: "result", value: any} | {kind: "error", error: Failure}} Answer */
/** @typedef {{method: string, params: object, deliver: (answer: Answer) => void}} Question */
/** @typedef {"loading" | "slow" | "starting" | "restarting" | "ready" | "broken"} Stage */
/** @typedef {(stage: Stage, failure?: Failure) => void} Watcher */

const MOST_RESTARTS = 2; // in a row, without an answer in between
const SLOW_MS = 60_000;
// Most answers take milliseconds; a worker that the browser has ended reports nothing.
const SILENT_MS = 30_000;

/** @type {Worker | undefined} */
let worker;
/** @type {(Question & {id: number}) | undefined} */
let inFlight;
/** @type {Map<string, Question>} By method, the one asked first in front. */
const waiting = new Map();
/** @type {Failure | undefined} */
let broken;
let lastId = 0;
let restarts = 0;
let starts = 0;
let hasResumed = false;
/** @type {Stage | undefined} */
let stage;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;
/** @type {Set<Watcher>} */
const watchers = new Set();

/**
 * Ask Python. An older request of the same method that still waits is dropped: its `deliver` is
 * never called.
 * @type {(method: string, params: object, deliver: (answer: Answer) => void) => void}
 */
export function ask(method, params, deliver) {
  waiting.delete(method);
  waiting.set(method, { method, params, deliver });
  if (!worker && !broken) startWorker();
  sendNext();
}

/** Whether Python is there and answers within a few milliseconds. */
export const isReady = () => stage === "ready";

/** Start again after a failure, or when the visitor is tired of waiting. */
export function retry() {
  restarts = 0;
  broken = undefined;
  stopWorker();
  startWorker();
  sendNext();
}

/**
 * Calls `watcher` at each stage, "broken" with its failure; at once with the present one. Returns
 * the function that ends it.
 * @type {(watcher: Watcher) => () => boolean}
 */
export function watch(watcher) {
  watchers.add(watcher);
  if (stage) watcher(stage, broken);
  return () => watchers.delete(watcher);
}

/** @param {string} name */
function makeWorker(name) {
  return new Worker(new URL("./worker.js", import.meta.url), { type: "module", name });
}

/** A worker; undefined where the browser allows none. */
function tryWorker() {
  try {
    return makeWorker(starts ? FRESH : "");
  } catch {
    return undefined;
  }
}

function startWorker() {
  const started = tryWorker();
  starts += 1;
  if (!started) return lose({ type: "StartError", field: null, message: "this browser blocks workers, and Python runs in one" });
  worker = started;
  if (!("WebAssembly" in globalThis)) return lose({ type: "StartError", field: null, message: "this browser has no WebAssembly, or it is switched off" });
  document.documentElement.dataset.starting = ""; // see offline.js
  const hear = (/** @type {Event} */ event) => {
    if (worker === started) heard(event);
  };
  for (const kind of ["message", "error", "messageerror"]) started.addEventListener(kind, hear);
  wait(SLOW_MS, () => announce("slow"));
}

/** @param {Event} event What the worker says, or what happened to it. */
function heard(event) {
  if (event.type === "message") return receive(JSON.parse(/** @type {MessageEvent} */ (event).data));
  const message = (event instanceof ErrorEvent && event.message) || "the worker did not load";
  lose({ type: "StartError", field: null, message });
}

/** Let a request of a method that still waits go; it is not wanted any more. @type {(method: string) => void} */
export function drop(method) {
  waiting.delete(method);
}

/** End the worker, and keep its question unless a newer one waits. */
function stopWorker() {
  clearTimeout(timer);
  worker?.terminate();
  worker = undefined;
  if (inFlight && !waiting.has(inFlight.method)) waiting.set(inFlight.method, inFlight);
  inFlight = undefined;
}

/** @type {(milliseconds: number, act: () => void) => void} */
function wait(milliseconds, act) {
  clearTimeout(timer);
  timer = setTimeout(act, milliseconds);
}

function sendNext() {
  const [next] = waiting.values();
  if (inFlight || !next || !worker) return;
  waiting.delete(next.method);
  inFlight = { ...next, id: ++lastId };
  const { id, method, params } = inFlight;
  worker.postMessage(JSON.stringify({ id, method, params }));
  if (isReady()) expectAnswer();
}

function expectAnswer() {
  wait(SILENT_MS, () => lose({ type: "WorkerError", field: null, message: "Python stopped responding" }));
}

/** @param {any} message */
function receive(message) {
  if (message.loaded) dispatchEvent(new CustomEvent("python", { detail: message.loaded })); // see offline.js
  if (message.resumed !== undefined) showResumed(message.resumed);
  if (message.kind === "progress") return progress(message.stage);
  if (message.id === null) return lose(message.error);
  clearTimeout(timer);
  restarts = 0;
  const request = inFlight;
  inFlight = undefined;
  sendNext();
  if (request && request.id === message.id) request.deliver(message);
}

/** @param {boolean} resumed Whether Python started from the memory of an earlier visit. */
function showResumed(resumed) {
  hasResumed = resumed;
  document.documentElement.dataset.python = resumed ? "resumed" : "started";
}

/** @param {Stage} next */
function progress(next) {
  if (next === "ready") {
    clearTimeout(timer);
    if (inFlight) expectAnswer();
  } else if (restarts) {
    return; // "restarting" says it all
  }
  announce(next);
}

/**
 * Drops the worker. One that has answered before is restarted; one that could not start is
 * left to the visitor.
 * @type {(failure: Failure) => void}
 */
function lose(failure) {
  const worked = isReady();
  stopWorker();
  if (worked && restarts < MOST_RESTARTS) {
    restarts += 1;
    console.warn("The worker was lost and is being restarted.", failure);
    announce("restarting");
    startWorker();
    return sendNext();
  }
  broken = failure;
  announce("broken");
}

/** @param {Stage} next */
function announce(next) {
  stage = next;
  if (next === "ready" || next === "broken") delete document.documentElement.dataset.starting;
  for (const watcher of watchers) watcher(next, broken);
}

// From offline.js: this page and what it has loaded are kept; and nothing is kept any more.
addEventListener("kept", () => {
  if (isReady() && !hasResumed) keepMemory(makeWorker, () => Boolean(inFlight));
});
addEventListener("forgotten", stopMemory);
