// @ts-check
/*
 * The page's one Python. Loads Pyodide from our own files, adds `calculator`, and answers each
 * request text with the text that `calculator.protocol.handle` returns. No logic lives here.
 */

const here = new URL("./pyodide/", import.meta.url).href;

/** @param {string} stage */
const report = (stage) =>
  postMessage(JSON.stringify({ id: null, kind: "progress", stage }));

/** @returns {Promise<(request: string) => string>} */
async function start() {
  report("loading");
  const { loadPyodide } = await import(`${here}pyodide.mjs`);
  const archive = fetchBytes(new URL("./calculator.zip", import.meta.url).href);
  archive.catch(() => {}); // reported below, when it is awaited
  const options = { indexURL: here, packageBaseUrl: here };
  let python;
  try {
    python = await loadPyodide({ ...options, stdLibURL: `${here}python_stdlib_bytecode.zip` });
  } catch (error) {
    console.warn("The bytecode library did not load; taking the stock one.", error);
    python = await loadPyodide(options);
  }
  report("starting");
  python.FS.writeFile("/calculator.zip", await archive);
  python.runPython("import sys; sys.path.insert(0, '/calculator.zip')");
  return python.pyimport("calculator.protocol").handle;
}

/** @param {string} address */
async function fetchBytes(address) {
  const response = await fetch(address);
  if (!response.ok) throw new Error(`${address}: ${response.status} ${response.statusText}`);
  return new Uint8Array(await response.arrayBuffer());
}

const ready = start();
ready.then(
  () => report("ready"),
  (error) => postMessage(JSON.stringify({
    id: null,
    kind: "error",
    error: { type: "StartError", field: null, message: String(error?.message ?? error) },
  })),
);

addEventListener("message", async (event) => {
  const handle = await ready;
  postMessage(answer(handle, event.data));
});

/**
 * A request that Python fails at is answered, too: else the page would wait for ever.
 *
 * @param {(request: string) => string} handle
 * @param {string} request
 */
function answer(handle, request) {
  try {
    return handle(request);
  } catch (error) {
    console.error(error);
    const message = "Python failed at this one; the browser's console has its words.";
    const { id } = JSON.parse(request);
    return JSON.stringify({ id, kind: "error", error: { type: "PythonError", field: null, message } });
  }
}
