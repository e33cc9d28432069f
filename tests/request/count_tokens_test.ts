import type { Caller } from "../../lib/access/permissions.ts";
import { groupSchema } from "../../lib/config.ts";
import { GatewayError } from "../../lib/errors.ts";
import type { Prompt } from "../../lib/protocols/canonical/types.ts";
import { COUNTED_AT_ONCE } from "../../lib/o200k/mod.ts";
import { LONG_TEXT_CHARS } from "../../lib/scheduler.ts";
import { countInput } from "../../lib/request/count_tokens.ts";
import { promptOf, user } from "../protocols/canonical/messages.ts";
import { assertEquals, assertRejects } from "@std/assert";

/** A prompt that takes seconds to count. */
const LONG: Prompt = promptOf([user("a".repeat(2_000_000))]);

/** The shortest body whose prompt is counted in slices. */
const BODY = { text: " ".repeat(COUNTED_AT_ONCE + 1), members: [] };

/** The shortest body whose count may take seconds. */
const LONG_BODY = { text: " ".repeat(LONG_TEXT_CHARS + 1), members: [] };

/** The most counts of one key that run or wait at the same time. */
const MAX_OF_KEY = 3 + 48;

function callerOf(keyId: string): Caller {
  return { keyId, keyName: keyId, groupName: "default", group: groupSchema.parse({}), rules: {} };
}

Deno.test("countInput() lets one key count few long prompts at a time, and others still count", async () => {
  const leaving = new AbortController();
  const { signal } = leaving;
  const count = (keyId: string, prompt: Prompt) =>
    countInput(prompt, { context: { caller: callerOf(keyId) }, body: BODY, signal });
  const counting = Array.from({ length: MAX_OF_KEY }, () => count("key_one", LONG));
  const ends = Promise.allSettled(counting);
  const refused = await assertRejects(() => count("key_one", LONG), GatewayError);
  assertEquals([refused.kind, refused.retryAfterMs], ["limited", 2_000]);
  assertEquals(await count("key_two", promptOf([user("Hello")])), 3 + 3 + 1);
  leaving.abort();
  assertEquals((await ends).map(({ status }) => status), counting.map(() => "rejected"));
});

Deno.test("countInput() counts other prompts while as many as possible that take seconds are counted", async () => {
  const leaving = new AbortController();
  const { signal } = leaving;
  const countLong = (keyId: string) =>
    countInput(LONG, { context: { caller: callerOf(keyId) }, body: LONG_BODY, signal });
  let ended = 0;
  const ends = Promise.allSettled(
    ["key_one", "key_one", "key_one", "key_two"].map((keyId) => countLong(keyId).finally(() => ended++)),
  );
  const hello = promptOf([user("Hello")]);
  assertEquals(await countInput(hello, { context: { caller: callerOf("key_three") }, body: BODY, signal }), 3 + 3 + 1);
  assertEquals(ended, 0);
  leaving.abort();
  await ends;
});
