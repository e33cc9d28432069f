import { assert, assertEquals, assertRejects } from "@std/assert";
import { GatewayError } from "../../lib/errors.ts";
import type { KeptResponse } from "../../lib/recall/recent_responses.ts";
import { recallConversation, sharedInput } from "../../lib/responses/resolve_references.ts";
import type { ResponseMemory } from "../../lib/responses/response_memory.ts";
import { utf8Bytes } from "../../lib/text.ts";

Deno.test("a response that precedes itself, because an upstream repeats its ids, is found once", async () => {
  for (const withOutput of [true, false]) {
    const response: KeptResponse = {
      id: "resp_1",
      base: { id: "resp_1", withOutput },
      input: utf8Bytes("{}"),
      output: utf8Bytes("{}"),
      items: [],
    };
    let found = 0;
    const memory: ResponseMemory = {
      limits: null,
      keepsAll: false,
      secret: "",
      has: () => true,
      find: () => Promise.resolve((found++, response)),
      findByItem: () => Promise.resolve(undefined),
      isLocal: () => false,
      put: () => undefined,
    };
    await assertRejects(() => recallConversation("resp_1", memory, () => {}), GatewayError, "Cannot continue");
    assertEquals(await sharedInput(response, memory, Infinity), undefined);
    assertEquals(found, 1);
  }
});

/** A memory with responses of the ids 0 to 999, of which each continues the one before. */
function chained(found: (id: string) => void = () => {}): ResponseMemory {
  return {
    limits: null,
    keepsAll: false,
    secret: "",
    has: () => true,
    find(id) {
      found(id);
      return Promise.resolve({
        id,
        ...(id !== "0" && { base: { id: String(Number(id) - 1), withOutput: true } }),
        input: utf8Bytes(`"in ${id}"`),
        output: utf8Bytes(`"out ${id}"`),
        items: [],
      });
    },
    findByItem: () => Promise.resolve(undefined),
    isLocal: () => false,
    put: () => undefined,
  };
}

Deno.test("a long chain of responses is read in turns of the event loop, oldest items first", async () => {
  let turns = 0;
  const timer = setInterval(() => turns++, 0);
  const items = JSON.parse(`[${await recallConversation("999", chained(), () => {})}]`);
  clearInterval(timer);
  assertEquals([items.length, items[0], items[1], items.at(-1)], [2000, "in 0", "out 0", "out 999"]);
  assert(turns >= 2);
});

Deno.test("a chain of responses is read no further than there is memory for it", async () => {
  const found: string[] = [];
  let left = 40;
  const take = (bytes: number) => {
    if ((left -= bytes) < 0) throw new GatewayError("limited", "no room");
  };
  await assertRejects(
    () => recallConversation("999", chained((id) => void found.push(id)), take),
    GatewayError,
    "room",
  );
  assertEquals(found, ["999", "998", "997"]);
});
