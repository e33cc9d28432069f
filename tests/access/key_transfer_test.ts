import { assertEquals, assertRejects } from "@std/assert";
import { issueKey } from "../../lib/access/keys.ts";
import { importKeys } from "../../lib/access/key_transfer.ts";
import { parseConfig } from "../../lib/config/parse.ts";
import { GatewayError } from "../../lib/errors.ts";
import { openMemoryStore } from "../../lib/store/sqlite/memory.ts";

Deno.test("an import that another process interferes with says that some keys were added", async () => {
  const store = openMemoryStore();
  const records = ["a", "b"].map((name) => issueKey({ name, group: "default", now: 0 }).record);
  const { keys } = store;
  const raced = {
    ...keys,
    add: async (...[record, origin]: Parameters<typeof keys.add>) => {
      if (record.name === "b") await keys.add(issueKey({ name: "b", group: "default", now: 0 }).record, origin);
      return await keys.add(record, origin);
    },
  };
  const admin: Parameters<typeof importKeys>[0] = {
    config: parseConfig({}, () => undefined),
    store: { ...store, keys: raced },
    origin: { author: "command_line", at: 0 },
  };
  const error = await assertRejects(() => importKeys(admin, records), GatewayError);
  assertEquals(
    error.message,
    'Cannot import key "b": another process added a key with its name or secret in the meantime. ' +
      "The keys before it were added; import the file again",
  );
  assertEquals((await store.keys.list()).length, 2);
});
