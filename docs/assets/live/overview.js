// @ts-check
/* A run in a few figures and sentences, at the top of its page and in its last section. */

import { timeLeft } from "./forecast.js";
import { make, write } from "./markup.js";
import { describe } from "./status.js";
import { cumulative, growing } from "./series.js";
import { webPage } from "./valid.js";
import { ageInWords, bytes, count, decimal, duration, momentInWords } from "./words.js";

/** @typedef {import("./data.js").RunData} RunData */

const RECENT = 20; // steps that count as recent

/** @param {number[]} values */
const sum = (values) => cumulative(values).at(-1) ?? 0;

export class Overview {
  #announced = "";

  /** @param {HTMLElement} root */
  constructor(root) {
    this.root = root;
  }

  /** @param {string} name */
  #find(name) {
    return /** @type {HTMLElement | null} */ (this.root.querySelector(`[data-live="${name}"]`));
  }

  /** @param {Record<string, string>} texts */
  #write(texts) {
    for (const [name, text] of Object.entries(texts)) write(this.#find(name), text);
  }

  /**
   * All figures.
   *
   * @param {RunData} data
   * @param {number} now
   */
  show(data, now) {
    this.#showFigures(data);
    this.#showCard(data);
    this.tick(data, now);
  }

  /**
   * Updates what changes with time: the run's state and the age of its data.
   *
   * @param {RunData} data
   * @param {number} now
   */
  tick(data, now) {
    if (!data.loaded && !data.outage) return;
    const state = data.loaded || data.card ? describe(data, now) : undefined;
    const place = /** @type {HTMLElement} */ (this.root.querySelector(".live__state"));
    place.dataset.state = state?.kind ?? "unknown";
    const sentence = state?.sentence ?? "Unknown";
    this.#write({ state: sentence, detail: state?.detail ?? "", left: lengthInWords(data, state?.kind) });
    /** @type {HTMLElement} */ (this.#find("state")).dataset.state = state?.kind ?? "";
    this.#announce(state?.kind === "silent" ? "The run is silent." : data.outage ? "The server does not respond." : `${sentence}.`);
    this.#showProblems(data);
  }

  /**
   * Announces only what is worth interrupting a screen reader's user.
   *
   * @param {string} sentence
   */
  #announce(sentence) {
    if (sentence === this.#announced) return;
    // The first state is on the page already.
    if (this.#announced) this.#write({ announcement: sentence });
    this.#announced = sentence;
  }

  /** @param {RunData} data */
  #showProblems({ outage, kept, broken, refused, progress, loaded }) {
    const sentences = [];
    if (outage) {
      const wait = Math.max(0, (outage.next - Date.now()) / 1000);
      const old = kept ? ` The figures shown are those that your browser kept on ${momentInWords(kept)}.` : loaded ? ` The figures shown are at least ${ageInWords((Date.now() - outage.since) / 1000)} old.` : "";
      sentences.push(`The page cannot read new data: ${outage.reason}. Next try in ${ageInWords(wait)}.${old}`);
    }
    if (progress.broken) {
      sentences.push(`${count(progress.broken)} ${progress.broken === 1 ? "line" : "lines"} of progress.jsonl could not be read and ${progress.broken === 1 ? "was" : "were"} skipped.`);
    }
    for (const name of broken) sentences.push(`${name} cannot be read at the moment; the page shows its earlier contents.`);
    for (const [name, number] of Object.entries(refused)) {
      if (number) sentences.push(`${count(number)} ${number === 1 ? "entry" : "entries"} of ${name} could not be used and ${number === 1 ? "was" : "were"} skipped.`);
    }
    const back = progress.returns.at(-1);
    if (back) sentences.push(`The run returned from step ${count(back.from)} to before step ${count(back.to)} on ${momentInWords(back.time)}.`);
    const place = /** @type {HTMLElement} */ (this.#find("problems"));
    place.hidden = sentences.length === 0;
    write(place, sentences.join(" "));
  }

  /** @param {RunData} data */
  #showFigures({ progress, card }) {
    const last = progress.length - 1;
    const { figures, step } = progress;
    const at = (/** @type {import("./progress.js").Figure} */ name) => figures[name][last] ?? NaN;
    const moved = figures.bytes_sent.map((sent, index) => sent + figures.bytes_received[index]);
    const before = Math.max(0, last - RECENT);
    const seconds = (progress.time[last] - progress.time[before]) / 1000 || NaN;
    const finished = Boolean(card?.finished);
    this.#write({
      step: last < 0 ? "0" : count(step[last]),
      total_steps: count(card?.schedule.total_steps ?? NaN),
      loss: decimal(at("loss"), 3),
      loss_before: last > 0 ? `${decimal(figures.loss[before], 3)} at step ${count(step[before])}` : "",
      "working-label": finished ? "Volunteers at the end" : "Volunteers now",
      working: last < 0 ? "0" : count(at("training") + at("syncing")),
      others: last < 0 ? "" : `${count(at("syncing"))} of them syncing, ${count(at("left"))} left earlier`,
      samples_per_second: decimal(sum(figures.samples.slice(before + 1)) / seconds, 1),
      samples: count(sum(figures.samples)),
      traffic: bytes(sum(moved)),
      traffic_step: bytes(sum(moved.slice(-RECENT)) / Math.min(RECENT, moved.length)),
    });
    const share = card ? Math.min(1, (step[last] ?? 0) / card.schedule.total_steps) : 0;
    const bar = /** @type {HTMLElement} */ (this.#find("progress"));
    bar.style.setProperty("--done", String(share));
    bar.setAttribute("aria-label", `${(100 * share).toFixed(0)} % of the steps are done`);
  }

  /** @param {RunData} data */
  #showCard({ card, name, folder }) {
    if (!card) return;
    /** @type {HTMLAnchorElement} */ (this.#find("feed")).href = new URL("feed.xml", folder).href;
    const { schedule } = card;
    const rows = [
      ["Recipe", card.recipe],
      ["Parameters", count(card.parameters)],
      schedule.round_seconds
        ? ["Computing per step", `${schedule.round_seconds} s by each volunteer`]
        : ["Sequences per step", count(schedule.target_batch_size)],
      ["Schedule", `${count(schedule.total_steps)} steps, ${count(schedule.warmup_steps)} of warm-up`],
      ["Peak learning rate", String(schedule.learning_rate)],
      ["Started", momentInWords(Date.parse(card.start))],
      ...(card.finished ? [["Finished", momentInWords(Date.parse(card.finished))]] : []),
      ["Data", name],
    ];
    const about = /** @type {HTMLElement} */ (this.#find("about"));
    about.replaceChildren(
      ...rows.map(([label, words]) => make("div", {}, make("dt", {}, label), make("dd", {}, words))),
      ...safeLinks(card.links).map(([label, address]) =>
        make("div", {}, make("dt", {}, "Link"), make("dd", {}, make("a", { href: address, rel: "noopener nofollow" }, label)))),
    );
    this.#write({ join: card.join, "join-heading": card.finished ? "Do the same yourself" : "Join this run" });
  }
}

/**
 * The time that a run took, or the time that one in progress still needs; empty if neither is known.
 *
 * @param {RunData} data
 * @param {import("./status.js").Kind} [kind]
 */
function lengthInWords({ card, progress }, kind) {
  if (card?.finished) return `It took ${duration((Date.parse(card.finished) - Date.parse(card.start)) / 1000)}.`;
  if (!card || kind !== "running") return "";
  const found = timeLeft(growing(progress.time), card.schedule.total_steps - progress.step[progress.length - 1]);
  if (!found) return "";
  const [about, low, high] = [found.seconds, found.low, found.high].map(ageInWords);
  return `About ${about} left: ${low} at the fastest pace so far, ${high} at the slowest.`;
}

/**
 * Links that lead to a web page; other addresses in a run file are ignored.
 *
 * @param {Record<string, string>} links
 * @returns {[string, string][]}
 */
function safeLinks(links) {
  return Object.entries(links ?? {}).flatMap(([label, text]) => {
    const address = webPage(text);
    return address ? [/** @type {[string, string]} */ ([label, address])] : [];
  });
}
