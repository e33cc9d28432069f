/** A conversation continues at another node: its responses are in Redis before their answers end. */
import { assertEquals, assertStringIncludes } from "@std/assert";
import { HAS_POSTGRES, HAS_REDIS } from "../../support/databases.ts";
import { type Node, startCluster } from "./cluster.ts";

const KEYS = { KEY_ONE: "key-of-the-cluster-one", KEY_TWO: "key-of-the-cluster-two" };

// deno-lint-ignore no-explicit-any
type Answer = Record<string, any>;

async function ask(node: Node, body: Record<string, unknown>, key = KEYS.KEY_ONE): Promise<Answer> {
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

Deno.test({
  name: "a response of one node can be continued on the others, by its key only",
  ignore: !(HAS_POSTGRES && HAS_REDIS),
  async fn() {
    const keys = Object.keys(KEYS).map((env) => ({ name: env, key: { env } }));
    await using cluster = await startCluster({ config: { keys }, nodes: 2, env: KEYS });
    const [one, other] = cluster.nodes as [Node, Node];
    for (const stream of [false, true]) {
      let previous: Answer | undefined;
      for (let turn = 0; turn < 10; turn++) {
        const node = turn % 2 === 0 ? one : other;
        const more = previous === undefined ? {} : { previous_response_id: previous.id };
        previous = await ask(node, { stream, input: `turn ${turn}`, ...more });
        assertEquals([previous.status, previous.store], ["completed", true], JSON.stringify(previous));
      }
      const { usage } = await ask(one, { input: "last", previous_response_id: previous?.id });
      const { usage: alone } = await ask(one, { input: "last" });
      // Ten turns and their answers are in the first prompt.
      assertEquals(usage.input_tokens > alone.input_tokens + 40, true);
      const item = { type: "item_reference", id: previous?.output[0].id };
      assertEquals((await ask(one, { input: [item, { role: "user", content: "Go" }] })).status, "completed");
      const { error } = await ask(one, { input: "a", previous_response_id: previous?.id }, KEYS.KEY_TWO);
      assertStringIncludes(error.message, "Cannot continue response");
    }
  },
});
