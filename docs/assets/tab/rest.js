// @ts-check

/** Let messages in, and wait. @type {(milliseconds: number) => Promise<void>} */
export const rest = (milliseconds) => new Promise((resolve) => {
  if (milliseconds > 0) setTimeout(resolve, milliseconds);
  else {
    const { port1, port2 } = new MessageChannel(); // no timer: browsers let those wait 4 ms
    port1.onmessage = () => {
      port1.close();
      resolve(undefined);
    };
    port2.postMessage(undefined);
  }
});
