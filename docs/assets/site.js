// @ts-check
/* On every page: loads the scripts that the page's elements name, and lets its buttons copy. */

import "./copying.js";
import { keepThisPage, startOffline } from "./offline.js";

/** @type {Set<string | undefined>} */
const loaded = new Set();

/**
 * Load the script of each element `data-script`. A page that was loaded has them in its head
 * already, and a module that is asked for twice runs once. Those in the head that instant navigation
 * brings do not run.
 */
function loadScripts() {
  for (const element of document.querySelectorAll("[data-script]")) {
    const name = /** @type {HTMLElement} */ (element).dataset.script;
    if (loaded.has(name)) continue;
    loaded.add(name);
    const script = document.createElement("script");
    script.type = "module";
    script.src = new URL(`./${name}.js`, import.meta.url).href;
    document.head.append(script);
  }
}

/** Beside each link to a file to download: the same for a terminal, with the address of this site. */
function addCurl() {
  for (const link of /** @type {NodeListOf<HTMLAnchorElement>} */ (document.querySelectorAll("a[data-curl]"))) {
    delete link.dataset.curl;
    const line = link.parentElement?.querySelector(".curl-line");
    if (line) line.textContent = `curl -LO ${link.href}`;
  }
}

/** Instant navigation may bring a page of a newer build: its scripts lie in another folder. */
function isOfAnotherBuild() {
  const icon = /** @type {HTMLLinkElement | null} */ (document.querySelector('link[rel="icon"]'));
  const [folder] = /assets-\w+/.exec(icon?.href ?? "") ?? [];
  return folder !== undefined && !import.meta.url.includes(`/${folder}/`);
}

function mount() {
  if (isOfAnotherBuild()) return location.reload();
  loadScripts();
  addCurl();
  keepThisPage();
}

startOffline();
// Material's instant navigation replaces the content and emits each new document.
const documents = /** @type {any} */ (globalThis).document$;
if (documents) documents.subscribe(mount);
else mount();
