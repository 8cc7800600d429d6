// @ts-check
/*
 * What comes from outside is taken only as far as it is what it should be: a run's files are
 * written by its monitor, whose names, captions and addresses come from others.
 */

const ID = /^[\w-]{1,128}$/;
const SUM = /^[0-9a-f]{64}$/i;

const isText = (/** @type {any} */ value) => typeof value === "string";
const isCount = (/** @type {any} */ value) => Number.isFinite(value) && value >= 0;
const isTime = (/** @type {any} */ value) => isText(value) && !Number.isNaN(Date.parse(value));
const isAbsent = (/** @type {any} */ value) => value === undefined || value === null;
const isObject = (/** @type {any} */ value) => typeof value === "object" && value !== null && !Array.isArray(value);

/**
 * The address of a file of the run: inside its folder; nothing that an address can also be, such
 * as a script, another server or a way out of the folder.
 * @type {(path: unknown, folder: URL) => string | undefined}
 */
export function fileOf(path, folder) {
  if (typeof path !== "string" || !path || !URL.canParse(path, folder.href)) return undefined;
  const address = new URL(path, folder);
  const isInside = address.origin === folder.origin && address.pathname.startsWith(folder.pathname);
  // A browser reads "%2e%2e" as "..", some servers read "%2f" and "\" as "/".
  return isInside && !/%2f|%5c|\\/i.test(path) ? address.href : undefined;
}

/**
 * The address of a page elsewhere: http(s) as it is written, without a name and password in it.
 * @type {(text: unknown) => string | undefined}
 */
export function webPage(text) {
  if (typeof text !== "string" || !/^https?:\/\/[^\\\s]+$/i.test(text) || !URL.canParse(text)) return undefined;
  const address = new URL(text);
  return address.username || address.password ? undefined : address.href;
}

/** A text as one word of a shell's command. @type {(text: string) => string} */
export const quoted = (text) => `'${text.replaceAll("'", `'\\''`)}'`;

/** @param {any} points */
const isLine = (points) => Array.isArray(points) && points.length > 0 && points.every((point) => Array.isArray(point) && point.length === 2 && point.every(Number.isFinite));

/** @param {any} card */
export const isCard = (card) =>
  isObject(card) && ["name", "title", "recipe", "start", "join"].every((name) => isText(card[name])) &&
  Number.isFinite(card.parameters) && isObject(card.schedule) &&
  ["total_steps", "warmup_steps", "target_batch_size", "learning_rate"].every((name) => Number.isFinite(card.schedule[name])) && (isAbsent(card.schedule.corners) || isLine(card.schedule.corners)) &&
  (isAbsent(card.finished) || isTime(card.finished)) && (isAbsent(card.links) || isObject(card.links)) &&
  (isAbsent(card.tab) || (webPage(card.tab.address) && isCount(card.tab.memory_bytes) && isCount(card.tab.most_bytes))) &&
  (isAbsent(card.compressed) || (Array.isArray(card.compressed) && card.compressed.every(isText)));

/** @param {any} peer */
export const isPeer = (peer) =>
  isObject(peer) && isText(peer.id) && ID.test(peer.id) && [peer.name, peer.state].every(isText) &&
  [peer.samples, peer.seconds, peer.steps].every(isCount) &&
  [peer.bytes_sent, peer.bytes_received].every((size) => isAbsent(size) || isCount(size)) && [peer.first_seen, peer.last_seen].every(isTime);

/** @param {any} one */
export const isCheckpoint = (one) =>
  isObject(one) && Number.isInteger(one.step) && (isAbsent(one.loss) || Number.isFinite(one.loss)) && isTime(one.time) &&
  (isAbsent(one.address) || isText(one.address)) && isText(one.sha256) && SUM.test(one.sha256);

/** @param {any} one A checkpoint of samples.json: for each prompt a list of pictures, or of texts. */
export const isDrawn = (one) =>
  isObject(one) && Number.isInteger(one.step) && isTime(one.time) &&
  (isAbsent(one.texts) ? isRows(one.images) : isAbsent(one.images) && isRows(one.texts));

/** @param {any} rows */
const isRows = (rows) => Array.isArray(rows) && rows.every((row) => Array.isArray(row) && row.every(isText));

/** @param {any} entry A run of runs.json. */
export const isEntry = (entry) => isObject(entry) && [entry.name, entry.title].every(isText) && (isAbsent(entry.note) || isText(entry.note));
