// Bundles the pages' scripts and styles for tools/bundle.py: node bundle.mjs SOURCES TARGET LOCK
// LOCK is what Pyodide should know of its packages, as JSON, which worker.js has in it.
// Scripts that several pages use come into chunks of their own. Every script lies directly in
// TARGET, so that addresses relative to `import.meta.url` begin there.
// @ts-check
import { build } from "esbuild";
import { readdirSync } from "node:fs";

const [sources, target, lock] = process.argv.slice(2);
const pages = readdirSync(`${sources}/pages`).filter((name) => name.endsWith(".js"));
// What the tab's page shares with others is small, and in chunks it would be two requests more of
// each of those.
const tab = ["tab-painter", "tab-volunteer", "pages/train-in-this-tab"];
const volunteer = ["run-volunteer"];
const others = ["drawing-worker", ...pages.map((name) => `pages/${name.slice(0, -3)}`)].filter((name) => !tab.includes(name));

const offline = { "globalThis.OFFLINE": JSON.stringify(process.env.OFFLINE ?? "") };

/** @type {import("esbuild").BuildOptions} */
const common = { bundle: true, minify: true, sourcemap: true, target: "es2022", charset: "utf8", logLevel: "warning" };

for (const names of [tab, volunteer, others]) {
  await build({
    ...common,
    entryPoints: names.map((name) => `${sources}/${name}.js`),
    entryNames: "[name]",
    chunkNames: "chunk-[hash]",
    outdir: target,
    format: "esm",
    splitting: true,
    define: offline,
  });
}
// The worker shares no chunk with the pages: it would be one request more before Python can start.
await build({
  ...common,
  entryPoints: [`${sources}/worker.js`],
  outdir: target,
  format: "esm",
  define: { ...offline, "globalThis.PYODIDE_LOCK": JSON.stringify(lock) }, // a text: an object would become a chunk
});
// On every page, so it shares no chunk either.
await build({ ...common, entryPoints: [`${sources}/site.js`], outdir: target, format: "esm", define: offline });
// At the site's root, since a service worker serves what lies beside and below it.
await build({
  ...common,
  entryPoints: [`${sources}/service-worker.js`],
  outdir: `${target}/..`,
  format: "iife", // modules are not yet for every browser's service workers
  sourcemap: false, // the build writes its name into it
  define: offline,
});
// One for all pages, since instant navigation changes pages without loading styles: the pieces that
// pages build on, then whatever lies beside them.
const pieces = ["base.css", "pieces.css"];
const styles = readdirSync(`${sources}/styles`).filter((name) => name.endsWith(".css") && !pieces.includes(name)).sort();
const contents = [...pieces, ...styles].map((name) => `@import "./${name}";`).join("\n");
await build({
  ...common,
  stdin: { contents, resolveDir: `${sources}/styles`, sourcefile: "site.css", loader: "css" },
  outfile: `${target}/styles/site.css`,
  external: ["*.woff2"],
});
