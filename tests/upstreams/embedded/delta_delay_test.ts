import { assert, assertEquals, assertLess } from "@std/assert";
import { startGateway } from "../../support/gateway.ts";

function slow(words: string, more: Record<string, number> = {}) {
  return { model: "sluice/echo", messages: [{ role: "user", content: words }], stream: true, ...more };
}

/** Times at which the pieces of a stream's text arrived, in milliseconds since the request. */
async function arrivals(pending: Promise<Response>): Promise<number[]> {
  const begin = performance.now();
  const response = await pending;
  const times: number[] = [];
  for await (const text of (response.body ?? new ReadableStream()).pipeThrough(new TextDecoderStream())) {
    if (/"content":"[^"]/.test(text)) times.push(performance.now() - begin);
  }
  return times;
}

Deno.test("echo pauses between pieces if the first line asks for it, and repeats the line", async () => {
  await using gateway = startGateway({});
  const times = await arrivals(gateway.ask("chat", slow("pace:120ms\nand on", { max_tokens: 4 })));
  assertEquals(times.length, 4);
  times.forEach((time, index) => assert(time >= index * 110, times.join()));
  const whole = await gateway.ask("chat", { ...slow("pace:5ms\nand on"), stream: false });
  assertEquals((await whole.json()).choices[0].message.content, "pace:5ms\nand on");
});

Deno.test("echo ignores a delay that is malformed or not on the first line", async () => {
  await using gateway = startGateway({});
  for (const words of ["say pace:60000ms", "pace:60000", "pace:-1ms\nx", "x\npace:60000ms", "pace:60000msx"]) {
    const begun = performance.now();
    await (await gateway.ask("chat", slow(words))).text();
    assertLess(performance.now() - begun, 30_000, words);
  }
});

Deno.test("a disconnecting client ends the pause", async () => {
  const begun = performance.now();
  {
    await using gateway = startGateway({});
    const client = new AbortController();
    const response = await gateway.ask("chat", slow("pace:90000ms\nfor long"), { signal: client.signal });
    const reader = response.body?.getReader();
    await reader?.read();
    client.abort();
    await reader?.read().catch(() => {});
  }
  // The end of the gateway waits for whatever still runs.
  assertLess(performance.now() - begun, 60_000);
});
