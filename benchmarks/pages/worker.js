// Pyodide and nothing else; each message is a program whose last value is sent back.
const folder = new URL("./pyodide/", import.meta.url).href;
const library = location.search === "?stock" ? "python_stdlib.zip" : "python_stdlib_bytecode.zip";

async function start() {
  const { loadPyodide } = await import(`${folder}pyodide.mjs`);
  return loadPyodide({ indexURL: folder, stdLibURL: folder + library });
}

const ready = start();
onmessage = async (event) => {
  const python = await ready;
  if (event.data.includes("calculator")) {
    const archive = await fetch(new URL("./calculator.zip", import.meta.url));
    python.FS.writeFile("/calculator.zip", new Uint8Array(await archive.arrayBuffer()));
    python.runPython('import sys; sys.path.append("/calculator.zip"); import packed; packed.install("/calculator.zip")');
  }
  postMessage(python.runPython(event.data));
};
