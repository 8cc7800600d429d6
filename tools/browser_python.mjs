// Makes what the browser starts Python from: node browser_python.mjs PYODIDE_FOLDER LIBRARY.zip WORK
// WORK has calculator-sources.zip and readers-sources.zip, and gets calculator.zip, readers.zip and
// python_stdlib_bytecode.zip, from which Python starts once, to see that nothing is missing.
// LIBRARY.zip is Python's whole library compiled, made unless it is there.
// @ts-check
import { existsSync } from "node:fs";
import { readFile, rename, writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

// Node would print the line that failed, which of Pyodide's script is all of it, and no more.
process.on("uncaughtException", (error) => {
  console.error(error.stack);
  process.exit(1);
});

const [pyodideFolder, library, work] = process.argv.slice(2);
const folder = resolve(pyodideFolder);
const { loadPyodide } = await import(pathToFileURL(`${folder}/pyodide.mjs`).href);
const CALCULATOR = "/calculator.zip";
const READERS = "/readers.zip";
const LIBRARY = "/library.zip";

/** @param {string} name */
const source = (name) => readFile(new URL(`./${name}.py`, import.meta.url), "utf8");

// Traces need lines, not columns.
const maker = await loadPyodide({ indexURL: `${folder}/`, env: { PYTHONNODEBUGRANGES: "1" } });
maker.FS.mkdirTree("/programs/tools");
for (const name of ["compile_bytecode", "import_closure"]) maker.FS.writeFile(`/programs/tools/${name}.py`, await source(name));
maker.runPython('import sys; sys.path.append("/programs")');
const compiler = maker.pyimport("tools.compile_bytecode");

if (existsSync(library)) {
  maker.FS.writeFile(LIBRARY, await readFile(library));
} else {
  maker.FS.writeFile("/stock.zip", await readFile(`${folder}/python_stdlib.zip`));
  compiler.compile_zip("/stock.zip", LIBRARY, await source("stand_ins"));
  // A temporary name first: a reader never sees half a file.
  await writeFile(`${library}.part`, maker.FS.readFile(LIBRARY));
  await rename(`${library}.part`, library);
}
for (const name of ["calculator", "readers"]) maker.FS.writeFile(`/${name}-sources.zip`, await readFile(`${work}/${name}-sources.zip`));
compiler.pack_zip("/calculator-sources.zip", CALCULATOR, await source("packed"));
compiler.pack_zip("/readers-sources.zip", READERS);

const closure = maker.pyimport("tools.import_closure");
const wanted = closure.wanted(CALCULATOR).toJs();
const found = await exercised(library, READERS);
closure.write_closure(LIBRARY, maker.toPy(found.first), CALCULATOR, "/python_stdlib_bytecode.zip");
closure.write_readers(LIBRARY, maker.toPy(found.others), READERS, "/readers-with-library.zip");
await writeFile(`${work}/calculator.zip`, maker.FS.readFile(CALCULATOR));
await writeFile(`${work}/readers.zip`, maker.FS.readFile("/readers-with-library.zip"));
await writeFile(`${work}/python_stdlib_bytecode.zip`, maker.FS.readFile("/python_stdlib_bytecode.zip"));
await exercised(`${work}/python_stdlib_bytecode.zip`, "/readers-with-library.zip");

/**
 * What a fresh Python has imported once it has answered what the pages can ask for, and what else
 * once it has read files.
 * @param {string} stdLibURL
 * @param {string} readers
 */
async function exercised(stdLibURL, readers) {
  const python = await loadPyodide({ indexURL: `${folder}/`, stdLibURL });
  python.FS.writeFile(CALCULATOR, maker.FS.readFile(CALCULATOR));
  const program = python.toPy({ __name__: "exercise" });
  python.runPython(await source("exercise"), { globals: program, filename: "exercise.py" });
  // As docs/assets/worker/prepare.py has it.
  python.runPython(`import sys; sys.path.append("${CALCULATOR}"); from packed import install; install("${CALCULATOR}")`);
  check(program.get("exercise")(python.toPy(wanted)).toJs());
  const names = () => program.get("imported")().toJs();
  const first = names();
  python.FS.writeFile(READERS, maker.FS.readFile(readers));
  python.runPython(`from packed import install; install("${READERS}")`);
  check(program.get("exercise_readers")().toJs());
  return { first, others: names().filter((/** @type {string} */ name) => !first.includes(name)) };
}

/** @param {string[]} failed */
function check(failed) {
  if (failed.length) throw new Error(`Missing in the browser's library:\n${failed.join("\n")}`);
}
