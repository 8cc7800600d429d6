// @ts-check
/*
 * One global step in pictures, on 'How it works': the marks are in the page, with their places; this
 * moves them. It plays on its own only for readers who allow motion, and until they touch it.
 */

import { find, findAll, mountEach } from "#assets/elements.js";

const SHORTEST_MS = 4000;
const READING_MS = 45; // per letter of the explanation
const IN_SIGHT = 0.7; // of the figure, before it plays

/** @param {HTMLElement} root */
function mount(root) {
  const stage = find(root, "[data-stage]");
  const picture = find(root, "[data-picture]");
  const list = find(root, "[data-scenes]");
  const scenes = findAll(list, "li");
  const marks = /** @type {SVGElement[]} */ (findAll(picture, "[data-shown]"));
  const buttons = /** @type {HTMLButtonElement[]} */ (findAll(root, "[data-go]"));
  const player = find(root, "[data-play]");
  let number = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;

  /** @param {number} wanted */
  function show(wanted) {
    number = Math.min(Math.max(wanted, 0), scenes.length - 1);
    for (const mark of marks) place(mark, number);
    scenes.forEach((scene, index) => scene.toggleAttribute("data-current", index === number));
    picture.setAttribute("aria-label", scenes[number].dataset.seen ?? "");
    root.dataset.scene = String(number);
    find(root, "[data-number]").textContent = `${number + 1} of ${scenes.length}`;
    for (const button of buttons) {
      const target = number + Number(button.dataset.go);
      button.disabled = target < 0 || target >= scenes.length;
    }
  }

  /** Show the next picture when this one has been read; stop at the last. */
  function wait() {
    const letters = scenes[number].textContent?.length ?? 0;
    timer = setTimeout(() => {
      if (!root.isConnected) return;
      if (!document.hidden) show(number + 1);
      if (number + 1 < scenes.length) wait();
      else stop();
    }, Math.max(SHORTEST_MS, READING_MS * letters));
  }

  function play() {
    stop();
    if (number + 1 === scenes.length) show(0);
    player.textContent = "Pause";
    list.setAttribute("aria-live", "off");
    wait();
  }

  function stop() {
    clearTimeout(timer);
    timer = undefined;
    player.textContent = "Play";
    list.setAttribute("aria-live", "polite");
  }

  /** @param {number} wanted */
  function turn(wanted) {
    stop();
    show(wanted);
    // A button that ends the way loses the focus: the stage takes it.
    if (document.activeElement === document.body || /** @type {any} */ (document.activeElement)?.disabled) stage.focus();
  }

  for (const button of buttons) button.addEventListener("click", () => turn(number + Number(button.dataset.go)));
  player.addEventListener("click", () => (timer === undefined ? play() : stop()));
  stage.addEventListener("click", () => turn(number + 1 === scenes.length ? 0 : number + 1));
  root.addEventListener("keydown", (event) => {
    /** @type {Record<string, number>} */
    const targets = { ArrowLeft: number - 1, ArrowRight: number + 1, Home: 0, End: scenes.length - 1 };
    const target = targets[event.key];
    if (target === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    turn(target);
  });
  show(0);
  stop();
  playInSight(root, play);
}

/**
 * @param {SVGElement} mark
 * @param {number} number of the picture
 */
function place(mark, number) {
  const { shown = "", places } = mark.dataset;
  mark.toggleAttribute("data-off", !shown.split(" ").includes(String(number)));
  if (places) mark.style.transform = `translate(${places.split(";")[number].replace(",", ", ")})`;
}

/**
 * Play once the figure is in sight, unless the reader wants no motion or has touched it.
 * @type {(root: HTMLElement, play: () => void) => void}
 */
function playInSight(root, play) {
  if (!matchMedia("(prefers-reduced-motion: no-preference)").matches) return;
  const sight = new IntersectionObserver(([entry]) => {
    if (entry.intersectionRatio < IN_SIGHT) return;
    sight.disconnect();
    play();
  }, { threshold: IN_SIGHT });
  sight.observe(root);
  for (const kind of ["pointerdown", "keydown", "focusin"]) {
    root.addEventListener(kind, () => sight.disconnect(), { once: true });
  }
}

mountEach("#step", mount);
