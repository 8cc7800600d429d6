// @ts-check
/* A volunteer of 'Train in this tab', in a worker of its own: see tab/member.js. */

import { Member } from "./tab/member.js";

/** @typedef {{kind: "begin", file: ArrayBuffer, number: number, seed: number} | {kind: "meet", member: number, port: MessagePort}} Setup */

/** To the page, which unplugs this volunteer. @param {unknown} error */
const report = (error) => void setTimeout(() => {
  throw error;
});

/** @type {Member | undefined} */
let member;

addEventListener("message", ({ data }) => {
  const order = /** @type {Setup | import("./tab/member.js").Order} */ (data);
  if (order.kind === "begin") {
    member = new Member(order, (news, moved = []) => postMessage(news, { transfer: moved }));
    postMessage({ kind: "ready" });
  } else if (order.kind === "meet") {
    member?.meet(order.member, order.port);
    order.port.onmessage = ({ data: message }) => member?.hear(message);
  } else member?.obey(order).catch(report);
});
