// @ts-check
/* The published checkpoints, newest first, each with the sum that tells whether it is the right one. */

import { copyOf, find, findAll, make, write } from "#assets/elements.js";
import { fileOf, quoted, webPage } from "#assets/live/valid.js";
import { count, decimal, momentInWords } from "#assets/live/words.js";

const AT_FIRST = 8;

export class Checkpoints {
  #all = false;
  #drawn = "";
  /** @type {import("#assets/live/data.js").RunData | undefined} */
  #data;

  /**
   * @param {HTMLElement} root
   * @param {(step: number) => void} onPictures asks for a checkpoint's pictures
   */
  constructor(root, onPictures) {
    this.onPictures = onPictures;
    this.section = find(root, "[data-live=checkpoints]");
    this.body = find(this.section, "tbody");
    this.template = find(this.section, "template");
    this.more = find(root, "[data-live=more-checkpoints]");
    this.words = find(root, "[data-live=use-words]");
    this.command = find(root, "[data-live=use-command]");
    this.more.addEventListener("click", () => {
      this.#all = true;
      this.#draw();
      find(this.body.children[AT_FIRST], "button").focus();
    });
  }

  /** @param {import("#assets/live/data.js").RunData} data */
  show(data) {
    this.#data = data;
    this.section.hidden = data.checkpoints.length === 0;
    this.#draw();
  }

  #draw() {
    if (!this.#data) return;
    const { checkpoints, samples, folder } = this.#data;
    const drawn = JSON.stringify([checkpoints, samples.checkpoints.map(({ step }) => step), samples.prompts, folder.href, this.#all]);
    if (drawn === this.#drawn) return;
    this.#drawn = drawn;
    const newestFirst = [...checkpoints].reverse();
    const pictured = new Set(samples.checkpoints.map(({ step }) => step));
    const shown = this.#all ? newestFirst : newestFirst.slice(0, AT_FIRST);
    this.body.replaceChildren(...shown.map((checkpoint) => this.#row(checkpoint, folder, pictured.has(checkpoint.step))));
    this.more.hidden = shown.length === checkpoints.length;
    this.more.textContent = `Show all ${count(checkpoints.length)} checkpoints`;
    const { words, command } = useOf(this.#data, folder.href);
    write(this.words, words);
    write(this.command, command);
  }

  /** @type {(checkpoint: import("#assets/live/data.js").Checkpoint, folder: URL, pictured: boolean) => HTMLElement} */
  #row(checkpoint, folder, pictured) {
    const { step, address, sha256 } = checkpoint;
    const row = copyOf(this.template, rowOf(checkpoint));
    find(row, "code").title = sha256;
    const [copy, see] = findAll(row, "button");
    copy.dataset.copies = sha256;
    copy.ariaLabel = `Copy the SHA-256 of step ${step}`;
    see.ariaLabel = `Samples of step ${step}`;
    see.hidden = !pictured;
    see.addEventListener("click", () => this.onPictures(step));
    const weights = fileOf(address, folder) ?? webPage(address);
    const file = weights ? make("a", { href: weights, rel: "noopener nofollow" }, "weights") : address ? "unusable address" : "not kept";
    find(row, "[data-part=file]").replaceChildren(file);
    return row;
  }
}

/** A checkpoint's row in words. @param {import("#assets/live/data.js").Checkpoint} checkpoint */
export function rowOf({ step, loss, time, sha256 }) {
  return { step: count(step), loss: decimal(loss ?? NaN, 3), time: momentInWords(Date.parse(time)), sum: `${sha256.slice(0, 12)}…` };
}

/**
 * The command that draws with the newest checkpoint, if its file is kept with the run.
 * @param {import("#assets/live/data.js").RunData} data
 * @param {string} folder its address, or in a copy of the source its path
 */
export function useOf({ checkpoints, samples }, folder) {
  const kept = checkpoints.some(({ address }) => address);
  const prompt = quoted(samples.prompts[0] ?? "a red circle");
  const found = URL.canParse(folder) ? "This downloads the newest checkpoint, checks it and draws with it. You can also name a folder or a file." : "In a copy of our code, this checks the newest checkpoint and draws with it.";
  return {
    words: kept ? found : "This run's files are not kept here. Your own rehearsal keeps its newest ones; name its live folder.",
    command: `python -m training generate ${kept ? folder : "LIVE_FOLDER"} ${prompt}`,
  };
}
