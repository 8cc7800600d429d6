// @ts-check
/* Python's start: Pyodide from our own files, and `calculator` in it. */

import program from "./prepare.py"; // its text, which esbuild puts here
import { compile, failureOfWasm, LoadError } from "./wasm.js";

const here = new URL("./pyodide/", import.meta.url).href;
const CALCULATOR = "/calculator.zip";
const READERS = "/readers.zip";

/** Load what every start needs, whatever else it turns out to need. */
export function begin() {
  compile(`${here}pyodide.asm.wasm`);
  for (const script of ["pyodide.mjs", "pyodide.asm.mjs"]) import(`${here}${script}`).catch(() => {}); // reported by the start
}

/**
 * Pyodide with a library that starts fast, and `calculator` in its file system.
 * @param {object} [special] Options of Pyodide's, for memory that is kept.
 */
export function load(special) {
  return loadFrom({ ...special, stdLibURL: `${here}python_stdlib_bytecode.zip` });
}

/** The same with any library that works. */
export async function loadAnyhow() {
  try {
    return await load();
  } catch (error) {
    if (error instanceof LoadError) throw error;
    console.warn("The bytecode library did not load; taking the stock one.", error);
    return loadFrom({});
  }
}

/**
 * Pyodide's WebAssembly as Pyodide makes it itself, for what works on it before Python starts.
 * @type {(settings: object) => Promise<any>}
 */
export async function createModule(settings) {
  const { default: create } = await import(`${here}pyodide.asm.mjs`).catch(fail);
  return create(settings);
}

/** @param {object} options */
async function loadFrom(options) {
  const { loadPyodide } = await import(`${here}pyodide.mjs`).catch(fail);
  const archive = fetchBytes(new URL(`.${CALCULATOR}`, import.meta.url).href);
  archive.catch(() => {}); // reported below, when it is awaited
  // Which packages there are (none): the build writes it here, which saves a request.
  const lockFileContents = /** @type {any} */ (globalThis).PYODIDE_LOCK;
  const failed = failureOfWasm();
  failed.catch(() => {}); // Python may have been loaded by then
  const coming = loadPyodide({ indexURL: here, packageBaseUrl: here, lockFileContents, ...options });
  const python = await Promise.race([coming, failed]);
  python.FS.writeFile(CALCULATOR, await archive);
  python.runPython(program);
  python.runPython(`find("${CALCULATOR}")`);
  return python;
}

/**
 * What answers requests.
 * @param {any} python As it was loaded, or with the memory of one that was prepared before.
 * @returns {(request: string) => string}
 */
export function open(python) {
  const fetchWhole = () => python.FS.writeFile("/whole.zip", fetchNow(`${here}python_stdlib.zip`));
  const fetchReaders = () => python.FS.writeFile(READERS, fetchNow(new URL(`.${READERS}`, import.meta.url).href));
  python.globals.get("prepare")(fetchWhole, fetchReaders, READERS);
  return python.pyimport("calculator.protocol").handle;
}

/**
 * Import `calculator` and answer once, so that this need not be done again. Nothing of the page is
 * in the memory then, nor any object of JavaScript's.
 * @type {(python: any) => void}
 */
export function warm(python) {
  python.runPython("warm()");
}

/** @type {(error: Error) => never} */
function fail({ message }) {
  throw new LoadError(message);
}

/** @param {string} address */
async function fetchBytes(address) {
  const response = await fetch(address).catch(fail);
  if (!response.ok) throw new LoadError(`${address}: ${response.status} ${response.statusText}`);
  return new Uint8Array(await response.arrayBuffer());
}

/** A file at once: Python's imports cannot wait for a promise. @param {string} address */
function fetchNow(address) {
  console.warn(`Fetching ${address} for a module that was left out.`);
  const request = new XMLHttpRequest();
  request.open("GET", address, false);
  request.responseType = "arraybuffer";
  request.send();
  if (request.status !== 200) throw new Error(`${address}: ${request.status} ${request.statusText}`);
  return new Uint8Array(request.response);
}
