// @ts-check
/* A run in a few figures and sentences, at the top of its page and in its last section. */

import { about, countedBy, done, joinHeading, keyFigures, lengthInWords } from "#assets/live/figures.js";
import { find, make, write } from "#assets/elements.js";
import { describe } from "#assets/live/status.js";
import { webPage } from "#assets/live/valid.js";
import { ageInWords, count, momentInWords } from "#assets/live/words.js";

/** @typedef {import("#assets/live/data.js").RunData} RunData */

export class Overview {
  #announced = "";

  /** @param {HTMLElement} root */
  constructor(root) {
    this.root = root;
  }

  /** @param {Record<string, string>} texts */
  #write(texts) {
    for (const [name, text] of Object.entries(texts)) write(find(this.root, `[data-live="${name}"]`), text);
  }

  /** All figures. @type {(data: RunData, now: number) => void} */
  show(data, now) {
    this.#showFigures(data);
    this.#showCard(data);
    this.tick(data, now);
  }

  /**
   * Updates what changes with time: the run's state and the age of its data.
   * @type {(data: RunData, now: number) => void}
   */
  tick(data, now) {
    if (!data.loaded && !data.outage) return;
    const state = data.loaded || data.card ? describe(data, now) : undefined;
    const place = find(this.root, ".live__state");
    place.dataset.state = state?.kind ?? "unknown";
    const sentence = state?.sentence ?? "Unknown";
    this.#write({ state: sentence, detail: state?.detail ?? "", left: lengthInWords(data, state?.kind) });
    find(this.root, "[data-live=state]").dataset.state = state?.kind ?? "";
    this.#announce(state?.kind === "silent" ? "The run is silent." : data.outage ? "The server does not respond." : `${sentence}.`);
    this.#showProblems(data);
  }

  /** Announces only what is worth interrupting a screen reader's user. @type {(sentence: string) => void} */
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
    this.#write({ problems: sentences.join(" ") });
  }

  /** @param {RunData} data */
  #showFigures(data) {
    this.#write(keyFigures(data));
    const { share, words } = done(data);
    const bar = find(this.root, "[data-live=progress]");
    bar.style.setProperty("--done", String(share));
    bar.setAttribute("aria-label", words);
  }

  /** @param {RunData} data */
  #showCard({ card, name, folder }) {
    if (!card) return;
    /** @type {HTMLAnchorElement} */ (find(this.root, "[data-live=feed]")).href = new URL("feed.xml", folder).href;
    const list = find(this.root, "[data-live=about]");
    list.replaceChildren(
      ...about(card, name).map(([label, words]) => make("div", {}, make("dt", {}, label), make("dd", {}, words))),
      ...safeLinks(card.links).map(([label, address]) =>
        make("div", {}, make("dt", {}, "Link"), make("dd", {}, make("a", { href: address, rel: "noopener nofollow" }, label)))),
    );
    this.#write({ join: card.join, "join-heading": joinHeading(card), "counted-by": countedBy(card) });
  }
}

/**
 * Links that lead to a web page; other addresses in a run file are ignored.
 * @type {(links: Record<string, string>) => [string, string][]}
 */
function safeLinks(links) {
  return Object.entries(links ?? {}).flatMap(([label, text]) => {
    const address = webPage(text);
    return address ? [/** @type {[string, string]} */ ([label, address])] : [];
  });
}
