// Compiles a zip of Python sources to bytecode with the Pyodide that will run it:
// node compile_bytecode.mjs PYODIDE_FOLDER SOURCES.zip BYTECODE.zip compile_zip package_loader.py event_loop.py
// node compile_bytecode.mjs PYODIDE_FOLDER SOURCES.zip BYTECODE.zip pack_zip packed.py
// @ts-check
import { readFile, rename, writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

// Node would print the line that failed, which of Pyodide's script is all of it, and no more.
process.on("uncaughtException", (error) => {
  console.error(error.stack);
  process.exit(1);
});

const [pyodideFolder, sources, bytecode, compile, ...modules] = process.argv.slice(2);
const folder = resolve(pyodideFolder);
const { loadPyodide } = await import(pathToFileURL(`${folder}/pyodide.mjs`).href);
// Traces need lines, not columns.
const pyodide = await loadPyodide({ indexURL: `${folder}/`, env: { PYTHONNODEBUGRANGES: "1" } });

pyodide.FS.writeFile("/sources.zip", await readFile(sources));
const program = await readFile(new URL("./compile_bytecode.py", import.meta.url), "utf8");
pyodide.runPython(program, { filename: "compile_bytecode.py" });
const texts = await Promise.all(modules.map((module) => readFile(module, "utf8")));
pyodide.globals.get(compile)("/sources.zip", "/bytecode.zip", ...texts);

// A temporary name first: a reader never sees half a file.
const temporary = `${bytecode}.${process.pid}.part`;
await writeFile(temporary, pyodide.FS.readFile("/bytecode.zip"));
await rename(temporary, bytecode);
