// @ts-check
/*
 * The live page: reads a run's data while it grows and hands it to those who show it. The markup
 * is rendered when the site is built, with the run that ships with it.
 *
 *     live/?run=NAME          a run; without a name, the first of live/runs.json
 *     live/?run=NAME&who=KEY  a contributor's page
 */

import { ShareCard } from "./card.js";
import { Charts } from "./charts.js";
import { Checkpoints } from "./checkpoints.js";
import { ContributorPage } from "./contributor.js";
import { DrawingBox } from "./drawing.js";
import { eventsOf, listEvents } from "./events.js";
import { follow } from "#assets/live/feed.js";
import { FindMe } from "./find.js";
import { listRuns } from "#assets/live/runs.js";
import { Leaderboard } from "./leaderboard.js";
import { make, mountEach, write } from "#assets/elements.js";
import { Overview } from "./overview.js";
import { Pictures } from "./pictures.js";
import { Reader } from "./reader.js";
import { TrainingBox } from "./training.js";
import { nextTurn } from "#assets/live/turns.js";

/** @typedef {import("#assets/live/data.js").RunData} RunData */

class LivePage {
  /** @type {ReturnType<typeof follow> | undefined} */
  #feed;
  /** @type {import("#assets/live/data.js").Entry[]} */
  #entries = [];
  #run = "";
  #who = "";
  #title = document.title;

  /** @param {HTMLElement} root */
  constructor(root) {
    this.root = root;
    this.find = (/** @type {string} */ name) => /** @type {HTMLElement} */ (root.querySelector(`[data-live="${name}"]`));
    this.controls = /** @type {HTMLFormElement} */ (root.querySelector("#live-charts"));
    this.overview = new Overview(root);
    this.pictures = new Pictures(root);
    this.drawing = new DrawingBox(root);
    this.training = new TrainingBox(root);
    this.contributor = new ContributorPage(root);
    this.checkpoints = new Checkpoints(root, (step) => this.pictures.choose(step));
    this.leaderboard = new Leaderboard(root, (who) => this.#addressOf(this.#run, who));
    this.findMe = new FindMe(root, (who) => this.#addressOf(this.#run, who));
    this.card = new ShareCard(root, () => this.#who || this.findMe.found?.id);
    this.reader = new Reader(root, (index) => this.charts.point(index));
    this.charts = new Charts(root, {
      onZoom: (zoomed) => (this.find("zoom-out").hidden = !zoomed),
      onPoint: (index) => this.reader.point(index),
      onMissing: () => (this.find("charts-missing").hidden = false),
    });
    this.#listen();
    this.clock = setInterval(() => this.#tick(), 1000);
  }

  async start() {
    try {
      this.#entries = await listRuns();
    } catch {
      // The run that the page was built with has the same name; whether it answers is seen next.
    }
    this.#route();
  }

  stop() {
    clearInterval(this.clock);
    this.#feed?.stop();
    this.charts.stop();
    this.drawing.stop();
    this.training.stop();
    this.pictures.stop();
    removeEventListener("popstate", this.#route);
  }

  #listen() {
    addEventListener("popstate", this.#route);
    this.root.addEventListener("click", (event) => this.#click(event), { capture: true });
    this.controls.addEventListener("input", () => this.#look());
    this.controls.addEventListener("submit", (event) => event.preventDefault());
    // The box of the traffic chart stands beside the chart, outside of its form's element.
    this.root.querySelector("[name=total]")?.addEventListener("input", () => this.#look());
    this.find("zoom-out").addEventListener("click", () => {
      this.#look();
      /** @type {HTMLElement} */ (this.controls.elements.namedItem("part")).focus();
    });
  }

  /** Show what the address asks for. */
  #route = () => {
    if (!this.root.isConnected) return this.stop();
    const asked = new URLSearchParams(location.search);
    const run = asked.get("run") || this.#entries[0]?.name || this.root.dataset.run || "";
    this.#who = asked.get("who") ?? "";
    this.root.dataset.view = this.#who ? "contributor" : "run";
    if (run !== this.#run) this.#follow(run);
    else if (this.#feed) this.#show(this.#feed.data);
  };

  /** @param {string} run */
  #follow(run) {
    this.#feed?.stop();
    this.#feed = undefined;
    this.#run = run;
    this.#showRuns();
    // The page is built with one run; another one's figures are not there before they are read.
    this.root.toggleAttribute("data-loading", run !== this.root.dataset.run);
    if (run !== this.root.dataset.run) {
      write(this.find("title"), this.#entries.find(({ name }) => name === run)?.title || run);
      write(this.find("state"), "Reading …");
      this.find("state").dataset.state = "";
    }
    try {
      this.#feed = follow(run, (data, changed) => this.#round(data, changed));
    } catch (error) {
      this.#missing(/** @type {Error} */ (error).message);
    }
  }

  /** @type {(data: RunData, changed: Set<string>) => void} */
  #round(data, changed) {
    if (!this.root.isConnected) return this.stop();
    if (data.loaded && !data.card && !data.progress.length) return this.#missing(`There is no data for a run named ${data.name}.`);
    if (!data.loaded || changed.size === 0) return this.#tick();
    const began = performance.now();
    this.#show(data);
    performance.measure("live: show", { start: began });
    this.root.dataset.rounds = String(Number(this.root.dataset.rounds ?? 0) + 1);
  }

  /** @param {RunData} data */
  #show(data) {
    if (!data.loaded) return;
    for (const state of ["data-missing", "data-loading"]) this.root.toggleAttribute(state, false);
    const now = this.#feed?.now() ?? Date.now();
    this.overview.show(data, now);
    this.card.show(data, now);
    const found = this.#who ? this.contributor.show(data, this.#who) : undefined;
    this.charts.marked = found?.between;
    this.charts.events = eventsOf(data);
    listEvents(this.root, this.charts.events);
    this.#showTitle(data, found?.person.name || found?.person.id);
    this.#look();
    this.pictures.show(data, found?.between);
    if (this.#who) return;
    this.drawing.show(data);
    this.training.show(data);
    this.findMe.show(data.peers);
    this.checkpoints.show(data);
    void this.#showBoard(data, now);
  }

  /**
   * The list of contributors, which may be long, in a turn of its own.
   * @type {(data: RunData, now: number) => Promise<void>}
   */
  async #showBoard(data, now) {
    await nextTurn();
    if (data !== this.#feed?.data || this.#who) return;
    const end = data.card?.finished ? Date.parse(data.card.finished) : now;
    this.leaderboard.show(data.peers, { now: end, finished: Boolean(data.card?.finished) });
  }

  #tick() {
    if (!this.root.isConnected) return this.stop();
    if (this.#feed) this.overview.tick(this.#feed.data, this.#feed.now());
  }

  /** @type {(data: RunData, person?: string) => void} */
  #showTitle({ card, name }, person) {
    const run = card?.title || name;
    write(this.find("title"), person ?? (this.#who ? "A contributor" : run));
    document.title = [person, run, this.#title].filter(Boolean).join(" · ");
    write(this.find("note"), this.#entries.find((one) => one.name === name)?.note ?? "");
    const back = /** @type {HTMLAnchorElement} */ (this.find("back"));
    back.href = this.#addressOf(name);
    back.textContent = `← ${run}`;
  }

  /** Draw the charts and the figures under them as the controls say. */
  #look() {
    const chosen = new FormData(this.controls);
    const total = /** @type {HTMLInputElement} */ (this.root.querySelector("[name=total]")).checked;
    this.charts.view = {
      across: chosen.get("across") === "time" ? "time" : "step",
      part: this.#who ? 1 : Number(chosen.get("part")),
      smoothing: Number(chosen.get("smoothing")),
      log: chosen.has("log"),
      schedule: chosen.has("schedule"),
      total,
      events: chosen.has("events"),
      zoom: undefined,
    };
    this.find("zoom-out").hidden = true;
    // Only steps are known beforehand, not when they will be made.
    /** @type {HTMLInputElement} */ (this.controls.elements.namedItem("schedule")).disabled = this.charts.view.across === "time";
    const data = this.#feed?.data;
    if (!data?.loaded) return;
    this.charts.show(data.progress, data.card);
    this.reader.show(data.progress, data.card, this.charts.view.smoothing);
  }

  #showRuns() {
    const others = this.#entries.filter(({ name }) => name !== this.#run);
    const section = /** @type {HTMLElement} */ (this.root.querySelector(".live__runs"));
    section.hidden = others.length === 0;
    this.find("runs").replaceChildren(...others.map(({ name, title, note }) =>
      make("li", {}, make("a", { href: this.#addressOf(name) }, title || name), " ", make("small", {}, note ?? ""))));
  }

  /** @param {string} sentence */
  #missing(sentence) {
    this.root.toggleAttribute("data-missing", true);
    write(this.find("title"), "No such run");
    write(this.find("state"), "Not found");
    this.find("state").dataset.state = "missing";
    const known = this.#entries.map(({ name }) => name).join(", ");
    write(this.find("detail"), `${sentence}${known ? ` Available runs: ${known}.` : ""}`);
    write(this.find("note"), "");
  }

  /** @type {(run: string, who?: string) => string} */
  #addressOf(run, who) {
    return `?${new URLSearchParams(who ? { run, who } : { run })}`;
  }

  /** Links to runs and contributors change what is shown, not the document. @type {(event: MouseEvent) => void} */
  #click(event) {
    const link = /** @type {Element} */ (event.target).closest("a");
    const plain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    if (!plain || !link?.getAttribute("href")?.startsWith("?")) return;
    event.preventDefault();
    event.stopPropagation();
    history.pushState(null, "", link.href);
    this.#route();
    this.find("title").focus();
    scrollTo({ top: 0 });
  }
}

/** @type {LivePage | undefined} */
let page;

mountEach("#live", (root) => {
  page?.stop(); // one that was left a moment ago may not have noticed yet
  page = new LivePage(root);
  void page.start();
});
