// @ts-check
/* What pages and workers both know of the memory that is kept, and of workers that make or avoid it. */

/** Where it is kept; service-worker.js knows it too. */
export const ADDRESS = new URL("./memory", import.meta.url).href;
/** A worker that starts without it: an earlier worker of this page was lost. */
export const FRESH = "fresh";
/** A worker that answers nothing: it starts, keeps its memory for the next visit, and ends. */
export const MAKER = "memory";
