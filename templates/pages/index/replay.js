// @ts-check
/* A run that is over, played again: who was there, how far it was, what it drew by then. */

import { firstAtLeast } from "#assets/live/progress.js";

const DURATION_MS = 40_000;
const EXCHANGE_MS = 420;
// After a pause of the browser's own, go on where it was.
const LONGEST_FRAME_MS = 100;

export class Replay {
  #at = 1; // share of the run, the end at first
  #frame = 0;
  #before = 0;
  #sinceExchange = 0;

  /**
   * @param {import("./swarm.js").Swarm} swarm
   * @param {import("#assets/live/data.js").RunData} data
   */
  constructor(swarm, data) {
    this.swarm = swarm;
    this.data = data;
    const { time } = data.progress;
    this.start = time[0];
    this.length = time[time.length - 1] - this.start;
    this.peers = new Map(data.peers.map((peer) => [peer.id, peer]));
  }

  /** Show the button, and the run's end as it was built. */
  offer() {
    if (!(this.length > 0)) return;
    this.swarm.place(this.data.peers);
    this.#show();
    const { play, words } = this.swarm;
    const speed = Math.round(this.length / DURATION_MS);
    words.source.textContent += ` Replayed at ${speed} times its speed.`;
    play.hidden = false;
    play.addEventListener("click", () => (this.#frame ? this.pause() : this.run()));
  }

  /** Play once the figure is seen for the first time. */
  playWhenSeen() {
    if (!(this.length > 0)) return;
    const watch = new IntersectionObserver(([entry]) => {
      if (!entry.isIntersecting) return;
      watch.disconnect();
      this.run();
    }, { threshold: 0.5 });
    watch.observe(this.swarm.drawing);
  }

  run() {
    if (this.#at >= 1) this.#at = 0;
    this.#before = performance.now();
    this.swarm.play.textContent = "Pause";
    this.#frame = requestAnimationFrame(this.#advance);
  }

  pause() {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    this.swarm.play.textContent = this.#at >= 1 ? "Replay" : "Resume";
  }

  #advance = (/** @type {number} */ now) => {
    if (!this.swarm.figure.isConnected) return;
    const passed = Math.min(LONGEST_FRAME_MS, Math.max(0, now - this.#before));
    this.#before = now;
    this.#at = Math.min(1, this.#at + passed / DURATION_MS);
    this.#show();
    this.#sinceExchange += passed;
    if (this.#sinceExchange > EXCHANGE_MS && !matchMedia("(prefers-reduced-motion: reduce)").matches) {
      this.#sinceExchange = 0;
      this.swarm.exchange(2);
    }
    if (this.#at >= 1) return this.pause();
    this.#frame = requestAnimationFrame(this.#advance);
  };

  /** The run at the present moment. */
  #show() {
    const { data, swarm } = this;
    const over = this.#at >= 1;
    const time = this.start + this.#at * this.length;
    const index = over ? data.progress.length - 1 : Math.max(0, firstAtLeast(data.progress.time, time) - 1);
    swarm.setStates(({ id }) => {
      const peer = this.peers.get(id);
      if (!peer || over) return peer?.state ?? "left";
      if (Date.parse(peer.first_seen) > time) return "away";
      return peer.state === "left" && Date.parse(peer.last_seen) < time ? "left" : "training";
    });
    swarm.showStep(data, index);
    swarm.showPicture(data, over ? Infinity : time);
  }
}
