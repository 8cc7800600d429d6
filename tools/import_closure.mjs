// Makes the zip of the library's imported part, and starts once from it to see that nothing is
// missing: node import_closure.mjs PYODIDE_FOLDER LIBRARY.zip CALCULATOR.zip READERS.zip CLOSURE.zip READERS_WITH_LIBRARY.zip
// @ts-check
import { readFile, rename, writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

// Node would print the line that failed, which of Pyodide's script is all of it, and no more.
process.on("uncaughtException", (error) => {
  console.error(error.stack);
  process.exit(1);
});

const [pyodideFolder, library, calculator, readers, closure, readersWithLibrary] = process.argv.slice(2);
const folder = resolve(pyodideFolder);
const { loadPyodide } = await import(pathToFileURL(`${folder}/pyodide.mjs`).href);
const CALCULATOR = "/calculator.zip";
const READERS = "/readers.zip";
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
 * What a Python has imported once it has answered what the pages can ask for, and what else once it
 * has read files.
 *
 * @param {string} stdLibURL
 * @param {string} readersURL
 * @param {string[]} wanted
 */
async function exercised(stdLibURL, readersURL, wanted) {
  const { python, program } = await load(stdLibURL, "exercise");
  python.runPython(OPEN);
  check(program.get("exercise")(python.toPy(wanted)).toJs());
  const names = () => program.get("imported")(place).toJs();
  const first = names();
  python.FS.writeFile(READERS, await readFile(readersURL));
  python.runPython(OPEN_READERS);
  check(program.get("exercise_readers")().toJs());
  return { first, others: names().filter((/** @type {string} */ name) => !first.includes(name)) };
}

/** @param {string[]} failed */
function check(failed) {
  if (failed.length) throw new Error(`Missing in the browser's library:\n${failed.join("\n")}`);
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

const OPEN_READERS = `
from packed import install
install("/readers.zip")
`;

// Two of them: what our own tools import is not to count.
const tools = await load(library, "import_closure");
const wanted = tools.program.get("wanted")(CALCULATOR).toJs();
const place = tools.python.runPython("import sys; next(path for path in sys.path if path.startswith('/lib/') and path.endswith('.zip'))");
const temporary = [closure, readersWithLibrary].map((name) => `${name}.${process.pid}.part`);

// Temporary names first: a reader never sees half a file.
const { first, others } = await exercised(library, readers, wanted);
const { python, program } = tools;
python.FS.writeFile(READERS, await readFile(readers));
program.get("write_closure")(place, python.toPy(first), CALCULATOR, "/0.zip");
program.get("write_readers")(place, python.toPy(others), READERS, "/1.zip");
for (const [number, name] of temporary.entries()) await writeFile(name, python.FS.readFile(`/${number}.zip`));
await exercised(temporary[0], temporary[1], wanted);
for (const [number, name] of [closure, readersWithLibrary].entries()) await rename(temporary[number], name);
