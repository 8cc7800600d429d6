// @ts-check
/*
 * Has Python's memory kept for the next visit: by a worker of its own, once the page rests, and not
 * where it would take room or power that is short. What the visitor has typed is not in it.
 */

import { STORE } from "./offline-choice.js";
import { ADDRESS, MAKER } from "./worker/names.js";

const REST_MS = 5000;
const LEAST_MEMORY = 4; // GiB of the device
const LEAST_ROOM = 200e6; // bytes that the browser still gives this site; the memory takes 32 million

/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;
/** @type {Worker | undefined} */
let maker;

/**
 * Keep Python's memory, as soon as Python and the page have nothing else to do.
 * @type {(makeWorker: (name: string) => Worker, isBusy: () => boolean) => void}
 */
export function keepMemory(makeWorker, isBusy) {
  if (timer !== undefined || maker || isSmall()) return;
  timer = setTimeout(() => {
    timer = undefined;
    if (isBusy()) keepMemory(makeWorker, isBusy);
    else void make(makeWorker);
  }, REST_MS);
}

/** Stop if it is being made: the visitor wants nothing to be kept. */
export function stopMemory() {
  clearTimeout(timer);
  timer = undefined;
  maker?.terminate();
  maker = undefined;
}

/** Whether this device has little memory, or its owner wants it to do little. */
function isSmall() {
  const { connection, deviceMemory } = /** @type {any} */ (navigator);
  if (connection?.saveData) return true;
  // Not every browser says it; a device without a mouse may be small.
  return (deviceMemory ?? (matchMedia("(pointer: coarse)").matches ? 0 : LEAST_MEMORY)) < LEAST_MEMORY;
}

/** @param {(name: string) => Worker} makeWorker */
async function make(makeWorker) {
  if (maker || !(await hasRoom())) return;
  maker = makeWorker(MAKER);
  maker.addEventListener("message", ({ data }) => end(JSON.parse(data).kept));
  maker.addEventListener("error", () => end(false));
}

/** Whether nothing is kept or was tried by this build, and there is room for it. */
async function hasRoom() {
  try {
    if (await caches.match(ADDRESS, { cacheName: STORE, ignoreVary: true })) return false;
    const { quota = 0, usage = 0 } = await navigator.storage.estimate();
    return quota - usage >= LEAST_ROOM;
  } catch {
    return false; // a browser that blocks storage
  }
}

/** @param {boolean} isKept */
function end(isKept) {
  maker?.terminate();
  if (isKept) document.documentElement.dataset.memory = "kept";
}
