import { assertEquals, assertNotEquals } from "@std/assert";
import { parseDocument } from "../../lib/json/mod.ts";
import { findConversation } from "../../lib/request/conversation.ts";
import type { RequestState } from "../../lib/request/state.ts";
import { ConversationTargets } from "../../lib/routing/affinity.ts";
import type { JsonBody } from "../../lib/server/parse_body.ts";

/** The id of the conversation of a chat body, given as text or as UTF-8. */
async function idOf(system: string, user: string, { asBytes = false } = {}): Promise<string | undefined> {
  const messages = [{ role: "system", content: system }, { role: "user", content: user }];
  const text = JSON.stringify({ model: "acme/one", messages });
  const body = await parseDocument(asBytes ? new TextEncoder().encode(text) : text) as JsonBody;
  const state = {
    caller: { keyId: "key_1" },
    request: { headers: new Headers() },
    context: {
      gateway: { config: { routing: { affinity_minutes: 60 } }, conversations: new ConversationTargets(() => 0) },
      record: { bytesIn: text.length },
    },
  };
  return findConversation(body, state as unknown as RequestState)?.id;
}

Deno.test("a conversation is recognized by its first 262,144 characters at most", async () => {
  const [long, short] = ['"\\'.repeat(300_000), '"\\'.repeat(4_000)];
  assertEquals(await idOf(long, "one"), await idOf(long, "two"));
  assertNotEquals(await idOf(short, "one"), await idOf(short, "two"));
  assertNotEquals(await idOf(long, "one"), await idOf(`x${long}`, "one"));
});

Deno.test("a conversation is the same whether its body is known as text or as UTF-8", async () => {
  for (const system of ["a", "é", "漢", "a漢", "😀", "漢😀"].map((text) => text.repeat(20_000))) {
    assertEquals(await idOf(system, "é"), await idOf(system, "é", { asBytes: true }), system.slice(0, 4));
  }
});
