// Bundles the pages' scripts and styles for tools/bundle.py: node bundle.mjs SOURCES TARGET LOCK
// LOCK is what Pyodide should know of its packages, as JSON, which worker.js has in it.
// Scripts that several pages use come into chunks of their own. Every script lies directly in
// TARGET, so that addresses relative to `import.meta.url` begin there.
// @ts-check
import { build } from "esbuild";
import { readdirSync } from "node:fs";

const [sources, target, lock] = process.argv.slice(2);
const pages = readdirSync(`${sources}/pages`).filter((name) => name.endsWith(".js"));

/** @type {import("esbuild").BuildOptions} */
const common = { bundle: true, minify: true, sourcemap: true, target: "es2022", charset: "utf8", logLevel: "warning" };

await build({
  ...common,
  entryPoints: [`${sources}/site.js`, `${sources}/worker.js`, ...pages.map((name) => `${sources}/pages/${name}`)],
  entryNames: "[name]",
  chunkNames: "chunk-[hash]",
  outdir: target,
  format: "esm",
  splitting: true,
  define: { "globalThis.PYODIDE_LOCK": JSON.stringify(lock) }, // a text: an object would become a chunk
});
await build({ ...common, entryPoints: [`${sources}/styles/site.css`], outdir: `${target}/styles`, external: ["*.woff2"] });
