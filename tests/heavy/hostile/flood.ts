/**
 * A client that floods the gateway, in a separate thread. It gets an address, a key and an amount, and reports the
 * answers.
 */

/** Parameters of a flood. */
export interface Flood {
  url: string;
  key: string;
  body: string;
  perSecond: number;
  forMs: number;
}

/** Number of answers with each status. */
export type Answered = Record<number, number>;

async function send({ url, key, body, perSecond, forMs }: Flood): Promise<Answered> {
  const answered: Answered = {};
  const all: Promise<void>[] = [];
  const begun = performance.now();
  const ask = async () => {
    const response = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
      body,
    });
    await response.bytes();
    answered[response.status] = (answered[response.status] ?? 0) + 1;
  };
  for (let passed = 0; passed < forMs; passed = performance.now() - begun) {
    while (all.length < passed * perSecond / 1000) all.push(ask());
    await new Promise((resolve) => setTimeout(resolve, 4));
  }
  await Promise.all(all);
  return answered;
}

/** Runs in the thread: one flood for each message. */
const thread = globalThis as unknown as Pick<Worker, "postMessage" | "onmessage">;
thread.onmessage = async ({ data }: MessageEvent<Flood>) => thread.postMessage(await send(data));
