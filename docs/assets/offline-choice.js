// @ts-check
/* Whether this site may keep pages and data in the browser, and under which names. */

const ROOT = new URL("../", import.meta.url); // bundled, this is in assets/

/** The service worker's address. */
export const SCRIPT = new URL("service-worker.js", ROOT);
export const SCOPE = ROOT;
/** Names of what is kept; other sites may live at other paths of this host. */
export const STORE = `offline ${ROOT.pathname}`; // as service-worker.js has it
export const LIVE_STORE = `live ${ROOT.pathname}`;

const CHOICE = `${ROOT.pathname}offline`;
const NO = "no";
/** Whether the site was built without a service worker: OFFLINE=0. */
export const IS_OFF = /** @type {any} */ (globalThis).OFFLINE === "0";

/** Whether this browser can keep pages, and the visitor's choice. */
export function isPossible() {
  try {
    return !IS_OFF && "serviceWorker" in navigator && "caches" in globalThis && localStorage.length >= 0;
  } catch {
    return false;
  }
}

/** Whether pages and data are to be kept: yes, unless the visitor has chosen otherwise. */
export function isWanted() {
  try {
    return !IS_OFF && localStorage.getItem(CHOICE) !== NO;
  } catch {
    return false; // a browser that blocks storage
  }
}

/** @param {boolean} wanted */
export function choose(wanted) {
  if (wanted) localStorage.removeItem(CHOICE);
  else localStorage.setItem(CHOICE, NO);
}
