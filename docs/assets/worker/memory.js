// @ts-check
/*
 * Python's memory, kept in this browser for the next visit, which starts from it: Pyodide's memory
 * snapshots, a private interface of the exact version that this build has. It is kept under an
 * address in the folder of this build's scripts, so that the service worker drops it with them.
 */

import { STORE } from "../offline-choice.js";
import { ADDRESS } from "./names.js";
import { condense, expand, sizeOf } from "./sparse.js";
import { createModule, load, open, warm } from "./start.js";
import { LoadError } from "./wasm.js";

const DIGEST = "X-Digest";
// Python's memory has noted what the browser can do.
const BROWSER = "X-Browser";
const PAGE_BYTES = 2 ** 16; // by which WebAssembly's memory grows
const TRIAL = JSON.stringify({ id: 0, method: "answer", params: {} });

class DamagedError extends Error {}

/**
 * Start from the memory that an earlier visit has kept.
 * @returns {Promise<((request: string) => string) | undefined>} Nothing where there is none, or where
 *   it does not work: then it is not tried again.
 */
export async function resume() {
  const kept = await find();
  if (!kept) return undefined;
  try {
    const handle = open(await loadWith(kept));
    const { kind } = JSON.parse(handle(TRIAL));
    if (kind !== "result") throw new Error(`its first answer is ${kind}`);
    return handle;
  } catch (error) {
    console.warn("Python did not start from the memory that was kept; starting without it.", error);
    if (error instanceof DamagedError) await drop();
    else if (!(error instanceof LoadError)) await refuse();
    return undefined;
  }
}

/** What is kept by this build in this browser. */
async function find() {
  try {
    const kept = await caches.match(ADDRESS, { cacheName: STORE, ignoreVary: true });
    if (!kept?.headers.get(DIGEST)) return undefined;
    if (kept.headers.get(BROWSER) === navigator.userAgent) return kept;
    await drop();
  } catch {
    // Storage that is blocked or does not work is as good as empty.
  }
  return undefined;
}

/**
 * Pyodide with the memory that is kept. It would take an array of all the memory, to copy it once
 * more: so it gets one without contents, and they go straight to where Python has them.
 * @type {(kept: Response) => Promise<any>}
 */
async function loadWith(kept) {
  const condensed = kept.arrayBuffer().then((buffer) => new Uint8Array(buffer));
  const checked = condensed.then((bytes) => check(bytes, kept));
  const head = condensed.then(headOf);
  for (const promise of [checked, head]) promise.catch(() => {}); // reported below, when they are awaited
  /** @param {object} settings */
  const createPyodideModule = async (settings) => {
    const module = await createModule(settings);
    await checked;
    fill(module, await condensed);
    return module;
  };
  try {
    return await load({ _loadSnapshot: head, createPyodideModule });
  } catch (error) {
    if (!(error instanceof LoadError)) await checked; // damage explains every other failure
    throw error;
  }
}

/** @type {(condensed: Uint8Array<ArrayBuffer>, kept: Response) => Promise<void>} */
async function check(condensed, kept) {
  if ((await digestOf(condensed)) !== kept.headers.get(DIGEST)) throw new DamagedError("it is damaged");
}

/**
 * What Pyodide notes before the memory's contents, in an array that claims to hold these, too.
 * @type {(condensed: Uint8Array<ArrayBuffer>) => Uint8Array<ArrayBuffer>}
 */
function headOf(condensed) {
  const head = new Uint8Array(startOf(condensed));
  expand(condensed, 0, head);
  return Object.defineProperty(head, "length", { value: sizeOf(condensed) });
}

/**
 * Where the memory's contents begin: Pyodide's second number says it.
 * @type {(condensed: Uint8Array<ArrayBuffer>) => number}
 */
function startOf(condensed) {
  const numbers = new Uint32Array(2);
  expand(condensed, 0, new Uint8Array(numbers.buffer));
  return numbers[1];
}

/**
 * @param {any} module What Pyodide has made so far; of its memory, only what it has allocated is in use.
 * @param {Uint8Array<ArrayBuffer>} condensed
 */
function fill(module, condensed) {
  const start = startOf(condensed);
  const size = sizeOf(condensed) - start;
  if (size % PAGE_BYTES) throw new Error("it is no memory of WebAssembly's");
  if (module.HEAPU8.length < size) module.growMemory(size); // it had grown when it was kept
  const memory = module.HEAPU8;
  if (memory.length < size) throw new Error("there is no room for it");
  memory.fill(0, 0, module._sbrk(0));
  expand(condensed, start, memory);
}

/** @param {BufferSource} content */
async function digestOf(content) {
  const bytes = new Uint8Array(await crypto.subtle.digest("SHA-256", content));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * Start another Python and keep its memory, unless that has been tried already.
 * @returns {Promise<boolean>} Whether memory is kept now.
 */
export async function keep() {
  const kept = await caches.match(ADDRESS, { cacheName: STORE, ignoreVary: true });
  if (kept) return Boolean(kept.headers.get(DIGEST));
  try {
    const python = await load({ _makeSnapshot: true });
    warm(python);
    const memory = condense(python.makeMemorySnapshot());
    await put(memory, { [DIGEST]: await digestOf(memory), [BROWSER]: navigator.userAgent });
    return true;
  } catch (error) {
    console.warn("Python's memory could not be kept for the next visit.", error);
    await refuse();
    return false;
  }
}

/** Do not use it again: a worker that may have started from it was lost. */
export async function distrust() {
  if (await find()) await refuse();
}

/** Let no later visit of this build try it. */
async function refuse() {
  await put("", {}).catch(() => {});
}

/** @type {(content: BodyInit, headers: Record<string, string>) => Promise<void>} */
async function put(content, headers) {
  if (!(await caches.has(STORE))) throw new Error("nothing is to be kept"); // the visitor's choice
  await (await caches.open(STORE)).put(ADDRESS, new Response(content, { headers }));
}

async function drop() {
  await (await caches.open(STORE)).delete(ADDRESS, { ignoreVary: true });
}
