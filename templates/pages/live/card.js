// @ts-check
/* A picture of the run to share, made in the page: it is sent nowhere before a visitor sends it. */

import { cardOf, HEIGHT, inWords, paint, WIDTH } from "./card-picture.js";
import { make } from "#assets/elements.js";
import { ranked } from "./people.js";

const SITE_NAME = 'meta[property="og:site_name"]';

export class ShareCard {
  /** @type {import("#assets/live/data.js").RunData | undefined} */
  #data;
  #now = 0;
  /** @type {File | undefined} */
  #file;

  /**
   * @param {HTMLElement} root
   * @param {() => string | undefined} whose the key of the contributor whose part is shown
   */
  constructor(root, whose) {
    const find = (/** @type {string} */ name) => /** @type {HTMLElement} */ (root.querySelector(`[data-live="${name}"]`));
    this.whose = whose;
    this.dialog = /** @type {HTMLDialogElement} */ (find("card"));
    this.place = find("card-picture");
    this.download = /** @type {HTMLAnchorElement} */ (find("card-download"));
    this.share = find("card-share");
    this.hint = find("card-hint");
    find("make-card").addEventListener("click", () => void this.#open());
    find("card-close").addEventListener("click", () => this.dialog.close());
    this.share.addEventListener("click", () => void this.#share());
    this.dialog.addEventListener("close", () => URL.revokeObjectURL(this.download.href));
  }

  /**
   * @param {import("#assets/live/data.js").RunData} data
   * @param {number} now the server's time, milliseconds since 1970
   */
  show(data, now) {
    this.#data = data;
    this.#now = now;
  }

  async #open() {
    if (!this.#data) return;
    const people = ranked(this.#data.peers);
    const who = this.whose();
    const site = /** @type {HTMLMetaElement | null} */ (document.querySelector(SITE_NAME))?.content ?? "";
    const address = location.host + location.pathname;
    const card = cardOf(this.#data, people.find(({ id }) => id === who), people, { site, address, now: this.#now });
    const canvas = document.createElement("canvas");
    paint(canvas, card);
    const blob = await new Promise((/** @type {BlobCallback} */ resolve) => {
      canvas.toBlob(resolve);
    });
    if (!blob) return;
    this.#file = new File([blob], `${this.#data.name}-${this.#data.progress.step.at(-1) ?? 0}.png`, { type: blob.type });
    this.download.removeAttribute("aria-disabled");
    this.download.href = URL.createObjectURL(this.#file);
    this.download.download = this.#file.name;
    const size = { width: String(WIDTH), height: String(HEIGHT) };
    this.place.replaceChildren(make("img", { src: this.download.href, alt: inWords(card), ...size }));
    this.hint.hidden = Boolean(card.part);
    this.share.hidden = !navigator.canShare?.({ files: [this.#file] });
    this.dialog.showModal();
  }

  async #share() {
    if (!this.#file || !this.#data) return;
    try {
      await navigator.share({ files: [this.#file], title: this.#data.card?.title, url: location.href });
      this.dialog.close();
    } catch {
      // Whoever changed their mind, or has no app that takes it, can still download the picture.
    }
  }
}
