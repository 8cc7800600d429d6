// @ts-check
/*
 * Python's memory, kept in this browser for the next visit, which starts from it: Pyodide's memory
 * snapshots, a private interface of the exact version that this build has. It is kept under an
 * address in the folder of this build's scripts, so that the service worker drops it with them.
 */

import { STORE } from "../offline-choice.js";
import { ADDRESS } from "./names.js";
import { createModule, load, open, warm } from "./start.js";
import { LoadError } from "./wasm.js";

const DIGEST = "X-Digest";
// Python's memory has noted what the browser can do.
const BROWSER = "X-Browser";
const BLOCK_BYTES = 2 ** 16;
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
    if (!kept?.headers.has(DIGEST)) return undefined;
    if (kept.headers.get(BROWSER) === navigator.userAgent) return kept;
    await drop();
  } catch {
    // Storage that is blocked or does not work is as good as empty.
  }
  return undefined;
}

/** Pyodide with the memory that is kept. @param {Response} kept */
function loadWith(kept) {
  const memory = unpack(kept);
  memory.catch(() => {}); // reported by Pyodide, which awaits it
  return load({ _loadSnapshot: memory, createPyodideModule: createRoom });
}

/**
 * The memory as it was.
 * @param {Response} kept
 */
async function unpack(kept) {
  const packed = new Uint8Array(await kept.arrayBuffer());
  if ((await digestOf(packed)) !== kept.headers.get(DIGEST)) throw new DamagedError("it is damaged");
  const [size, ...starts] = new Uint32Array(packed.buffer, 0, Math.ceil(packed.length / BLOCK_BYTES));
  const memory = new Uint8Array(size);
  for (const [index, start] of starts.entries()) {
    const at = BLOCK_BYTES * (index + 1);
    memory.set(packed.subarray(at, at + BLOCK_BYTES), start);
  }
  return memory;
}

/**
 * The memory without its empty blocks, which are almost half of it: less to write, read and check. A
 * block before the others has the memory's size, and where each of them begins.
 * @param {Uint8Array<ArrayBuffer>} memory
 */
async function pack(memory) {
  const numbers = [memory.length];
  const blocks = [];
  for (let start = 0; start < memory.length; start += BLOCK_BYTES) {
    const block = memory.subarray(start, start + BLOCK_BYTES);
    if (!block.some(Boolean)) continue;
    numbers.push(start);
    blocks.push(block);
  }
  const first = new Uint32Array(BLOCK_BYTES / Uint32Array.BYTES_PER_ELEMENT);
  first.set(numbers);
  return new Blob([first, ...blocks]).arrayBuffer();
}

/** @param {BufferSource} content */
async function digestOf(content) {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", content)).join();
}

/**
 * Pyodide's WebAssembly with room for memory that had grown when it was kept.
 * @param {{INITIAL_MEMORY?: number}} settings
 */
async function createRoom(settings) {
  const module = await createModule(settings);
  module.growMemory(settings.INITIAL_MEMORY);
  return module;
}

/**
 * Start another Python and keep its memory.
 * @returns {Promise<boolean>} Whether memory is kept now.
 */
export async function keep() {
  try {
    const python = await load({ _makeSnapshot: true });
    warm(python);
    const memory = await pack(python.makeMemorySnapshot());
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
