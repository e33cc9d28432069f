import { assertEquals, assertRejects } from "@std/assert";
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
      find: () => Promise.resolve((found++, response)),
      findByItem: () => Promise.resolve(undefined),
      put: () => undefined,
    };
    await assertRejects(() => recallConversation("resp_1", memory), GatewayError, "Cannot continue");
    assertEquals(await sharedInput(response, memory), undefined);
    assertEquals(found, 1);
  }
});
