// @ts-check
/*
 * Python's WebAssembly. The browser compiles it while Pyodide's scripts are still on their way. Where
 * it does not load, Pyodide only warns, and then waits forever.
 */

const WASM = "application/wasm";

/** A file did not load, which is no fault of what was to be done with it. */
export class LoadError extends Error {}

/** Rejects what waits for the present start. @type {((error: LoadError) => void) | undefined} */
let reject;
/** Stands for the file where Pyodide asks for it. */
const taken = new Response();
/** @type {Promise<WebAssembly.Module> | undefined} */
let compiled;

/** Load and compile the WebAssembly that Pyodide will ask for. @type {(address: string) => void} */
export function compile(address) {
  const { fetch } = globalThis;
  compiled = compileStreaming(fetch(address));
  compiled.catch(() => {}); // reported when Pyodide asks for it
  globalThis.fetch = async (resource, options) => (String(resource) === address ? taken : fetch(resource, options));
  WebAssembly.instantiateStreaming = instantiate;
}

/** @param {Promise<Response>} coming */
async function compileStreaming(coming) {
  const response = await coming;
  if (!response.ok) throw new LoadError(`${response.url}: ${response.status} ${response.statusText}`);
  // As it came, so that the browser keeps what it has compiled for the next visit.
  if (response.headers.get("Content-Type") === WASM) return WebAssembly.compileStreaming(response);
  // A host that names another type: browsers compile while they download only with the right one.
  return WebAssembly.compileStreaming(new Response(response.body, { headers: { "Content-Type": WASM } }));
}

const { instantiateStreaming } = WebAssembly;

/** @type {typeof WebAssembly.instantiateStreaming} */
async function instantiate(source, imports) {
  const response = await source;
  if (response !== taken || !compiled) return instantiateStreaming(response, imports);
  try {
    const module = await compiled;
    return { module, instance: await WebAssembly.instantiate(module, imports) };
  } catch (error) {
    reject?.(error instanceof LoadError ? error : new LoadError(`WebAssembly did not load: ${error}`));
    throw error;
  }
}

/** The failure of the WebAssembly at the next start. @returns {Promise<never>} Rejects when it fails. */
export function failureOfWasm() {
  return new Promise((_, refuse) => { reject = refuse; });
}
