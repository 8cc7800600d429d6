// @ts-check
/*
 * The page's one Python. Loads Pyodide from our own files, adds `calculator`, and answers each
 * request text with the text that `calculator.protocol.handle` returns. No logic lives here.
 */

const here = new URL("./pyodide/", import.meta.url).href;

/**
 * @param {string} stage
 * @param {string[]} [loaded]
 */
const report = (stage, loaded) =>
  postMessage(JSON.stringify({ id: null, kind: "progress", stage, loaded }));

/**
 * Report what ends this worker; the page decides whether another one is started.
 *
 * @param {any} error
 */
const reportEnd = (error) =>
  postMessage(JSON.stringify({
    id: null,
    kind: "error",
    error: { type: error?.pyodide_fatal_error ? "FatalError" : "StartError", field: null, message: String(error?.message ?? error).replace(/\.$/, "") },
  }));

/** @returns {Promise<(request: string) => string>} */
async function start() {
  report("loading");
  const { loadPyodide } = await import(`${here}pyodide.mjs`);
  const archive = fetchBytes(new URL("./calculator.zip", import.meta.url).href);
  archive.catch(() => {}); // reported below, when it is awaited
  // Which packages there are (none): the build writes it here, which saves a request.
  const lockFileContents = /** @type {any} */ (globalThis).PYODIDE_LOCK;
  const options = { indexURL: here, packageBaseUrl: here, lockFileContents };
  const withoutWasm = failureOfWasm();
  let python;
  try {
    python = await Promise.race([loadPyodide({ ...options, stdLibURL: `${here}python_stdlib_bytecode.zip` }), withoutWasm]);
  } catch (error) {
    if (error instanceof WasmError) throw error;
    console.warn("The bytecode library did not load; taking the stock one.", error);
    python = await Promise.race([loadPyodide(options), withoutWasm]);
  }
  report("starting");
  python.FS.writeFile("/calculator.zip", await archive);
  const fetchWhole = () => python.FS.writeFile("/whole.zip", fetchNow(`${here}python_stdlib.zip`));
  python.runPython(PREPARE).call(undefined, fetchWhole);
  return python.pyimport("calculator.protocol").handle;
}

// The library that Python starts from holds what is imported. Should a module that was left out be
// asked for after all, the whole library is fetched.
const PREPARE = `
import sys
from importlib.machinery import PathFinder

sys.path.insert(0, "/calculator.zip")

def prepare(fetch_whole):
    try:
        from left_out import NAMES
    except ImportError:
        return  # this library is whole
    fetched = []

    class WholeLibrary:
        @staticmethod
        def find_spec(name, path=None, target=None):
            if name not in NAMES:
                return None
            if not fetched:
                fetch_whole()
                fetched.append(True)
            folder = name.rpartition(".")[0].replace(".", "/")
            return PathFinder.find_spec(name, [f"/whole.zip/{folder}".rstrip("/")], target)

    sys.meta_path.append(WholeLibrary)

prepare
`;

const WASM = "application/wasm";

class WasmError extends Error {}

/**
 * Pyodide only warns when its WebAssembly does not load, and then waits forever.
 *
 * @returns {Promise<never>} Rejects when that happens.
 */
function failureOfWasm() {
  return new Promise((_, reject) => {
    const { instantiateStreaming } = WebAssembly;
    WebAssembly.instantiateStreaming = async (source, imports) => {
      try {
        const response = await source;
        if (!response.ok) throw new WasmError(`${response.url}: ${response.status} ${response.statusText}`);
        // As it came, so that the browser keeps what it has compiled for the next visit.
        if (response.headers.get("Content-Type") === WASM) return await instantiateStreaming(response, imports);
        // A host that names another type: browsers compile while they download only with the right one.
        const typed = new Response(response.body, { headers: { "Content-Type": WASM } });
        return await instantiateStreaming(typed, imports);
      } catch (error) {
        reject(error instanceof WasmError ? error : new WasmError(`WebAssembly did not load: ${error}`));
        throw error;
      }
    };
  });
}

/** @param {string} address */
async function fetchBytes(address) {
  const response = await fetch(address);
  if (!response.ok) throw new Error(`${address}: ${response.status} ${response.statusText}`);
  return new Uint8Array(await response.arrayBuffer());
}

/**
 * A file at once: Python's imports cannot wait for a promise.
 *
 * @param {string} address
 */
function fetchNow(address) {
  console.warn(`Fetching ${address} for a module that was left out.`);
  const request = new XMLHttpRequest();
  request.open("GET", address, false);
  request.responseType = "arraybuffer";
  request.send();
  if (request.status !== 200) throw new Error(`${address}: ${request.status} ${request.statusText}`);
  return new Uint8Array(request.response);
}

const ready = start();
ready.then(() => report("ready", loadedFiles()), reportEnd);

/** What this worker was loaded from: to be kept for a visit without a network. */
function loadedFiles() {
  return [import.meta.url, ...performance.getEntriesByType("resource").map(({ name }) => name)];
}

addEventListener("message", async (event) => {
  const handle = await ready;
  postMessage(answer(handle, event.data));
});

/**
 * A request that Python fails at is answered, too: else the page would wait forever.
 *
 * @param {(request: string) => string} handle
 * @param {string} request
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
