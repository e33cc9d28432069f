/** A conversation continues at another node: its responses are in Redis before their answers end. */
import { assertEquals, assertStringIncludes } from "@std/assert";
import type { Node } from "./cluster.ts";

// deno-lint-ignore no-explicit-any
type Answer = Record<string, any>;

/** Asserts that responses of each node can be continued on the other, by their key only. */
export async function assertContinued(
  [one, other]: readonly [Node, Node],
  { key, stranger }: { key: string; stranger: string },
): Promise<void> {
  for (const stream of [false, true]) {
    let previous: Answer | undefined;
    for (let turn = 0; turn < 10; turn++) {
      const node = turn % 2 === 0 ? one : other;
      const more = previous === undefined ? {} : { previous_response_id: previous.id };
      previous = await ask(node, key, { stream, input: `turn ${turn}`, ...more });
      assertEquals([previous.status, previous.store], ["completed", true], JSON.stringify(previous));
    }
    const { usage } = await ask(one, key, { input: "last", previous_response_id: previous?.id });
    const { usage: alone } = await ask(one, key, { input: "last" });
    // Ten turns and their answers are in the first prompt.
    assertEquals(usage.input_tokens > alone.input_tokens + 40, true);
    const item = { type: "item_reference", id: previous?.output[0].id };
    assertEquals((await ask(one, key, { input: [item, { role: "user", content: "Go" }] })).status, "completed");
    const { error } = await ask(one, stranger, { input: "a", previous_response_id: previous?.id });
    assertStringIncludes(error.message, "Cannot continue response");
  }
}

async function ask(node: Node, key: string, body: Record<string, unknown>): Promise<Answer> {
  const response = await fetch(`${node.origin}/v1/responses`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
    body: JSON.stringify({ model: "sluice/echo", ...body }),
  });
  const text = await response.text();
  if (body.stream !== true || response.status !== 200) return JSON.parse(text);
  const last = text.split("\n\n").findLast((event) => event.includes("response.completed")) ?? "";
  return JSON.parse(last.slice(last.indexOf("data: ") + 6)).response;
}
