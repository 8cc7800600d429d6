// Makes the zip of the library's imported part, and starts once from it to see that nothing is
// missing: node import_closure.mjs PYODIDE_FOLDER LIBRARY.zip CALCULATOR.zip CLOSURE.zip
// @ts-check
import { readFile, rename, writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [pyodideFolder, library, calculator, closure] = process.argv.slice(2);
const folder = resolve(pyodideFolder);
const { loadPyodide } = await import(pathToFileURL(`${folder}/pyodide.mjs`).href);
const program = await readFile(new URL("./import_closure.py", import.meta.url), "utf8");

/**
 * A Python that has imported and answered what the pages can ask for.
 *
 * @param {string} stdLibURL
 */
async function exercised(stdLibURL) {
  const python = await loadPyodide({ indexURL: `${folder}/`, stdLibURL });
  python.runPython("import sys");
  python.FS.writeFile("/calculator.zip", await readFile(calculator));
  python.runPython("sys.path.insert(0, '/calculator.zip')");
  const tools = python.toPy({ __name__: "import_closure" });
  python.runPython(program, { globals: tools, filename: "import_closure.py" });
  const failed = tools.get("exercise")("/calculator.zip").toJs();
  if (failed.length) throw new Error(`Missing in the browser's library:\n${failed.join("\n")}`);
  return { python, tools };
}

const { python, tools } = await exercised(library);
const place = python.runPython("next(path for path in sys.path if path.startswith('/lib/') and path.endswith('.zip'))");
const names = tools.get("imported")(place);
tools.get("write_closure")(place, names, "/closure.zip");
// A temporary name first: a reader never sees half a file.
const temporary = `${closure}.${process.pid}.part`;
await writeFile(temporary, python.FS.readFile("/closure.zip"));
await exercised(temporary);
await rename(temporary, closure);
