// @ts-check
/* Pyodide only warns when its WebAssembly does not load, and then waits forever. */

const WASM = "application/wasm";

/** A file did not load, which is no fault of what was to be done with it. */
export class LoadError extends Error {}

/** Rejects what waits for the present start. @type {((error: LoadError) => void) | undefined} */
let reject;

/**
 * The failure of the WebAssembly that is loaded next.
 *
 * @returns {Promise<never>} Rejects when it fails.
 */
export function failureOfWasm() {
  if (!reject) watch();
  return new Promise((_, refuse) => { reject = refuse; });
}

function watch() {
  const { instantiateStreaming } = WebAssembly;
  WebAssembly.instantiateStreaming = async (source, imports) => {
    try {
      const response = await source;
      if (!response.ok) throw new LoadError(`${response.url}: ${response.status} ${response.statusText}`);
      // As it came, so that the browser keeps what it has compiled for the next visit.
      if (response.headers.get("Content-Type") === WASM) return await instantiateStreaming(response, imports);
      // A host that names another type: browsers compile while they download only with the right one.
      const typed = new Response(response.body, { headers: { "Content-Type": WASM } });
      return await instantiateStreaming(typed, imports);
    } catch (error) {
      reject?.(error instanceof LoadError ? error : new LoadError(`WebAssembly did not load: ${error}`));
      throw error;
    }
  };
}
