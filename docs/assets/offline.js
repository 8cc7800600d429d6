// @ts-check
/*
 * The page's side of the service worker: registers it once the page is there and rests, and tells it
 * what was loaded before. A browser without service workers, one that blocks them and a full disk
 * leave the site as it is without them.
 */

import { choose, isPossible, isWanted, LIVE_STORE, SCOPE, SCRIPT, STORE } from "./offline-choice.js";

const REST_MS = 2000; // after the page has loaded
const MOST_RESTS = 30; // a start of Python that takes a minute holds this up no longer

/** All addresses that this page has loaded, and those that the service worker knows. @type {Set<string>} */
const visited = new Set();
/** @type {Set<string>} */
const told = new Set();
let telling = false;
/** @type {Promise<ServiceWorkerRegistration | undefined> | undefined} */
let registered;

/** Keep this page, what it loads and what it will load. */
export function keepThisPage() {
  note([location.origin + location.pathname]);
  mountSwitch();
}

/** Start, once for all pages that instant navigation brings. */
export function startOffline() {
  addEventListener("python", (event) => note(/** @type {CustomEvent<string[]>} */ (event).detail));
  new PerformanceObserver((list) => note(list.getEntries().map(({ name }) => name))).observe({ type: "resource", buffered: true });
  if (document.readyState === "complete") rest(0);
  else addEventListener("load", () => rest(0), { once: true });
}

/** @param {number} rests How often this has waited already. */
function rest(rests) {
  setTimeout(() => {
    // What is kept is read once more, when Python needs the connection and the processor.
    if ("starting" in document.documentElement.dataset && rests < MOST_RESTS) return rest(rests + 1);
    telling = true;
    void tell();
  }, REST_MS);
}

/** @param {string[]} addresses */
function note(addresses) {
  for (const address of addresses) visited.add(address);
  if (telling) void tell();
}

async function tell() {
  const news = [...visited].filter((address) => address.startsWith(SCOPE.href) && !told.has(address));
  if (!news.length) return;
  for (const address of news) told.add(address);
  try {
    if (!isWanted()) return void (await forget());
    registered ??= register();
    (await registered)?.active?.postMessage({ visited: news });
  } catch {
    // Blocked or full: the site works as without it.
  }
}

/** The service worker's registration, once it runs. */
async function register() {
  navigator.serviceWorker?.addEventListener("message", showKept);
  const registration = await navigator.serviceWorker?.register(SCRIPT, { updateViaCache: "none" });
  const coming = registration?.installing ?? registration?.waiting;
  if (!registration || registration.active || !coming) return registration;
  return new Promise((resolve) => {
    coming.addEventListener("statechange", () => {
      if (["activated", "redundant"].includes(coming.state)) resolve(registration);
    });
  });
}

/** @param {MessageEvent} event */
function showKept({ data }) {
  if (!data?.kept) return;
  document.documentElement.dataset.kept = data.kept;
  dispatchEvent(new Event("kept")); // see python.js
}

/** Remove the service worker and everything that this site has kept, the live data included. */
async function forget() {
  registered = undefined;
  delete document.documentElement.dataset.kept;
  dispatchEvent(new Event("forgotten"));
  const registration = await navigator.serviceWorker?.getRegistration(SCOPE);
  if (registration?.scope === SCOPE.href) {
    registration.active?.postMessage({ forget: true });
    await registration.unregister();
  }
  await Promise.all([STORE, LIVE_STORE].map((name) => globalThis.caches?.delete(name)));
}

/** The box by which a visitor chooses whether pages are kept. */
function mountSwitch() {
  const box = document.querySelector("[data-offline]");
  if (!(box instanceof HTMLInputElement) || !isPossible()) return;
  box.checked = isWanted();
  /** @type {HTMLElement} */ (box.closest("[hidden]"))?.removeAttribute("hidden");
  box.addEventListener("change", () => {
    choose(box.checked);
    told.clear();
    void (box.checked ? tell() : forget().catch(() => {}));
  });
}
