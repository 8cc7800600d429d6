// The calculator's Python, started in one of three ways, see snapshot.html.
const folder = new URL("./pyodide/", import.meta.url).href;
const mode = location.search.slice(1);
const STORE = "snapshot";
const REQUEST = JSON.stringify({ id: 1, method: "answer", params: { model: "bert-base" } });

async function kept() {
  const found = await (await caches.open(STORE)).match(STORE);
  if (!found) throw new Error("there is no snapshot");
  return new Uint8Array(await found.arrayBuffer());
}

async function start() {
  const { loadPyodide } = await import(`${folder}pyodide.mjs`);
  const archive = fetch(new URL("./calculator.zip", import.meta.url)).then((response) => response.arrayBuffer());
  const python = await loadPyodide({
    indexURL: folder,
    stdLibURL: `${folder}python_stdlib_bytecode.zip`,
    lockFileContents: await (await fetch(`${folder}pyodide-lock.json`)).json(),
    packageBaseUrl: folder,
    ...(mode === "make" && { _makeSnapshot: true }),
    ...(mode === "load" && { _loadSnapshot: kept() }),
  });
  python.FS.writeFile("/calculator.zip", new Uint8Array(await archive));
  if (mode !== "load") python.runPython("import sys; sys.path.insert(0, '/calculator.zip'); import calculator.protocol");
  return python;
}

/** @param {any} python */
async function keep(python) {
  const began = performance.now();
  const snapshot = python.makeMemorySnapshot();
  await (await caches.open(STORE)).put(STORE, new Response(snapshot));
  return { bytes: snapshot.length, seconds: (performance.now() - began) / 1e3 };
}

const python = await start();
const made = mode === "make" ? await keep(python) : {};
const answer = python.pyimport("calculator.protocol").handle(REQUEST);
const seed = python.runPython("str(hash('seed'))");
postMessage({ answer, seed, ...made });
