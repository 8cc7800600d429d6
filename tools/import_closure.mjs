// Makes the zip of the library's imported part, and starts once from it to see that nothing is
// missing: node import_closure.mjs PYODIDE_FOLDER LIBRARY.zip CALCULATOR.zip CLOSURE.zip
// @ts-check
import { readFile, rename, writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [pyodideFolder, library, calculator, closure] = process.argv.slice(2);
const folder = resolve(pyodideFolder);
const { loadPyodide } = await import(pathToFileURL(`${folder}/pyodide.mjs`).href);
const CALCULATOR = "/calculator.zip";
const OURS = "/programs/tools"; // where our own tools import each other from

/** @param {string} name */
const source = (name) => readFile(new URL(`./${name}.py`, import.meta.url), "utf8");

/**
 * A Python with `calculator` in its file system, and the names of one of our programs.
 *
 * @param {string} stdLibURL
 * @param {string} name
 */
async function load(stdLibURL, name) {
  const python = await loadPyodide({ indexURL: `${folder}/`, stdLibURL });
  python.FS.writeFile(CALCULATOR, await readFile(calculator));
  python.FS.mkdirTree(OURS);
  python.FS.writeFile(`${OURS}/compile_bytecode.py`, await source("compile_bytecode"));
  python.runPython('import sys; sys.path.append("/programs")');
  const program = python.toPy({ __name__: name });
  const text = await source(name);
  python.runPython(text, { globals: program, filename: `${name}.py` });
  return { python, program };
}

/**
 * A Python that has imported and answered what the pages can ask for.
 *
 * @param {string} stdLibURL
 * @param {string[]} wanted
 */
async function exercised(stdLibURL, wanted) {
  const { python, program } = await load(stdLibURL, "exercise");
  python.runPython(OPEN);
  const failed = program.get("exercise")(python.toPy(wanted)).toJs();
  if (failed.length) throw new Error(`Missing in the browser's library:\n${failed.join("\n")}`);
  return { python, program };
}

// As docs/assets/worker/start.js has it.
const OPEN = `
import sys
sys.path.append("/calculator.zip")
try:
    from packed import install
except ImportError:
    pass
else:
    install("/calculator.zip")
`;

// Two of them: what our own tools import is not to count.
const tools = await load(library, "import_closure");
const wanted = tools.program.get("wanted")(CALCULATOR).toJs();
const place = tools.python.runPython("import sys; next(path for path in sys.path if path.startswith('/lib/') and path.endswith('.zip'))");
const temporary = `${closure}.${process.pid}.part`;

/**
 * Write the part of the library that a Python has imported, under a temporary name.
 *
 * @param {any} program
 */
async function write(program) {
  const names = program.get("imported")(place).toJs();
  tools.program.get("write_closure")(place, tools.python.toPy(names), CALCULATOR, "/closure.zip");
  await writeFile(temporary, tools.python.FS.readFile("/closure.zip"));
}

await write((await exercised(library, wanted)).program);
await exercised(temporary, wanted);
await rename(temporary, closure); // a reader never sees half a file
