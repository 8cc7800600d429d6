// @ts-check
/* The runs that this site shows, and where their live data lies. */

import { LiveDocument } from "./documents.js";
import * as storage from "./kept.js";
import { isEntry } from "./valid.js";

/** The folder of all runs. */
export const LIVE = new URL("../live/", import.meta.url); // bundled, this is in assets/

const NAME = /^[\w-][\w.-]*$/;

const isIndex = (/** @type {any} */ value) => Array.isArray(value?.runs);

/** True for a name that a run can have. @type {(name: string) => boolean} */
export const isName = (name) => NAME.test(name);

/**
 * The runs that this site shows, the one to show first at the top; empty when there are none.
 * @type {() => Promise<import("./data.js").Entry[]>}
 */
export async function listRuns() {
  const index = new LiveDocument(new URL("runs.json", LIVE), isIndex);
  try {
    await index.read();
    void storage.keep([index]);
  } catch (error) {
    if ((await storage.recall([index])) === undefined) throw error;
  }
  return (/** @type {any} */ (index.value)?.runs ?? []).filter((/** @type {any} */ entry) => isEntry(entry) && isName(entry.name));
}
