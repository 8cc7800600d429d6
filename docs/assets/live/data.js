// @ts-check
/* What a run's live data is: the files of training/run/live.py, in live/RUN/ beside the pages. */

/** @typedef {{name: string, title: string, note: string}} Entry A run in runs.json, the one to show first at the top. */
/**
 * @typedef {object} Card What run.json says.
 * @property {string} name
 * @property {string} title
 * @property {string} recipe
 * @property {number} parameters
 * @property {{total_steps: number, warmup_steps: number, target_batch_size: number, learning_rate: number, round_seconds?: number, corners?: [number, number][]}} schedule
 *     corners: steps between which the learning rate is a straight line, and its value there; absent in runs of before this was noted
 * @property {string} start
 * @property {string} join
 * @property {Record<string, string>} links
 * @property {string | null} finished
 * @property {string[]} [compressed] Names of the files that also lie there as NAME.gz; absent in runs of before there were any.
 * @property {string} [notice] The organizers' notice, such as that no volunteer accepts connections.
 * @property {{address: string, memory_bytes: number, most_bytes: number} | null} [tab] Whether a tab can join: where, with how much memory by the calculator, of how much; absent or null: it cannot.
 */
/**
 * @typedef {object} Contributor
 * @property {string} id
 * @property {string} name
 * @property {number} samples
 * @property {number} seconds
 * @property {string} first_seen
 * @property {string} last_seen
 * @property {string} state
 * @property {number} steps
 * @property {Record<string, unknown> | null} [milestones]
 * @property {number | null} [bytes_sent] absent in runs of before this was noted
 * @property {number | null} [bytes_received]
 */
/** @typedef {{step: number, loss: number | null, time: string, address: string | null, sha256: string, drawing?: unknown, drawing_sha256?: unknown, drawing_bytes?: unknown}} Checkpoint drawing: see drawing.js */
/** @typedef {{prompts: string[], checkpoints: {step: number, time: string, images: string[][], texts: string[][]}[]}} Samples One of the two lists is empty. */
/** @typedef {{since: number, reason: string, next: number}} Outage The time since which nothing could be read, and the time of the next try. */

/**
 * @typedef {object} RunData
 * @property {string} name
 * @property {URL} folder
 * @property {Card | undefined} card undefined: there is no run.json (yet)
 * @property {import("./progress.js").Progress} progress
 * @property {Contributor[]} peers
 * @property {Checkpoint[]} checkpoints
 * @property {Samples} samples
 * @property {string[]} broken names of the files that cannot be read now
 * @property {Record<string, number>} refused entries left out of a file, since they are not what they should be
 * @property {boolean} loaded whether everything has been asked for once
 * @property {Outage | undefined} outage
 * @property {number | undefined} kept when the browser kept what is shown, milliseconds since 1970; undefined for data from the server
 * @property {number} offset the server's clock minus this device's, milliseconds
 */

export {}; // types only
