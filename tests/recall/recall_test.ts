import { assert, assertEquals, assertLess } from "@std/assert";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { Recall } from "../../lib/recall/recall.ts";
import { utf8Bytes } from "../../lib/text.ts";

Deno.test("ids of more than 1,024 characters are neither stored nor looked up", async () => {
  const asked: string[] = [];
  const store = (id: string) => {
    asked.push(id);
    return Promise.resolve(undefined);
  };
  const recall = new Recall({
    limits: { minutes: 1, megabytes: 1 },
    monotonic: () => 0,
    shared: {
      put: (_, { id }) => store(id),
      find: (_, id) => store(id),
      findByItem: (_, id) => store(id),
      renew() {},
      drop() {},
      close: () => Promise.resolve(),
    },
  });
  const owner = { keyId: "key", secret: "secret" };
  for (const length of [1_024, 1_025]) {
    const id = "x".repeat(length);
    await recall.find(owner, id);
    await recall.findByItem(owner, id);
    await recall.put(owner, { id, input: utf8Bytes("{}"), output: utf8Bytes("{}"), items: [] });
  }
  assertEquals(asked.map((id) => id.length), [1_024, 1_024, 1_024]);
  await recall.close();
});

Deno.test("responses of a connection are deleted with it, also those that are complete only then", async () => {
  const recall = new Recall({ limits: { minutes: 1, megabytes: 1 }, monotonic: () => 0 });
  const local = recall.openLocal("key");
  const response = { id: "resp_1", input: utf8Bytes("{}"), output: utf8Bytes("{}"), items: [] };
  local.put(response);
  assert(recall.bytes > 0);
  local.close();
  local.put(response);
  assertEquals([local.find("resp_1"), recall.bytes], [undefined, 0]);
  await recall.close();
});

Deno.test("a connection forgets the ids of its evicted responses", async () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc");
  const used = () => {
    collect();
    return Deno.memoryUsage().heapUsed;
  };
  const recall = new Recall({ limits: { minutes: 60, megabytes: 1 }, monotonic: () => 0 });
  const local = recall.openLocal("key");
  const bytes = utf8Bytes("{}");
  const padding = "x".repeat(4_000);
  const before = used();
  for (let index = 0; index < 20_000; index++) {
    local.put({ id: `${index}${padding}`, input: bytes, output: bytes, items: [] });
  }
  assertLess(used() - before, 20_000_000);
  assertEquals([local.has(`0${padding}`), local.has(`19999${padding}`)], [false, true]);
  local.close();
  assertEquals(recall.bytes, 0);
  await recall.close();
});
