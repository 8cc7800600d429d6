// @ts-check
/* A volunteer of a real run in a worker of its own: see volunteer/rounds.js. */

import { Host } from "./volunteer/host.js";
import { newKey } from "./volunteer/identity.js";
import { recall, remember } from "./volunteer/memory.js";
import { RoundsVolunteer } from "./volunteer/rounds.js";

/** @typedef {{kind: "begin", address: string, run: string, name: string} | {kind: "stop"}} Order */
/** @typedef {import("./volunteer/rounds.js").News | {kind: "stopped"} | {kind: "failed", message: string}} News */

/** @type {RoundsVolunteer | undefined} */
let volunteer;
let isStopped = false;

/** @param {News} news */
const tell = (news) => postMessage(news);

addEventListener("message", ({ data }) => {
  const order = /** @type {Order} */ (data);
  if (order.kind === "begin") return void begin(order);
  isStopped = true;
  volunteer?.stop();
});

/** @param {Extract<Order, {kind: "begin"}>} order */
async function begin({ address, run, name }) {
  try {
    const host = new Host(address);
    const about = await host.about();
    if (about.run !== run) throw new Error(`the host serves another run, ${about.run}`);
    const slot = `${run} ${await takeSlot(run)}`;
    const kept = await recall(slot).catch(() => undefined); // no storage: nothing is resumed
    const memory = kept ?? { key: await newKey(), samples: 0, rounds: 0 };
    volunteer = new RoundsVolunteer(host, about, name, memory, tell);
    if (isStopped) volunteer.stop();
    await volunteer.train(() => remember(slot, memory).catch(() => {}));
    if (isStopped) tell({ kind: "stopped" });
  } catch (error) {
    tell({ kind: "failed", message: /** @type {Error} */ (error).message });
  }
}

/**
 * The first place that no other tab of this browser has: each is a volunteer with a key of its own.
 * @type {(run: string) => Promise<number>}
 */
async function takeSlot(run) {
  for (let slot = 0; ; slot += 1) {
    const isOurs = await new Promise((resolve) => {
      void navigator.locks.request(`${run} ${slot}`, { ifAvailable: true }, (lock) => {
        resolve(lock !== null);
        return lock && new Promise(() => {}); // until this worker ends
      });
    });
    if (isOurs) return slot;
  }
}
