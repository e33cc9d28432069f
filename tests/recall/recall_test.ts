import { assert, assertEquals } from "@std/assert";
import { Recall } from "../../lib/recall/recall.ts";
import { utf8Bytes } from "../../lib/text.ts";

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
