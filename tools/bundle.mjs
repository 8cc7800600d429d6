// Bundles the pages' scripts and styles for tools/bundle.py: node bundle.mjs SHARED PAGES TARGET LOCK
// SHARED is docs/assets. PAGES has a folder for each page, with its script.js and style.css where it
// has them. LOCK is what Pyodide should know of its packages, as JSON, which worker.js has in it.
// Scripts that several pages use come into chunks of their own. Every script lies directly in
// TARGET, so that addresses relative to `import.meta.url` begin there.
// @ts-check
import { build } from "esbuild";
import { existsSync, readdirSync } from "node:fs";
import { relative } from "node:path";

const [shared, folder, target, lock] = process.argv.slice(2);
const pages = readdirSync(folder).sort();
/** @param {string} name */
const ofPages = (name) => pages.map((page) => `${folder}/${page}/${name}`).filter((path) => existsSync(path));
/** @param {string} path A page's script gets the name of its page's address. */
const entry = (path) => ({ in: path, out: (path.split("/").at(-2) ?? "").replaceAll("_", "-") });
/** @param {string} name */
const own = (name) => ({ in: `${shared}/${name}.js`, out: name });

// What these share with others is small; in chunks of its own it would cost one or two more requests.
const TAB = "train-in-this-tab";
const SMALL = ["how-it-works", "models-on-gpus", "numbers"];
const scripts = ofPages("script.js").map(entry);
const tab = scripts.filter(({ out }) => out === TAB);
const small = scripts.filter(({ out }) => SMALL.includes(out)).map((script) => [script]);
const others = scripts.filter(({ out }) => out !== TAB && !SMALL.includes(out));

const offline = { "globalThis.OFFLINE": JSON.stringify(process.env.OFFLINE ?? "") };

/** @type {import("esbuild").BuildOptions} */
const common = { bundle: true, minify: true, sourcemap: true, target: "es2022", charset: "utf8", logLevel: "warning" };

for (const entryPoints of [[own("tab-painter"), own("tab-volunteer"), ...tab], ...small, [own("run-volunteer")], [own("drawing-worker"), ...others]]) {
  await build({
    ...common,
    entryPoints,
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
  entryPoints: [`${shared}/worker.js`],
  outdir: target,
  format: "esm",
  loader: { ".py": "text" },
  define: { ...offline, "globalThis.PYODIDE_LOCK": JSON.stringify(lock) }, // a text: an object would become a chunk
});
// On every page, so it shares no chunk either.
await build({ ...common, entryPoints: [`${shared}/site.js`], outdir: target, format: "esm", define: offline });
// At the site's root, since a service worker serves what lies beside and below it.
await build({
  ...common,
  entryPoints: [`${shared}/service-worker.js`],
  outdir: `${target}/..`,
  format: "iife", // modules are not yet for every browser's service workers
  sourcemap: false, // the build writes its name into it
  define: offline,
});
// One for all pages, since instant navigation changes pages without loading styles: the pieces that
// pages build on, then the pages' own.
const pieces = ["base", "pieces", "words"].map((name) => `${shared}/styles/${name}.css`);
const contents = [...pieces, ...ofPages("style.css")].map((path) => `@import "./${relative(".", path)}";`).join("\n");
await build({
  ...common,
  stdin: { contents, resolveDir: ".", sourcefile: "site.css", loader: "css" },
  outfile: `${target}/styles/site.css`,
  external: ["*.woff2"],
});
