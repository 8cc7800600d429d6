// @ts-check
/*
 * Keeps the pages for visitors and whatever else was visited, so that they also work without a
 * network. Pages come from the network while there is one. What they load lies in folders named by
 * their content (tools/versions.py), so a kept file never meets a page of another build. Live data is
 * left to docs/assets/live/kept.js, which knows what it is; of a run, only pictures are kept here.
 */

// This file changes with every build, which is how browsers notice a new one.
const BUILD = "NAME_OF_THE_BUILD";
const FOLDERS = "FOLDERS_OF_THE_BUILD".split(" ");
// OFFLINE=0 at a build: a service worker that removes itself and all that it has kept.
const IS_OFF = /** @type {any} */ (globalThis).OFFLINE === "0";

const PATIENCE_MS = 5000; // with a kept page at hand, a network that is slower does not count
const MOST_PICTURES = 400;
// Kept before anybody visits them; Documentation and what pages fetch themselves are kept once visited.
const OFFERED = ["", "calculator/", "plan/", "numbers/", "how-it-works/", "train-in-this-tab/", "security/", "accuracy/", "tutorial/", "run-your-own/", "live/", "join/", "about/"];

const worker = /** @type {any} */ (self);
const scope = new URL(worker.registration.scope);
const STORE = `offline ${scope.pathname}`; // other sites may live at other paths of this host

/** @typedef {"versioned" | "memory" | "page" | "picture"} Kind */

/**
 * A file's place in this site; undefined for what is never kept.
 * @type {(address: string) => {kind: Kind, key: string, path: string} | undefined}
 */
function placeOf(address) {
  const { origin, pathname } = new URL(address);
  if (origin !== scope.origin || !pathname.startsWith(scope.pathname)) return undefined;
  const path = pathname.slice(scope.pathname.length);
  const key = origin + pathname;
  if (/^assets-[0-9a-f]{12}\/memory$/.test(path)) return { kind: "memory", key, path }; // see memory.js
  if (/^(assets|pyodide)-[0-9a-f]{12}\//.test(path)) return { kind: "versioned", key, path };
  if (/^live\/.+\.(png|webp|jpg)$/.test(path)) return { kind: "picture", key, path };
  if (/^live\/./.test(path)) return undefined;
  if (/(^|\/|\.html|\/search_index\.json|^sitemap\.xml)$/.test(path)) return { kind: "page", key, path };
  return undefined;
}

/** @param {string} key */
async function recall(key) {
  try {
    return await caches.match(key, { cacheName: STORE, ignoreVary: true });
  } catch {
    return undefined; // storage that does not work is as good as empty
  }
}

/** @type {(key: string, response: Response, store?: Cache) => Promise<void>} */
async function keep(key, response, store) {
  if (removed || response.status !== 200 || response.redirected) return;
  try {
    await (store ?? (await caches.open(STORE))).put(key, response);
  } catch {
    // Full storage: the site works as it does without a service worker.
  }
}

let removed = IS_OFF;

/** Remove this service worker and all that it has kept. */
async function remove() {
  removed = true;
  await caches.delete(STORE);
  await worker.registration.unregister();
}

worker.addEventListener("fetch", (/** @type {any} */ event) => {
  const { request } = event;
  const place = placeOf(request.url);
  if (removed || !place || request.method !== "GET" || request.headers.has("range")) return;
  event.respondWith(place.kind === "versioned" ? keptFirst(event, place.key) : newestFirst(event, place.key));
});

/**
 * What lies in a folder named by its content is the same wherever it comes from.
 * @type {(event: any, key: string) => Promise<Response>}
 */
async function keptFirst(event, key) {
  const kept = (await recallCompiled(key)) ?? (await recall(key));
  if (kept) return kept;
  const response = await fetch(event.request);
  event.waitUntil(keep(key, response.clone()));
  return response;
}

/**
 * WebAssembly from the browser's own cache, if it lies there, which asks no network. Chromium keeps
 * the code that it has compiled with the file that it came from: with that one since the first visit,
 * which no service worker saw; with what is kept here, one visit later.
 * @type {(key: string) => Promise<Response | undefined>}
 */
async function recallCompiled(key) {
  if (!key.endsWith(".wasm")) return undefined;
  try {
    const response = await fetch(key, { cache: "only-if-cached", mode: "same-origin" });
    return response.ok ? response : undefined;
  } catch {
    return undefined; // it is no longer there
  }
}

/** @type {(event: any, key: string) => Promise<any>} */
async function newestFirst(event, key) {
  const coming = fetchNewest(event, key);
  coming.catch(() => {}); // reported below, when it is awaited
  const kept = await recall(key);
  if (!kept) return coming.catch((error) => withoutPage(event, error));
  const late = new Promise((resolve) => { setTimeout(resolve, PATIENCE_MS, kept); });
  return Promise.race([coming, late]).then((response) => (response.status < 500 ? response : kept), () => kept);
}

/** @type {(event: any, key: string) => Promise<any>} */
async function fetchNewest(event, key) {
  const response = (await event.preloadResponse) ?? (await fetch(event.request));
  event.waitUntil(keep(key, response.clone()));
  return response;
}

/**
 * The answer for a page that was not kept while there was a network.
 * @type {(event: any, error: unknown) => Response}
 */
function withoutPage({ request }, error) {
  if (request.mode !== "navigate") throw error;
  const title = "No network";
  const text = "There is no network, and your browser has not kept this page. All pages outside Documentation, and those that you have visited, work without one.";
  const home = `<p><a href="${scope.pathname}">Home</a></p>`;
  const body = `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark"><title>${title}</title><body style="font-family:system-ui;max-width:36rem;margin:3rem auto;padding:0 1rem"><h1>${title}</h1><p>${text}</p>${home}</body></html>`;
  return new Response(body, { status: 503, headers: { "Content-Type": "text/html; charset=utf-8" } });
}

// What a page loaded before this service worker was there, or from the browser's own cache.
worker.addEventListener("message", (/** @type {any} */ event) => {
  const { visited, forget } = event.data ?? {};
  if (forget) event.waitUntil(remove());
  if (Array.isArray(visited)) event.waitUntil(keepVisited(visited).then(() => event.source?.postMessage({ kept: BUILD })).then(() => (offering ??= keepOffered())));
});

/** @param {string[]} addresses */
async function keepVisited(addresses) {
  await Promise.all(addresses.map(async (address) => {
    const place = placeOf(address);
    // What is gone, or out of reach now, is kept at the next visit.
    if (place && !(await recall(place.key))) await fetchAndKeep(place.key).catch(() => {});
  }));
  await dropOldPictures();
}

/** @type {Promise<void> | undefined} */
let offering;

/** One after the other, so that they hold up nothing that the visitor asks for. */
async function keepOffered() {
  if (savesData()) return;
  // What goes into a store that another build has deleted meanwhile is gone with it.
  const store = await caches.open(STORE).catch(() => undefined);
  for (const page of OFFERED) {
    if (!store || !(await caches.has(STORE))) return;
    const key = new URL(page, scope).href;
    if (await recall(key)) continue;
    const response = await fetch(key).catch(() => undefined);
    if (response?.status !== 200) return void (offering = undefined); // at the next visit
    for (const address of loadedBy(await response.clone().text(), key)) {
      if (!(await recall(address))) await fetchAndKeep(address, store).catch(() => {});
    }
    await keep(key, response, store);
  }
}

const savesData = () => /** @type {any} */ (navigator).connection?.saveData;

/**
 * What a page has just loaded lies in the browser's own cache, so this asks no server again.
 * @type {(key: string, store?: Cache) => Promise<void>}
 */
async function fetchAndKeep(key, store) {
  await keep(key, await fetch(key, { cache: "force-cache" }), store);
}

async function dropOldPictures() {
  const pictures = (await keptPlaces()).filter(({ kind }) => kind === "picture");
  await Promise.all(pictures.slice(0, -MOST_PICTURES).map(({ key }) => drop(key)));
}

/** All that is kept, the oldest first. */
async function keptPlaces() {
  try {
    const requests = await (await caches.open(STORE)).keys();
    return requests.flatMap(({ url }) => placeOf(url) ?? []);
  } catch {
    return [];
  }
}

/** @param {string} key */
async function drop(key) {
  await (await caches.open(STORE)).delete(key, { ignoreVary: true });
}

// All that a new build does to what is kept, it does while it is installed, and once more when it takes
// over: for the latter a browser may wait for minutes in spite of skipWaiting().
worker.addEventListener("install", (/** @type {any} */ event) => {
  // Nothing that pages of the earlier build load is named as it is in this one: no need to wait.
  // Without a network it fails, the earlier build stays as it is, and the browser tries again.
  event.waitUntil((IS_OFF ? withdraw() : renew().then(dropEarlier)).then(() => worker.skipWaiting()));
});

worker.addEventListener("activate", (/** @type {any} */ event) => {
  event.waitUntil(IS_OFF ? remove() : start());
});

/** As `remove`, but without waiting for an end that cannot come before this service worker is installed. */
async function withdraw() {
  await caches.delete(STORE);
  void worker.registration.unregister();
}

async function start() {
  await worker.registration.navigationPreload?.enable();
  await dropEarlier();
}

/** Fetch this build's forms of what was kept of an earlier one: first what pages load, then they. */
async function renew() {
  if (savesData()) return;
  const places = await keptPlaces();
  const keptNow = new Set(places.map(({ key }) => key));
  const wanted = new Set(places.flatMap(({ kind, path }) => (kind === "versioned" ? inThisBuild(path) : [])));
  const pages = await Promise.all(places.filter(({ kind }) => kind === "page").map(async ({ key }) => {
    const response = await fetch(key, { cache: "no-cache" });
    for (const address of loadedBy(await response.clone().text(), key)) wanted.add(address);
    return { key, response };
  }));
  await Promise.all([...wanted].filter((key) => !keptNow.has(key)).map((key) => fetchAndKeep(key)));
  await Promise.all(pages.map(({ key, response }) => keep(key, response)));
}

/**
 * The address that a file of an earlier build has in this one, if it is still there.
 * @type {(path: string) => string[]}
 */
function inThisBuild(path) {
  const [kind] = path.split("-", 1);
  const folder = FOLDERS.find((name) => name.startsWith(`${kind}-`));
  return folder ? [new URL(path.replace(/^[^/]+/, folder), scope).href] : [];
}

/**
 * Addresses of this build's files in a page's text. Scripts that change their names with their
 * content are found here.
 * @type {(text: string, page: string) => string[]}
 */
function loadedBy(text, page) {
  const found = [...text.matchAll(/(?:href|src)=["']?([^"'\s>]+)/g)].map(([, address]) => address);
  return found.filter((address) => FOLDERS.some((folder) => address.includes(`${folder}/`))).map((address) => new URL(address, page).href);
}

/** Let go of what an earlier build has left, and of its pages that could not be renewed. */
async function dropEarlier() {
  await Promise.allSettled((await keptPlaces()).map(async (place) => {
    if (!(await isOfThisBuild(place))) await drop(place.key);
  }));
}

/** @param {{kind: Kind, key: string, path: string}} place */
async function isOfThisBuild({ kind, key, path }) {
  if (kind === "versioned" || kind === "memory") return FOLDERS.some((folder) => path.startsWith(`${folder}/`));
  if (kind === "picture" || /\.(json|xml)$/.test(path)) return true;
  return (await (await recall(key))?.text())?.includes(`${FOLDERS[0]}/`);
}
