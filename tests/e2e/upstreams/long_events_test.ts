import { assert, assertEquals } from "@std/assert";
import type { Protocol } from "../../../lib/protocols/canonical/types.ts";
import { LONG_TEXT_CHARS } from "../../../lib/scheduler.ts";
import { oneModel, startGateway } from "../../support/gateway.ts";
import { errorFrame, prompt, PROTOCOLS, STREAMED, SUCCESS } from "../../upstream/replies.ts";
import { events, startUpstream } from "../../upstream/mod.ts";
import { skipInQuick } from "../../support/skip.ts";

/** Its pieces end within characters of two code units at times. */
const LONG = `"字🙂\n`.repeat(150_000);
/** Its JSON form without quotes. */
const INSIDE = JSON.stringify(LONG).slice(1, -1);

/** A stream with another text in place of its first word. */
function saying(protocol: Protocol, inside: string): string {
  return STREAMED[protocol].join("").replaceAll("Hello", () => inside);
}

/** The texts of a stream's frames. */
function textsIn(protocol: Protocol, stream: string): string[] {
  return stream.split("\n").filter((line) => line.startsWith("data: {")).map((line) => {
    const { type, delta, choices, candidates } = JSON.parse(line.slice(6));
    if (protocol === "gemini") return candidates[0].content.parts[0].text;
    if (protocol === "chat") return choices[0]?.delta.content ?? "";
    if (protocol === "messages") return delta?.text ?? "";
    return type === "response.output_text.delta" ? delta : "";
  }).filter((text) => text !== "");
}

for (const [index, protocol] of PROTOCOLS.entries()) {
  const ignore = index % 2 > 0 && skipInQuick("Long events relayed in two of four protocols");
  Deno.test(`relayed ${protocol}: a long event passes unchanged and in order`, { ignore }, async () => {
    assert(INSIDE.length > LONG_TEXT_CHARS);
    let inside = "Hello";
    await using server = startUpstream(() => events(saying(protocol, inside), { chunkBytes: 65_536 }));
    await using gateway = startGateway(oneModel(protocol, server.url));
    // Each with a key of its own: an id that an earlier response of the key has would be replaced.
    const ask = async () =>
      await (await gateway.ask(protocol, prompt(protocol, { stream: true }), { key: await gateway.addKey() })).text();
    const short = await ask();
    inside = INSIDE;
    // Compared at once: a difference of megabytes would take minutes to be shown.
    assert(await ask() === short.replaceAll("Hello", () => INSIDE));
  });

  Deno.test(
    `relayed ${protocol}: a long event that is not JSON ends the stream with an error`,
    { ignore },
    async () => {
      await using server = startUpstream(() => events(saying(protocol, `${INSIDE}\\x`)));
      await using gateway = startGateway(oneModel(protocol, server.url));
      const response = await gateway.ask(protocol, prompt(protocol, { stream: true }));
      const text = await response.text();
      assert(text.length < 10_000 && text.includes("error") && !text.includes(SUCCESS[protocol]), text.slice(0, 1_000));
    },
  );

  Deno.test(`${protocol} for all clients: a long event is translated completely and in order`, async () => {
    await using server = startUpstream(() => events(saying(protocol, INSIDE)));
    await using gateway = startGateway(oneModel(protocol, server.url));
    const others = PROTOCOLS.filter((client) => client !== protocol);
    for (const client of skipInQuick("Long events for every client") ? others.slice(0, 1) : others) {
      const response = await gateway.ask(client, prompt(client, { stream: true }));
      const stream = await response.text();
      const content = textsIn(client, stream);
      assert(content.join("") === `${LONG} thére 🙂`, client);
      assert(content.length > 3 && content.every((text) => text.isWellFormed()), client);
      assertEquals(stream.split(SUCCESS[client]).length > 1, true, client);
    }
  });
}

Deno.test("events after a long one follow it, even an error", async () => {
  const [, ...others] = STREAMED.chat;
  const opening = others.slice(0, 1).join("").replaceAll("Hello", () => INSIDE);
  await using server = startUpstream(() => events(opening + errorFrame("chat", "No more")));
  await using gateway = startGateway(oneModel("chat", server.url));
  const stream = await (await gateway.ask("messages", prompt("messages", { stream: true }))).text();
  assert(textsIn("messages", stream).join("") === LONG);
  assert(/"type":"error"/.test(stream.slice(-2_000)) && !stream.includes(SUCCESS.messages));
});
